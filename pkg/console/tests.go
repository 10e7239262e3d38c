package console

import (
	"errors"
	"io/fs"
	"slices"
	"time"

	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

// testView is the report of the last 'toolctl test', restricted to the parts that a person may see.
type testView struct {
	Time      time.Time          `json:"time,omitzero"`
	Paths     []string           `json:"paths,omitempty"`
	Scenarios []scenarioView     `json:"scenarios,omitempty"`
	Coverage  *scenario.Coverage `json:"coverage,omitempty"`
	Counts    map[string]int     `json:"counts,omitempty"`
	// Hidden is the number of scenarios that call tools which the person does not see.
	Hidden int `json:"hidden,omitempty"`
	// More is the number of further scenarios, which are counted and left out.
	More int `json:"more,omitempty"`
	// Problem says why there is no report.
	Problem string `json:"problem,omitempty"`
}

// Limits of the displayed report.
const (
	maxScenarios = 500
	maxFailures  = 20
)

// tests reads the report of 'toolctl test'.
func (c *Console) tests(r *request) testView {
	path := c.opts.TestReport
	if path == "" {
		return testView{Problem: "no test report is configured: start the console with --test-report FILE, or in a folder that has .toolctl/ in it or in a parent"}
	}
	k, err := report.ReadKept(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return testView{Problem: "no scenario has run yet: 'toolctl test' writes its report to " + path}
	case err != nil:
		return testView{Problem: err.Error()}
	}
	v := testView{Time: k.Time, Coverage: c.viewCoverage(r, k.Coverage), Counts: map[string]int{}}
	if c.operates(r.person) {
		v.Paths = k.Paths
	}
	sees := c.toolSight(r)
	for _, s := range k.Report.Scenarios {
		if slices.ContainsFunc(s.Turns, func(t scenario.Turn) bool {
			return slices.ContainsFunc(t.Calls, func(call scenario.Call) bool { return !sees(call.Result.Namespace, call.Result.Tool) })
		}) {
			v.Hidden++
			continue
		}
		v.Counts[s.Status]++
		if len(v.Scenarios) < maxScenarios {
			v.Scenarios = append(v.Scenarios, c.viewScenario(r, &s))
		} else {
			v.More++
		}
	}
	return v
}

func (c *Console) apiTests(r *request) (any, error) { return c.tests(r), nil }
