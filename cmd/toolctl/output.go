package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
)

// formats returns the annotation with the output formats of a command; the first is the default. A format that ends in
// "=" is followed by a text.
func formats(known ...string) map[string]string {
	return map[string]string{formatsKey: strings.Join(known, " ")}
}

const formatsKey = "formats"

func formatsOf(cmd *cobra.Command) []string { return strings.Fields(cmd.Annotations[formatsKey]) }

// complete adds to the declaration of each command what follows from it: a usage line without arguments accepts none,
// and the help ends with the output formats unless it says more about them itself.
func complete(cmd *cobra.Command) {
	if cmd.Args == nil && !strings.Contains(cmd.Use, " ") {
		cmd.Args = noArgs
	}
	if known := formatsOf(cmd); len(known) > 0 && !strings.Contains(cmd.Long, "Output formats") {
		cmd.Long += "\n\nOutput formats (-o): " + strings.Join(known, ", ") + "."
	}
	for _, c := range cmd.Commands() {
		complete(c)
	}
}

// checkFormat refuses an unknown -o before the command does anything.
func (a *app) checkFormat(cmd *cobra.Command, _ []string) error {
	a.formats = formatsOf(cmd)
	if a.output == "" {
		return nil
	}
	if len(a.formats) == 0 {
		return usagef("%s has only one output format: leave out -o", quoted(cmd.CommandPath()))
	}
	_, err := a.formatOf(a.formats)
	return err
}

// format returns the output format of the running command: the value of -o, or its first format.
func (a *app) format() string {
	if a.output == "" && len(a.formats) > 0 {
		return a.formats[0]
	}
	return a.output
}

// formatOf checks -o against some formats; the first format is the default.
func (a *app) formatOf(known []string) (string, error) {
	if a.output == "" {
		return known[0], nil
	}
	name, arg, takes := strings.Cut(a.output, "=")
	if takes && arg != "" {
		name += "="
	}
	if slices.Contains(known, name) {
		return a.output, nil
	}
	shown := make([]string, len(known))
	for i, k := range known {
		shown[i] = strings.Replace(k, "=", "=…", 1)
	}
	return "", usagef("unknown output format %q: expected one of %s%s", a.output, strings.Join(shown, ", "), v1.DidYouMean(strings.TrimSuffix(name, "="), known))
}

// completeFormats completes -o with the formats of the command.
func completeFormats(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	known := slices.DeleteFunc(formatsOf(cmd), func(f string) bool { return !strings.HasPrefix(f, prefix) })
	if len(known) == 1 && strings.HasSuffix(known[0], "=") {
		return known, noFiles | cobra.ShellCompDirectiveNoSpace
	}
	return known, noFiles
}

// output is stdout. It remembers the first error, so that commands need not check each line: lost output is
// never a success.
type output struct {
	w   io.Writer
	err error
}

