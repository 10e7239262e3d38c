package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

type testOptions struct {
	*app
	run, shard    string
	responses     string
	update, watch bool
	failFast      bool
	strict        bool
	live          bool
	timeout       time.Duration
	parallel      int
	coverage      string
	minCoverage   float64
	kept          string // file that the report is left in
	judge         judgeFlags

	noun, step   string // what the report calls a scenario and a turn; "" is these words
	only         *regexp.Regexp
	has          func(v1.Object) bool // the labels of -l
	part, shards int                  // of --shard, from 1; 0 is no shard
}

func newTestCmd(a *app) *cobra.Command {
	o := &testOptions{app: a}
	cmd := &cobra.Command{
		Use:   "test [PATH]...",
		Short: "Play Scenario manifests against mocks, and say what differs",
		Long: `Play every Scenario manifest of the files, in parallel, each with counters and
mocks of its own. PATH is the same as -f; without either, the current folder.
Nothing is called over the network: a tool without a mock fails its scenario.

Each scenario says how much of it was judged: an expectation for each call and each
run of a scripted model, and its assertions. One of which nothing is judged is
skipped, and says why; --strict fails it, and each one that is judged in part.
Assertions of the type llm_judge are not judged unless --judge-model names a model
of one of the providers that 'toolctl run' has. Their verdicts may differ each time.

The exit code is 1 when a scenario fails, 3 when a manifest of a scenario has
violations. Output formats (-o): table (the default), json, junit, tap, github.
The same files and seeds give the same output, byte for byte.

Assertions: ` + assertionNames() + `.
"toolctl explain scenario.spec.assertions" has their fields.`,
		Annotations: formats("table", "json", "junit", "tap", "github"),
		Example: `  toolctl test manifests/
  toolctl test --run weather --watch
  toolctl test -o junit > report.xml
  toolctl test --coverage=coverage.html --min-coverage 80`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.read(); err != nil {
				return err
			}
			return o.start(cmd.Context(), args)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.run, "run", "", "play only scenarios whose name this regular expression fits")
	a.bindSelector(f, "scenarios")
	f.BoolVar(&o.update, "update", false, "write what was observed into the expectations of calls that differ")
	f.BoolVar(&o.watch, "watch", false, "play again whenever a file changes, until interrupted")
	f.StringVar(&o.shard, "shard", "", "play one part of the scenarios, as I/N: 2/4 is the second of four")
	f.BoolVar(&o.failFast, "fail-fast", false, "skip what comes after the first scenario that does not pass")
	f.BoolVar(&o.strict, "strict", false, "fail a scenario of which something is not judged")
	f.BoolVar(&o.live, "live", false, "call the real tools instead of mocks")
	a.bindNetwork(f, "with --live, ")
	f.DurationVar(&o.timeout, "timeout", time.Minute, "time for one scenario")
	f.IntVar(&o.parallel, "parallel", 0, "how many scenarios to play at once (default: the number of processors)")
	f.StringVar(&o.coverage, "coverage", "", "say what the scenarios cover: a table, or a file that ends in .json or .html")
	f.Lookup("coverage").NoOptDefVal = coverageTable
	f.Float64Var(&o.minCoverage, "min-coverage", 0, "fail when less than this percentage is covered")
	f.StringVar(&o.kept, "report", "", "leave the report with its coverage in this file, for the console (default: "+report.KeptFile+" beside the store, where there is one)")
	f.StringVar(&o.judge.model, "judge-model", "", "model that judges llm_judge assertions, as PROVIDER:MODEL, such as openai:gpt-5-mini (default: none, and they are not judged)")
	f.StringVar(&o.judge.script, "judge-script", "", "file with the replies of a scripted judge, a YAML or JSON list; plays one scenario at a time")
	f.IntVar(&o.judge.maxCalls, "max-judge-calls", 100, "most llm_judge assertions that the judge is asked about; the others fail")
	f.StringVar(&o.responses, "mock-responses", "", "file of PromptKit's mock responses, which script the model")
	return cmd
}

