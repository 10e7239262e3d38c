package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

// printReport prints the outcome of scenarios.
func (o *testOptions) printReport(format string, r *scenario.Report) error {
	switch format {
	case "json":
		return printJSON(o.out, r)
	case "junit":
		return report.JUnit(o.out, r)
	case "tap":
		return o.printTAP(r)
	case "github":
		o.printGitHub(r)
		return nil
	}
	for i := range r.Scenarios {
		o.printScenario(&r.Scenarios[i])
	}
	fmt.Fprintln(o.out, summary(r, cmp.Or(o.noun, "scenario")))
	return nil
}

// summary is the last line: "3 scenarios: 2 passed, 1 failed, 0 skipped". Once something
// is not judged it says how much was.
func summary(r *scenario.Report, noun string) string {
	text := fmt.Sprintf("%s: %d passed, %d failed, ", count(len(r.Scenarios), noun), r.Passed, r.Failed)
	if r.Invalid > 0 {
		text += fmt.Sprintf("%d invalid, ", r.Invalid)
	}
	text += fmt.Sprintf("%d skipped", r.Skipped)
	if slices.ContainsFunc(r.Scenarios, func(s scenario.Result) bool {
		played := len(s.Turns) > 0 // and not only passed over after a failure
		return played && (s.Status == scenario.Skipped || len(s.Unjudged) > 0)
	}) {
		text += fmt.Sprintf("; judged %d of %d", r.Judged, r.Total)
	}
	return text
}

// headline is the line of one scenario: its state, its name and how much was judged.
func (o *testOptions) headline(s *scenario.Result) string {
	word, color := map[string]string{scenario.Passed: "PASS", scenario.Failed: "FAIL", scenario.Invalid: "INVALID", scenario.Skipped: "SKIP"}[s.Status], green
	switch s.Status {
	case scenario.Failed, scenario.Invalid:
		color = red
	case scenario.Skipped:
		color = yellow
	}
	name := s.Name
	if s.Namespace != v1.DefaultNamespace {
		name = s.Namespace + "/" + s.Name
	}
	text := fmt.Sprintf("%s  %s", o.paint(color, word), oneLine(name))
	if s.Status != scenario.Invalid {
		text += "  " + oneLine(s.Judgement())
	}
	return text
}

// printScenario prints one scenario: a line when it passed, else a tree of turns,
// calls and what differs; with -v the calls of a scenario that passed too.
func (o *testOptions) printScenario(s *scenario.Result) {
	fmt.Fprintln(o.out, o.headline(s))
	for _, w := range s.Warnings {
		fmt.Fprintf(o.out, "  %s\n", oneLine(w.String()))
	}
	if o.verbose {
		printCalls(o.out, s)
	}
	turn, call := -1, -1
	for _, f := range s.Failures {
		if f.Turn != turn {
			if turn, call = f.Turn, -1; turn > 0 {
				fmt.Fprintf(o.out, "  %s %d\n", cmp.Or(o.step, "turn"), turn)
			}
		}
		if f.Call != call {
			if call = f.Call; call > 0 {
				fmt.Fprintf(o.out, "    call %d %s\n", call, oneLine(f.Tool))
			}
		}
		o.printFailure(f)
	}
}

func printCalls(w io.Writer, s *scenario.Result) {
	for i, t := range s.Turns {
		for j, c := range t.Calls {
			got := string(c.Result.Content)
			if c.Result.Error != nil {
				got = c.Result.Error.Type + ": " + c.Result.Error.Message
			}
			fmt.Fprintf(w, "  %d.%d %s %s: %s %s\n", i+1, j+1, oneLine(c.Tool), oneLine(shorten(string(c.Args), 200)), c.Result.Status, oneLine(shorten(got, 300)))
		}
	}
}

// printFailure prints one difference, indented to its place in the tree.
func (o *testOptions) printFailure(f scenario.Failure) {
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
	fmt.Fprintf(o.out, "%s%s\n", indent, oneLine(what))
	if f.Expected != "" {
		fmt.Fprintf(o.out, "%s  %s\n", indent, o.paint(green, "expected: "+oneLine(f.Expected)))
		fmt.Fprintf(o.out, "%s  %s\n", indent, o.paint(red, "got:      "+oneLine(f.Got)))
	}
	if !f.Source.IsZero() {
		fmt.Fprintf(o.out, "%s  at %s\n", indent, f.Source)
	}
}

// printGitHub prints annotations, between lines that the log of a job shows as they are.
func (o *testOptions) printGitHub(r *scenario.Report) {
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		fmt.Fprintln(o.out, o.headline(s))
		for _, f := range s.Warnings {
			fmt.Fprintln(o.out, annotation(f))
		}
		if s.Status == scenario.Skipped {
			fmt.Fprintln(o.out, annotation(v1.Violation{Message: "scenario " + s.Name + " is skipped: " + s.Judgement(), Severity: v1.SeverityWarning, Source: s.Source}))
		}
		for _, f := range s.Failures {
			fmt.Fprintln(o.out, annotation(v1.Violation{Message: "scenario " + s.Name + ": " + f.String(), Source: f.Source}))
		}
	}
	fmt.Fprintln(o.out, summary(r, cmp.Or(o.noun, "scenario")))
}

// printTAP prints version 14 of the Test Anything Protocol (https://testanything.org).
func (o *testOptions) printTAP(r *scenario.Report) error {
	w := o.out
	fmt.Fprintf(w, "TAP version 14\n1..%d\n", len(r.Scenarios))
	escape := strings.NewReplacer(`\`, `\\`, "#", `\#`)
	for i := range r.Scenarios {
		s := &r.Scenarios[i]
		ok, directive := "ok", " ("+s.Judgement()+")"
		switch s.Status {
		case scenario.Failed, scenario.Invalid:
			ok = "not ok"
		case scenario.Skipped:
			directive = " # SKIP " + oneLine(s.Judgement())
		}
		fmt.Fprintf(w, "%s %d - %s%s\n", ok, i+1, escape.Replace(oneLine(s.Name)), directive)
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
	_, err := fmt.Fprintf(w, "# %s\n", summary(r, cmp.Or(o.noun, "scenario")))
	return err
}
