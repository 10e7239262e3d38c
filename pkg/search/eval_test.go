package search_test

import (
	"errors"
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
	resolve := func(name string) (string, error) {
		if name != "a" {
			return "", errors.New("no tool " + name)
		}
		return "default__a", nil
	}
	cases, violations := search.ReadCases(strings.NewReader("\n{\"ask\": \"x\", \"right\": [[\"a\"]]}\r\n\n"), "asks.jsonl", resolve)
	if violations != nil || len(cases) != 1 || cases[0].Ask != "x" || cases[0].Right[0][0] != "default__a" {
		t.Fatal(cases, violations)
	}
	_, violations = search.ReadCases(strings.NewReader(`{"ask": "x", "right": [["a"], ["b"]]}
{"ask": " ", "right": [["a"]]}
{"ask": "x"}
{"ask": "x", "right": [[]]}
{"ask": "x", "right": [["a"]]} {}
nonsense
{"ask": "x", "right": [["a"]], "wrong": 1}
{"ask": 1, "right": [["a"]]}
[]`), "asks.jsonl", resolve)
	want := []string{
		`asks.jsonl:1: "right": no tool b`, `asks.jsonl:2: "ask" is missing or blank`, `asks.jsonl:3: "right" or a list in it is missing or empty`,
		`asks.jsonl:4: "right" or a list in it is missing or empty`, `asks.jsonl:5: more than one value on the line`, "asks.jsonl:6: invalid character", `asks.jsonl:7: unknown field "wrong"`,
		`asks.jsonl:8: "ask": unexpected number; a line is {`, `asks.jsonl:9: "": unexpected array`,
	}
	if len(violations) != len(want) {
		t.Fatalf("got %d violations, want %d:\n%v", len(violations), len(want), violations)
	}
	for i, v := range violations {
		if !strings.HasPrefix(v.String(), want[i]) {
			t.Errorf("got %q, want %q", v, want[i])
		}
	}
	_, violations = search.ReadCases(strings.NewReader("\n"+strings.Repeat(" ", 2<<20)), "asks.jsonl", nil)
	if len(violations) != 1 || violations[0].String() != "asks.jsonl:2: bufio.Scanner: token too long" {
		t.Errorf("a line that is too long: %v", violations)
	}
}