// assertionNames lists the assertions that are judged.
func assertionNames() string {
	var b strings.Builder
	const width = 80
	line := len("Assertions: ")
	for _, t := range v1.AssertionTypes() {
		if t.Unjudged != "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
			if line += 2 + len(t.Name); line >= width {
				b.WriteByte('\n')
				line = len(t.Name)
			} else {
				b.WriteByte(' ')
			}
		} else {
			line += len(t.Name)
		}
		b.WriteString(t.Name)
	}
	return b.String()
}

// coverageTable is what --coverage without a file means.
const coverageTable = "table"

// read checks the flags.
func (o *testOptions) read() (err error) {
	if o.only, err = regexp.Compile(o.run); err != nil {
		return usagef("--run %q: %w", o.run, err)
	}
	if o.has, err = o.selected(); err != nil {
		return err
	}
	if o.shard != "" {
		i, n, ok := strings.Cut(o.shard, "/")
		part, err1 := strconv.Atoi(i)
		parts, err2 := strconv.Atoi(n)
		if !ok || err1 != nil || err2 != nil || part < 1 || part > parts {
			return usagef("--shard %q: expected I/N with I from 1 to N, such as 2/4", o.shard)
		}
		o.part, o.shards = part, parts
	}
	switch {
	case o.timeout <= 0:
		return usagef("--timeout %s: expected a time above 0", o.timeout)
	case o.judge.maxCalls < 1:
		return usagef("--max-judge-calls %d: expected a number above 0", o.judge.maxCalls)
	case o.parallel < 0:
		return usagef("--parallel %d: expected a number above 0", o.parallel)
	case o.minCoverage < 0 || o.minCoverage > 100:
		return usagef("--min-coverage %g: expected a percentage from 0 to 100", o.minCoverage)
	case o.update && o.live:
		return usagef("--update and --live cannot be used together: what a real tool gives is recorded with 'toolctl record'")
	case o.coverage != "" && o.coverage != coverageTable && !strings.HasSuffix(o.coverage, ".json") && !strings.HasSuffix(o.coverage, ".html"):
		return usagef("--coverage=%s: expected a file that ends in .json or .html", o.coverage)
	}
	return nil
}

func (o *testOptions) start(ctx context.Context, args []string) error {
	format := o.format()
	paths := append(o.files, args...)
	if len(paths) == 0 {
		paths = []string{"."}
	}
	if o.watch {
		return o.watchFiles(ctx, paths, func() error { return o.play(ctx, format, paths) })
	}
	return o.play(ctx, format, paths)
}

// play loads, plays and prints once.
func (o *testOptions) play(ctx context.Context, format string, paths []string) error {
	set, scenarios, err := o.load(ctx, paths)
	if err != nil {
		return err
	}
	played, cov, err := o.playSet(ctx, set, scenarios)
	if err != nil {
		return err
	}
	if o.update && o.writeUpdates(played) {
		if set, scenarios, err = o.load(ctx, paths); err != nil {
			return err
		}
		if played, cov, err = o.playSet(ctx, set, scenarios); err != nil {
			return err
		}
	}
	if err := o.keep(set, paths, played, cov); err != nil {
		return err
	}
	if err := o.printReport(format, played); err != nil {
		return err
	}
	if err := o.reportCoverage(format, cov); err != nil {
		return err
	}
	return o.verdict(ctx, set, played, cov)
}

