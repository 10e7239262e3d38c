package diff

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	v1 "toolctl.dev/toolctl/api/v1"
)

// marks are the symbols of the actions, as in patches.
var marks = map[Action]string{Created: "+", Changed: "~", Deleted: "-", Drifted: "!"}

// name is the name of the object in a line.
func (c *Change) name() string {
	name := strings.ToLower(c.Kind) + "/" + c.Name
	if c.Namespace != v1.DefaultNamespace {
		name += " in namespace " + c.Namespace
	}
	return name
}

// String returns the counts of changes as a heading.
func (s *Summary) String() string {
	text := fmt.Sprintf("%d to create, %d to change, %d to delete, %d unchanged", s.Create, s.Change, s.Delete, s.Unchanged)
	if s.Overridden > 0 {
		text += fmt.Sprintf(", %d overridden", s.Overridden)
	}
	if s.Class != "" {
		text += "; the worst is " + string(s.Class)
	}
	return text
}

// WriteText writes the report for people. Without changes it writes nothing.
func (r *Report) WriteText(out io.Writer) error {
	w := bufio.NewWriter(out)
	for i := range r.Changes {
		c := &r.Changes[i]
		fmt.Fprintf(w, "%s %s: %s\n", marks[c.Action], c.name(), c.Class)
		if c.TakenFrom != "" {
			fmt.Fprintf(w, "    taken over from set %q\n", c.TakenFrom)
		}
		for _, f := range c.Fields {
			fmt.Fprintf(w, "    %s: %s\n", oneLine(f.Path), f.values(c.Action))
		}
		for _, why := range c.Reasons {
			fmt.Fprintf(w, "    %s: %s\n", why.Class, oneLine(why.Reason))
			if why.Pointer != "" {
				fmt.Fprintf(w, "      at %s\n", oneLine(strings.TrimSpace(why.Source.String()+" "+why.Pointer)))
			}
			if why.Witness != nil {
				fmt.Fprintf(w, "      witness %s\n", shown(why.Witness))
			}
		}
		for _, text := range c.Abandoned {
			fmt.Fprintf(w, "    warning: %s\n", oneLine(text))
		}
	}
	if len(r.Changes) > 0 {
		fmt.Fprintln(w, r.Summary.String())
	}
	return w.Flush()
}

// values returns the old and the new value of a field, or the only value for a new or deleted object.
func (f *Field) values(action Action) string {
	value := func(raw json.RawMessage) string {
		if raw == nil {
			return "(none)"
		}
		var text string
		if f.Cut && json.Unmarshal(raw, &text) == nil && strings.HasPrefix(text, "{") {
			raw = json.RawMessage(text) // the start of an object, which was cut and therefore encoded as a string
		}
		return shown(raw)
	}
	switch {
	case action == Created:
		return value(f.New)
	case action == Deleted:
		return value(f.Old)
	case f.Old != nil && string(f.Old) == string(f.New):
		return value(f.Old) + " -> another value"
	}
	return value(f.Old) + " -> " + value(f.New)
}

// WriteMarkdown writes the report as a pull request comment.
func (r *Report) WriteMarkdown(out io.Writer) error {
	w := bufio.NewWriter(out)
	if len(r.Changes) == 0 {
		fmt.Fprintln(w, "**toolctl diff**: no differences")
		return w.Flush()
	}
	fmt.Fprintf(w, "**toolctl diff**: %s\n\n", r.Summary.String())
	fmt.Fprintln(w, "| | object | class | why |\n| --- | --- | --- | --- |")
	for i := range r.Changes {
		c := &r.Changes[i]
		var why []string
		for _, reason := range c.Reasons {
			text := cell(reason.Reason)
			if reason.Witness != nil {
				text += "; witness " + code(shown(reason.Witness))
			}
			why = append(why, text)
		}
		for _, text := range c.Abandoned {
			why = append(why, "⚠ "+cell(text))
		}
		fmt.Fprintf(w, "| `%s` | %s | %s | %s |\n", marks[c.Action], code(c.name()), c.Class, strings.Join(why, "<br>"))
	}
	fmt.Fprintln(w, "\n<details><summary>Fields</summary>")
	for i := range r.Changes {
		c := &r.Changes[i]
		if len(c.Fields) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s\n\n", code(c.name()))
		for _, f := range c.Fields {
			fmt.Fprintf(w, "- %s: %s\n", code(f.Path), code(f.values(c.Action)))
		}
	}
	fmt.Fprintln(w, "\n</details>")
	return w.Flush()
}