func (o *output) Write(p []byte) (int, error) {
	n, err := screen{o.w, !isTerminal(o.w)}.Write(p)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

// lost returns the error of writing the output. After the reader has closed the pipe, it has no text.
func (o *output) lost() error {
	switch {
	case o.err == nil:
		return nil
	case errors.Is(o.err, syscall.EPIPE), errors.Is(o.err, io.ErrClosedPipe):
		return statusError{code: exitFailed}
	}
	return fmt.Errorf("the output could not be written: %w", regular.Reason(o.err))
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	if o, ok := w.(*output); ok {
		w = o.w
	}
	if s, ok := w.(screen); ok {
		w = s.w
	}
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// paint colours text on a terminal, unless NO_COLOR is set (https://no-color.org).
func (a *app) paint(code, text string) string {
	if v, ok := a.env("NO_COLOR"); ok && v != "" || !isTerminal(a.out) {
		return text
	}
	return paintOf(code) + text + paintEnd
}

// paintMark marks the start and the end of our own colors for a [screen]. Foreign text cannot contain the
// random marks, and they are as long as escape sequences, so that columns stay aligned.
var paintMark = func() [3]string {
	var m [3]string
	for i := range m { // from a private use plane
		n, err := rand.Int(rand.Reader, big.NewInt(0xfff0))
		if err != nil {
			panic(err)
		}
		m[i] = string(rune(0xf0000 + n.Int64()))
	}
	return m
}()

func paintOf(code string) string { return paintMark[0] + paintMark[1] + code + paintMark[2] }

var paintEnd = paintOf("0")

const green, red, yellow = "32", "31", "33"

// screen is the writer for people. It escapes characters that move the cursor, change the terminal or change
// the direction of the text; our own colors pass.
type screen struct {
	w   io.Writer
	off bool // a pipe gets the unchanged bytes
}

func (s screen) Write(p []byte) (int, error) {
	if s.off {
		return s.w.Write(p)
	}
	var b []byte
	from := 0
	for _, at := range paints.FindAllSubmatchIndex(p, -1) {
		b = append(b, escaped(p[from:at[0]])...)
		if isTerminal(s.w) {
			b = append(append(append(b, "\x1b["...), p[at[2]:at[3]]...), 'm')
		}
		from = at[1]
	}
	if _, err := s.w.Write(append(b, escaped(p[from:])...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

var paints = regexp.MustCompile(paintMark[0] + paintMark[1] + "(0|31|32|33)" + paintMark[2])

// escaped replaces the control characters C0 and C1, except line breaks and tabs, and those that change the
// direction of text, by \u escapes, which JSON readers decode. Invalid UTF-8 becomes U+FFFD, because it could
// form a control character with the next write.
func escaped(p []byte) []byte {
	if bytes.IndexFunc(p, controls) < 0 && utf8.Valid(p) {
		return p
	}
	b := make([]byte, 0, len(p)+16)
	for _, r := range string(p) {
		if controls(r) {
			b = fmt.Appendf(b, `\u%04x`, r)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return b
}

func controls(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == 0x61c || r == 0x200e || r == 0x200f ||
		r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 || r == 0x2028 || r == 0x2029
}

// printJSON prints a value as JSON, indented, with the same escapes on every output.
func printJSON(w io.Writer, v any) error {
	text, err := manifest.MarshalJSON(v)
	if err != nil {
		return err
	}
	_, err = w.Write(escaped(text))
	return err
}

// printYAML prints a value as YAML, with the fields of its JSON.
func printYAML(w io.Writer, v any) error {
	out, err := manifest.MarshalYAML(v)
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

// encoded prints a value if the format is json or yaml, and reports whether it is.
func (a *app) encoded(format string, v any) (bool, error) {
	switch format {
	case "json":
		return true, printJSON(a.out, v)
	case "yaml":
		return true, printYAML(a.out, v)
	}
	return false, nil
}

// printed returns a function that prints the result of a verb: as json or yaml, or as the lines that text returns. The
// error of text is the verdict of the command, which is returned after the result is printed.
func printed[T any](a *app, text func(T) (string, error)) func(T, error) error {
	return func(v T, err error) error {
		if err != nil {
			return err
		}
		lines, verdict := text(v)
		if done, err := a.encoded(a.format(), v); err != nil {
			return err
		} else if !done && lines != "" {
			fmt.Fprintln(a.out, lines)
		}
		return verdict
	}
}

// done prints one line unless the verb has failed.
func (a *app) done(err error, format string, args ...any) error {
	if err == nil {
		_, err = fmt.Fprintf(a.out, format+"\n", args...)
	}
	return err
}

// printContent prints the content of a result, indented on a terminal and otherwise on one line.
func (a *app) printContent(content json.RawMessage) error {
	if len(content) == 0 {
		content = json.RawMessage("null")
	}
	var b bytes.Buffer
	var err error
	if isTerminal(a.out) {
		err = json.Indent(&b, content, "", "  ")
	} else {
		err = json.Compact(&b, content)
	}
	if err != nil {
		return err
	}
	b.WriteByte('\n')
	_, err = a.out.Write(escaped(b.Bytes()))
	return err
}

// table prints rows in columns. On a pipe, nothing depends on the terminal.
type table struct {
	*tabwriter.Writer
}

func newTable(w io.Writer, columns ...string) *table {
	t := &table{tabwriter.NewWriter(w, 0, 8, 3, ' ', 0)}
	if len(columns) > 0 {
		t.row(columns...)
	}
	return t
}

func (t *table) row(cells ...string) {
	for i, c := range cells {
		if cells[i] = clip.Line(c); cells[i] == "" {
			cells[i] = "-"
		}
	}
	fmt.Fprintln(t, strings.Join(cells, "\t"))
}

// listing describes how a list is printed in each format.
type listing[T any] struct {
	items    []T
	value    any            // for all formats that print JSON or parts of it; default: an object with items
	name     func(T) string // for the format name; items without a name are left out
	empty    string         // printed to stderr in place of a table without rows
	columns  []string
	row      func(T) []string
	wide     []string // further columns of the format wide, with their cells
	more     func(T) []string
	headless bool
}

// printList prints a list in the format of the command that runs.
func printList[T any](a *app, l listing[T]) error {
	if l.value == nil {
		l.value = map[string]any{"items": orEmpty(l.items)}
	}
	switch format := a.format(); {
	case format == "json":
		return printJSON(a.out, l.value)
	case format == "yaml":
		return printYAML(a.out, l.value)
	case strings.HasPrefix(format, columnsFormat):
		return printColumns(a, format, l.items, l.headless)
	case strings.Contains(format, "="):
		return a.printTemplate(format, l.value)
	case format == "name":
		for _, it := range l.items {
			if name := l.name(it); name != "" {
				fmt.Fprintln(a.out, clip.Line(name))
			}
		}
		return nil
	case format == "wide" && l.wide != nil:
		narrow := l.row
		l.columns, l.row = append(l.columns, l.wide...), func(it T) []string { return append(narrow(it), l.more(it)...) }
	}
	if len(l.items) == 0 {
		fmt.Fprintln(a.err, l.empty)
		return nil
	}
	if l.headless {
		l.columns = nil
	}
	t := newTable(a.out, l.columns...)
	for _, it := range l.items {
		t.row(l.row(it)...)
	}
	return t.Flush()
}

// orEmpty replaces nil by an empty list, because JSON would show null.
func orEmpty[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// screenText makes foreign text of several lines safe for a terminal, where control characters could move the
// cursor. On a pipe, it stays as it is.
func screenText(w io.Writer, s string) string {
	if !isTerminal(w) {
		return s
	}
	s = inspect.Show(strings.ReplaceAll(s, "\r\n", "\n"))
	return strings.ReplaceAll(s, "\r", "⟨U+000D⟩") // a carriage return would overwrite the line
}

// objectName returns the name of an object in messages: tool/get-weather.
func objectName(k v1.Key) string { return action.ObjectName(k) }

// printObjects prints manifests. With single, one object is printed as itself, and otherwise as a List.
func (a *app) printObjects(objects []v1.Object, single, headless bool) error {
	l := listing[v1.Object]{items: objects, value: manifest.List{APIVersion: "v1", Kind: "List", Items: objects}, headless: headless}
	if single && len(objects) == 1 {
		l.value = objects[0]
	}
	l.name = func(o v1.Object) string { return objectName(o.Head().Key()) }
	return printList(a, l)
}