// load reads the manifests and chooses the scenarios that are played.
func (o *testOptions) load(ctx context.Context, paths []string) (*manifest.Set, []*v1.Scenario, error) {
	set, err := manifest.Load(ctx, paths, o.manifestOptions(ctx))
	if err != nil {
		return nil, nil, usageError{err}
	}
	var scenarios []*v1.Scenario
	found, chosen := 0, 0
	for _, obj := range set.Objects {
		s, ok := obj.(*v1.Scenario)
		if !ok || o.namespace != "" && s.Namespace() != o.namespace {
			continue
		}
		found++
		if !o.only.MatchString(s.Metadata.Name) || !o.has(s) {
			continue
		}
		if o.shards == 0 || chosen%o.shards == o.part-1 {
			scenarios = append(scenarios, s)
		}
		chosen++
	}
	for _, f := range set.Violations {
		// Those of the scenarios are in the report.
		if !f.IsWarning() && !slices.ContainsFunc(scenarios, func(s *v1.Scenario) bool { return slices.Contains(s.Violations, f) }) {
			fmt.Fprintln(o.err, f)
		}
	}
	if found == 0 && set.Failed() {
		return nil, nil, statusError{exitInvalid, "no scenario can be read"}
	}
	if found == 0 {
		return nil, nil, usagef("no Scenario manifest in %s", strings.Join(paths, ", "))
	}
	if chosen == 0 {
		return nil, nil, usagef("--run %q fits none of %s", o.run, count(found, "scenario"))
	}
	return set, scenarios, nil
}

// playSet plays scenarios over the objects of their files.
func (o *testOptions) playSet(ctx context.Context, set *manifest.Set, scenarios []*v1.Scenario) (*scenario.Report, *scenario.Coverage, error) {
	responses, err := o.readResponses()
	if err != nil {
		return nil, nil, err
	}
	judge, err := o.newJudge()
	if err != nil {
		return nil, nil, err
	}
	progress := o.newProgress(len(scenarios))
	opts := scenario.Options{
		Responses: responses, Timeout: o.timeout, Parallel: o.parallel, FailFast: o.failFast, Strict: o.strict, Done: progress.done, Judge: judge,
	}
	if o.judge.script != "" { // its replies have an order
		opts.Parallel = 1
	}
	o.watched(ctx)
	if o.live {
		end, err := o.app.live(ctx, &opts)
		if err != nil {
			return nil, nil, err
		}
		defer end()
	}
	report, err := action.Test{Objects: set.Objects, Scenarios: scenarios, Options: opts}.Run(ctx)
	if err != nil {
		return nil, nil, err
	}
	progress.clear()
	var cov *scenario.Coverage
	if o.coverage != "" || o.minCoverage > 0 {
		cov = scenario.Cover(set.Objects, report)
	}
	return report, cov, nil
}

func (o *testOptions) readResponses() (*scenario.Responses, error) {
	if o.responses == "" {
		return nil, nil
	}
	data, err := regular.ReadFile(o.responses)
	if err != nil {
		return nil, usageError{err}
	}
	raw, place, violations := manifest.ToJSONPlaced(o.responses, data)
	var responses *scenario.Responses
	if raw != nil {
		var more []v1.Violation
		responses, more = scenario.ReadResponses(raw)
		for _, f := range more {
			f.Source = place(f.Path)
			violations = append(violations, f)
		}
	}
	manifest.SortViolations(violations)
	bad := 0
	for _, f := range violations {
		fmt.Fprintln(o.err, f)
		if !f.IsWarning() {
			bad++
		}
	}
	if bad > 0 {
		return nil, statusError{exitInvalid, fmt.Sprintf("%s in %s", count(bad, "error"), o.responses)}
	}
	return responses, nil
}

// verdict is the error that says what did not pass.
func (o *testOptions) verdict(ctx context.Context, set *manifest.Set, r *scenario.Report, cov *scenario.Coverage) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case r.Invalid > 0:
		text := count(r.Invalid, "scenario") + " cannot be played"
		if !slices.ContainsFunc(set.Objects, func(o v1.Object) bool { return o.Head().Kind == v1.KindTool }) {
			text += ": no Tool manifest was read; name the files of the tools, too (the store is not asked)"
		}
		return statusError{exitInvalid, text}
	case set.Failed():
		return statusError{exitInvalid, "manifests have errors: see 'toolctl validate'"}
	case r.Failed > 0:
		return statusError{exitFailed, fmt.Sprintf("%s failed", count(r.Failed, "scenario"))}
	case cov != nil && cov.Percent < o.minCoverage:
		return statusError{exitFailed, fmt.Sprintf("coverage is %.1f%%, below %g%%", cov.Percent, o.minCoverage)}
	}
	return nil
}
