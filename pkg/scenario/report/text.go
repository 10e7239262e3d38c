package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/scenario"
)

// Style is the style of a text for people. The zero value is plain.
type Style struct {
	// Noun and Step are the words for a scenario and a turn. Default: scenario and turn.
	Noun, Step string
	// Calls shows the calls of all scenarios.
	Calls bool
	// Paint colours a text by a status such as [scenario.Passed]. Default: no colours.
	Paint func(status, text string) string
}

func (s Style) paint(status, text string) string {
	if s.Paint == nil {
		return text
	}
	return s.Paint(status, text)
}

// Text writes the outcome for people: one line for each scenario that passed, a tree of turns,
// calls and differences for the others, and a [Summary].
func Text(w io.Writer, r *scenario.Report, style Style) {
	for i := range r.Scenarios {
		printScenario(w, &r.Scenarios[i], style)
	}
	fmt.Fprintln(w, Summary(r, style))
}

// Summary returns the last line of a text: "3 scenarios: 2 passed, 1 failed, 0 skipped". If some checks
// were not judged, it includes how many were.
func Summary(r *scenario.Report, style Style) string {
	noun := cmp.Or(style.Noun, "scenario")
	if len(r.Scenarios) != 1 {
		noun += "s"
	}
	text := fmt.Sprintf("%d %s: %d passed, %d failed, ", len(r.Scenarios), noun, r.Passed, r.Failed)
	if r.Invalid > 0 {
		text += fmt.Sprintf("%d invalid, ", r.Invalid)
	}
	text += fmt.Sprintf("%d skipped", r.Skipped)
	if slices.ContainsFunc(r.Scenarios, func(s scenario.Result) bool {
		played := len(s.Turns) > 0 // not skipped after a failure
		return played && (s.Status == scenario.Skipped || len(s.Unjudged) > 0)
	}) {
		text += fmt.Sprintf("; %d of %d checks evaluated", r.Judged, r.Total)
	}
	if j := r.Judge; j != nil {
		text += fmt.Sprintf("; judge model: %s, %d tokens in, %d out", clip.Count(j.Calls, "call"), j.InputTokens, j.OutputTokens)
	}
	return text
}

// headline returns the line of one scenario: its status, its name and how much was judged.
func headline(s *scenario.Result, style Style) string {
	word := map[string]string{scenario.Passed: "PASS", scenario.Failed: "FAIL", scenario.Invalid: "INVALID", scenario.Skipped: "SKIP"}[s.Status]
	name := s.Name
	if s.Namespace != v1.DefaultNamespace {
		name = s.Namespace + "/" + s.Name
	}
	text := fmt.Sprintf("%s  %s", style.paint(s.Status, word), clip.Line(name))
	if s.Status != scenario.Invalid {
		text += "  " + clip.Line(s.Judgement())
	}
	return text
}

// printScenario prints one scenario: a line if it passed, and otherwise a tree of turns, calls
// and differences. With -v it also prints the calls of scenarios that passed.
func printScenario(w io.Writer, s *scenario.Result, style Style) {
	fmt.Fprintln(w, headline(s, style))
	for _, f := range s.Warnings {
		fmt.Fprintf(w, "  %s\n", clip.Line(f.String()))
	}
	if style.Calls {
		printCalls(w, s)
	}
	turn, call := -1, -1
	for _, f := range s.Failures {
		if f.Turn != turn {
			if turn, call = f.Turn, -1; turn > 0 {
				fmt.Fprintf(w, "  %s %d\n", cmp.Or(style.Step, "turn"), turn)
			}
		}
		if f.Call != call {
			if call = f.Call; call > 0 {
				fmt.Fprintf(w, "    call %d %s\n", call, clip.Line(f.Tool))
			}
		}
		printFailure(w, f, style)
	}
}

func printCalls(w io.Writer, s *scenario.Result) {
	for i, t := range s.Turns {
		for j, c := range t.Calls {
			got := string(c.Result.Content)
			if c.Result.Error != nil {
				got = c.Result.Error.Type + ": " + c.Result.Error.Message
			}
			fmt.Fprintf(w, "  %d.%d %s %s: %s %s\n", i+1, j+1, clip.Line(c.Tool), clip.Line(clip.Words(string(c.Args), 200)), c.Result.Status, clip.Line(clip.Words(got, 300)))
		}
	}
}

// printFailure prints one difference, indented by its level in the tree.
func printFailure(w io.Writer, f scenario.Failure, style Style) {
	indent := "  "
	if f.Turn > 0 {
		indent += "  "
	}
	if f.Call > 0 {
		indent += "  "
	}
	what := f.What
	if f.Path != "" {
		what += " " + f.Path
	}
	if f.Message != "" {
		what += ": " + f.Message
	}
	fmt.Fprintf(w, "%s%s\n", indent, clip.Line(what))
	if f.Expected != "" {
		fmt.Fprintf(w, "%s  %s\n", indent, style.paint(scenario.Passed, "expected: "+clip.Line(f.Expected)))
		fmt.Fprintf(w, "%s  %s\n", indent, style.paint(scenario.Failed, "got:      "+clip.Line(f.Got)))
	}
	if !f.Source.IsZero() {
		fmt.Fprintf(w, "%s  at %s\n", indent, f.Source)
	}
}

// GitHub writes the outcome as annotations of a GitHub workflow, with plain lines between them for the
// log of the job.
func GitHub(w io.Writer, r *scenario.Report, style Style) {
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		fmt.Fprintln(w, headline(s, style))
		for _, f := range s.Warnings {
			fmt.Fprintln(w, Annotation(f))
		}
		if s.Status == scenario.Skipped {
			fmt.Fprintln(w, Annotation(v1.Violation{Message: "scenario " + s.Name + " is skipped: " + s.Judgement(), Severity: v1.SeverityWarning, Source: s.Source}))
		}
		for _, f := range s.Failures {
			fmt.Fprintln(w, Annotation(v1.Violation{Message: "scenario " + s.Name + ": " + f.String(), Source: f.Source}))
		}
	}
	fmt.Fprintln(w, Summary(r, style))
}

// TAP writes the outcome in version 14 of the Test Anything Protocol (https://testanything.org).
func TAP(w io.Writer, r *scenario.Report, style Style) error {
	fmt.Fprintf(w, "TAP version 14\n1..%d\n", len(r.Scenarios))
	escape := strings.NewReplacer(`\`, `\\`, "#", `\#`)
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		ok, directive := "ok", " ("+s.Judgement()+")"
		switch s.Status {
		case scenario.Failed, scenario.Invalid:
			ok = "not ok"
		case scenario.Skipped:
			directive = " # SKIP " + clip.Line(s.Judgement())
		}
		fmt.Fprintf(w, "%s %d - %s%s\n", ok, i+1, escape.Replace(clip.Line(s.Name)), directive)
		for _, u := range s.Unjudged {
			fmt.Fprintf(w, "# %s: %s %s is not judged: %s\n", clip.Line(s.Name), v1.FieldPath(u.Field), clip.Line(u.Type), clip.Line(u.Reason))
		}
		if len(s.Failures) == 0 {
			continue
		}
		fmt.Fprintln(w, "  ---\n  failures:")
		for _, f := range s.Failures {
			fmt.Fprintf(w, "    - message: %s\n", strconv.Quote(f.String()))
			if !f.Source.IsZero() {
				fmt.Fprintf(w, "      at: %s\n", strconv.Quote(f.Source.String()))
			}
		}
		fmt.Fprintln(w, "  ...")
	}
	_, err := fmt.Fprintf(w, "# %s\n", Summary(r, style))
	return err
}
