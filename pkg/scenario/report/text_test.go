package report_test

import (
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

func failing() *scenario.Report {
	at := v1.Source{File: "s.yaml", Line: 3, Column: 5}
	return &scenario.Report{Passed: 1, Failed: 1, Judged: 2, Total: 2, Scenarios: []scenario.Result{
		{Name: "good", Namespace: "default", Status: scenario.Passed},
		{Name: "bad # one", Namespace: "prod", Status: scenario.Failed, Failures: []scenario.Failure{
			{Turn: 1, Call: 2, Tool: "pay", What: "result", Path: "/a", Expected: "1", Got: "2\x1b", Source: at},
		}},
	}}
}

func TestText(t *testing.T) {
	var b strings.Builder
	report.Text(&b, failing(), report.Style{Step: "example", Paint: func(status, text string) string { return "<" + status + " " + text + ">" }})
	for _, want := range []string{
		"<passed PASS>  good  ", "<failed FAIL>  prod/bad # one  ", "\n  example 1\n    call 2 pay\n      result /a\n        <passed expected: 1>\n        <failed got:      2>\n        at s.yaml:3:5\n",
		"\n2 scenarios: 1 passed, 1 failed, 0 skipped\n",
	} {
		if !strings.Contains("\n"+b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestTAP(t *testing.T) {
	var b strings.Builder
	if err := report.TAP(&b, failing(), report.Style{Noun: "tool"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"TAP version 14\n1..2\nok 1 - good (", `not ok 2 - bad \# one (`, "\n  ---\n  failures:\n    - message: ", `at: "s.yaml:3:5"`, "# 2 tools: 1 passed, 1 failed, 0 skipped\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
}

func TestGitHub(t *testing.T) {
	var b strings.Builder
	report.GitHub(&b, failing(), report.Style{})
	if want := "::error file=s.yaml,line=3,col=5::scenario bad # one: "; !strings.Contains(b.String(), want) {
		t.Errorf("%q is not in\n%s", want, b.String())
	}
	if got, want := report.WorkflowCommand("notice", v1.Source{File: "a,b:c"}, "50%\nmore\x1b"), "::notice file=a%2Cb%3Ac,line=1,col=1::50%25%0Amore"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