// code formats a text as code that may appear in a table.
func code(text string) string {
	text = cmp.Or(strings.ReplaceAll(oneLine(text), "|", `\|`), " ")
	ticks := "`"
	for strings.Contains(text, ticks) {
		ticks += "`"
	}
	if len(ticks) > 1 {
		return ticks + " " + text + " " + ticks
	}
	return ticks + text + ticks
}

// cell escapes a text for a table cell.
func cell(text string) string {
	var b strings.Builder
	for _, r := range oneLine(text) {
		switch {
		case strings.ContainsRune("\\`*_[]|#~", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '<':
			b.WriteString("&lt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@':
			b.WriteString("@\u200b") // so that GitHub notifies nobody
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// WriteGitHub writes a workflow command for each reason, which GitHub shows at the line of
// the file: https://docs.github.com/actions/reference/workflow-commands-for-github-actions.
// Paths are written relative to root.
func (r *Report) WriteGitHub(out io.Writer, root string) error {
	w := bufio.NewWriter(out)
	for i := range r.Changes {
		c := &r.Changes[i]
		for _, why := range c.Reasons {
			annotate(w, level(why), c.place(why), root, fmt.Sprintf("%s %s: %s", c.Action, c.name(), why.Class), why.text())
		}
		for _, text := range c.Abandoned {
			annotate(w, "warning", c.Source, root, c.name(), text)
		}
	}
	return w.Flush()
}

// text is the reason with its witness.
func (why Reason) text() string {
	if why.Witness == nil {
		return why.Reason
	}
	return why.Reason + "; witness " + shown(why.Witness)
}

// place is the current place of a reason; zero for a deleted object.
func (c *Change) place(why Reason) v1.Source {
	switch {
	case c.Action == Deleted:
		return v1.Source{}
	case why.Source.IsZero():
		return c.Source
	}
	return why.Source
}

func level(why Reason) string {
	switch {
	case why.Class == Breaking:
		return "error"
	case why.Class.Worse(Compatible):
		return "warning"
	}
	return "notice"
}

func annotate(w io.Writer, level string, at v1.Source, root, title, text string) {
	var props []string
	add := func(name, value string) { props = append(props, name+"="+property.Replace(value)) }
	if at.File != "" && at.File != "-" {
		file := at.File
		if abs, err := filepath.Abs(file); err == nil && root != "" {
			if rel, err := filepath.Rel(root, abs); err == nil && filepath.IsLocal(rel) {
				file = filepath.ToSlash(rel)
			}
		}
		add("file", file)
		if at.Line > 0 {
			add("line", strconv.Itoa(at.Line))
		}
		if at.Column > 0 {
			add("col", strconv.Itoa(at.Column))
		}
	}
	add("title", title)
	fmt.Fprintf(w, "::%s %s::%s\n", level, strings.Join(props, ","), message.Replace(oneLine(text)))
}

// Replacers for the escapes of workflow commands.
var (
	message  = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
)

// shown returns JSON with invisible characters as escapes.
func shown(raw json.RawMessage) string {
	var b strings.Builder
	for _, r := range string(raw) {
		if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029' {
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&b, `\u%04x`, unit)
			}
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// oneLine removes characters that would break a line or hide text.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, s)
}
