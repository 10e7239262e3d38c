package search_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/search"
)

func TestEvaluate(t *testing.T) {
	found := map[string][]string{
		"both":  {"a", "x", "b"},
		"half":  {"x", "y", "a"},
		"late":  {"x", "y", "z", "u", "v", "w", "a"},
		"never": {"x"},
	}
	cases := []search.Case{
		{"both", [][]string{{"a"}, {"q", "b"}}}, {"half", [][]string{{"a"}, {"b"}}}, {"late", [][]string{{"a"}}}, {"never", [][]string{{"a"}}},
	}
	r := search.Evaluate(cases, func(ask string, _ int) []string { return found[ask] })
	want := search.Report{Cases: 4, Recall1: .5 / 4, Recall3: 1.5 / 4, Recall5: 1.5 / 4, Recall10: 2.5 / 4}
	if r.Cases != want.Cases || r.Recall1 != want.Recall1 || r.Recall3 != want.Recall3 || r.Recall5 != want.Recall5 || r.Recall10 != want.Recall10 {
		t.Errorf("got %+v, want %+v", r, want)
	}
	two := 1 + 1/math.Log2(3)
	if ndcg := ((1+.5)/two + .5/two + 1/math.Log2(8)) / 4; math.Abs(r.NDCG10-ndcg) > 1e-12 {
		t.Errorf("nDCG@10 is %v, want %v", r.NDCG10, ndcg)
	}
	var order []string
	for _, m := range r.Misses {
		order = append(order, m.Ask)
	}
	if got := strings.Join(order, " "); got != "never late half" {
		t.Errorf("the misses are in the order %s", got)
	}
	if m := r.Misses[1]; !slices.Equal(m.Ranks, []int{7}) || strings.Join(m.Found, "") != "xyzuv" {
		t.Errorf("miss %+v", m)
	}
	if r := search.Evaluate(nil, nil); r.Cases != 0 || r.Recall5 != 0 || r.Misses == nil {
		t.Errorf("no cases: %+v", r)
	}
}

func TestReadCases(t *testing.T) {
	known := func(name string) bool { return name == "a" }
	cases, err := search.ReadCases(strings.NewReader("\n{\"ask\": \"x\", \"right\": [[\"a\"]]}\r\n\n"), known)
	if err != nil || len(cases) != 1 || cases[0].Ask != "x" {
		t.Fatal(cases, err)
	}
	_, err = search.ReadCases(strings.NewReader(`{"ask": "x", "right": [["a"], ["b"]]}
{"ask": " ", "right": [["a"]]}
{"ask": "x"}
{"ask": "x", "right": [[]]}
{"ask": "x", "right": [["a"]]} {}
nonsense
{"ask": "x", "right": [["a"]], "wrong": 1}`), known)
	for _, want := range []string{
		`line 1: "right" names "b", and there is no such tool`, `line 2: "ask" is missing or blank`, `line 3: "right" or a list in it is missing or empty`,
		`line 4: "right" or a list in it is missing or empty`, `line 5: more than one value on the line`, "line 6: invalid character", `line 7: json: unknown field "wrong"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in:\n%v", want, err)
		}
	}
}
