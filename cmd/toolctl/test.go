package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

type testOptions struct {
	*app
	suite    action.Suite
	watch    bool
	coverage string
}

func newTestCmd(a *app) *cobra.Command {
	o := &testOptions{app: a}
	cmd := &cobra.Command{
		Use:   "test [PATH]...",
		Short: "Run scenarios against mocks and report failures",
		Long: `Run every scenario in parallel, each with its own counters and mocks. PATH is the same
as -f; without either, test reads the current folder. It makes no network calls: a
scenario fails if a tool has no mock.

Each scenario reports how many of its checks were evaluated: an expectation for each call
and each run of a scripted model, and its assertions. A scenario without an evaluated check
is skipped, and the report says why; --strict fails it, and also scenarios with some checks
that were not evaluated. Assertions of type llm_judge need --judge-model, with one of the
providers of 'toolctl run'. Their verdicts may differ from run to run.

The exit code is 1 if a scenario fails, and 3 if a Scenario manifest has errors.
Output formats (-o): table (the default), json, junit, tap, github.
The same files and seeds give the same output, byte for byte.

` + assertionNames() + `"toolctl explain scenario.spec.assertions" has their fields.`,
		Annotations: formats("table", "json", "junit", "tap", "github"),
		Example: `  toolctl test manifests/
  toolctl test --run weather --watch
  toolctl test -o junit > report.xml
  toolctl test --coverage=coverage.html --min-coverage 80`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.start(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.suite.Only, "run", "", "run only scenarios whose name matches this regular expression")
	bindSelector(f, &o.suite.Selector, "scenarios")
	f.BoolVar(&o.suite.Update, "update", false, "replace expectations that differ with the observed results")
	f.BoolVar(&o.watch, "watch", false, "run again whenever a file changes, until interrupted")
	f.StringVar(&o.suite.Shard, "shard", "", "run one part of the scenarios, as I/N: 2/4 is the second of four")
	f.BoolVar(&o.suite.FailFast, "fail-fast", false, "skip the remaining scenarios after the first failure")
	f.BoolVar(&o.suite.Strict, "strict", false, "fail scenarios with checks that were not evaluated")
	f.BoolVar(&o.suite.Live, "live", false, "call the real tools instead of mocks")
	a.bindNetwork(f, "with --live, ")
	f.DurationVar(&o.suite.Timeout, "timeout", time.Minute, "maximum time for one scenario")
	f.IntVar(&o.suite.Parallel, "parallel", 0, "number of scenarios to run at once (default: the number of processors)")
	f.StringVar(&o.coverage, "coverage", "", "report what the scenarios cover: table, or a file that ends in .json or .html")
	f.Lookup("coverage").NoOptDefVal = coverageTable
	f.Float64Var(&o.suite.MinCoverage, "min-coverage", 0, "fail if coverage is below this percentage")
	f.StringVar(&o.suite.Report, "report", "", "write the report with its coverage to this file, for the console (default: "+report.KeptFile+" beside the store, if there is one)")
	f.StringVar(&o.suite.Judge.Model, "judge-model", "", "model that evaluates llm_judge assertions, as PROVIDER:MODEL, such as openai:gpt-5-mini (default: none; they are not evaluated)")
	f.StringVar(&o.suite.Judge.Script, "judge-script", "", "file with the replies of a scripted judge, a YAML or JSON list; scenarios run one at a time")
	f.IntVar(&o.suite.Judge.MaxCalls, "max-judge-calls", 100, "maximum number of llm_judge assertions to evaluate; the others fail")
	f.StringVar(&o.suite.Responses, "mock-responses", "", "file with PromptKit mock responses, used as replies of the model")
	return cmd
}

// assertionNames lists the assertions that toolctl evaluates, in lines of at most 80 characters.
func assertionNames() string {
	var names []string
	for _, t := range v1.AssertionTypes() {
		if t.Unjudged == "" {
			names = append(names, t.Name)
		}
	}
	lines := regexp.MustCompile(`(.{1,80})( |$)`)
	return lines.ReplaceAllString("Assertions: "+strings.Join(names, ", ")+".", "$1\n")
}

// coverageTable is the value of --coverage without a file.
const coverageTable = "table"

func (o *testOptions) start(ctx context.Context, args []string) error {
	c := o.stored(ctx)
	if o.suite.Live {
		c = o.reaching(ctx)
	}
	o.watched(ctx)
	o.suite.Config, o.suite.Cover, o.suite.Paths = c, o.coverage != "", append(o.conf.Files, args...)
	o.suite.Problems, o.suite.Begun, o.suite.Updated = o.printViolations, o.progress, o.printUpdated
	for _, name := range args {
		if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(name, `/\.`) {
			return usagef("%s: no such file or folder: name a scenario with --run, as in --run %s", name, shellWord(name))
		}
	}
	if len(o.suite.Paths) == 0 {
		o.suite.Paths = []string{"."}
	}
	if o.coverage != "" && o.coverage != coverageTable && !strings.HasSuffix(o.coverage, ".json") && !strings.HasSuffix(o.coverage, ".html") {
		return usagef("--coverage=%s: expected a file that ends in .json or .html", o.coverage)
	}
	if !o.watch {
		t, err := o.suite.Run(ctx)
		return o.played(ctx, t, err)
	}
	o.lasting = true
	return o.suite.Watch(ctx, func(t *action.Tested, err error) {
		if err = o.played(ctx, t, err); err != nil && ctx.Err() == nil {
			o.report("toolctl test", err)
		}
		if ctx.Err() == nil {
			fmt.Fprintf(o.err, "watching %s; press Ctrl-C to stop\n", strings.Join(o.suite.Paths, ", "))
		}
	}, func(err error) { fmt.Fprintf(o.err, "warning: watch: %v\n", err) })
}

// played prints the report.
func (o *testOptions) played(ctx context.Context, t *action.Tested, err error) error {
	if err != nil {
		return err
	}
	format := o.format()
	if t.NotKept != nil {
		o.logger().Debug("the report was not saved for the console", "error", t.NotKept.Error())
	}
	if err := o.printReport(format, t.Report, "", ""); err != nil {
		return err
	}
	if err := o.reportCoverage(format, t.Coverage); err != nil {
		return err
	}
	return cmp.Or(ctx.Err(), t.Verdict())
}

func (a *app) printViolations(violations []v1.Violation) {
	for _, f := range violations {
		fmt.Fprintln(a.err, f)
	}
}

// printUpdated reports what --update changed in a file.
func (a *app) printUpdated(file string, n int, err error) {
	if err != nil {
		fmt.Fprintf(a.err, "warning: %s is not updated: %v\n", file, err)
		return
	}
	fmt.Fprintf(a.err, "updated %s: %s\n", file, count(n, "expectation"))
}

// progress shows the progress of a run in one line on a terminal.
func (a *app) progress(of int) (played func(scenario.Result), ended func()) {
	if !isTerminal(a.err) || !isTerminal(a.out) {
		return func(scenario.Result) {}, func() {}
	}
	w := a.err
	if s, ok := w.(screen); ok {
		w = s.w // the line moves the cursor, and contains no foreign text
	}
	n, bad := 0, 0
	return func(r scenario.Result) {
		n++
		if r.Status == scenario.Failed || r.Status == scenario.Invalid {
			bad++
		}
		fmt.Fprintf(w, "\r%d/%d played, %d failed", n, of, bad)
	}, func() { fmt.Fprint(w, "\r\x1b[K") }
}
