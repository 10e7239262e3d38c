package search

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Case is one request and what should be found for it: each inner list names tools of which any is right.
type Case struct {
	Ask   string     `json:"ask"`
	Right [][]string `json:"right"`
}

// CaseForm is how a [Case] is written on a line.
const CaseForm = `{"ask": "…", "right": [["name"], ["one", "or another"]]}`

// maxLine is how many bytes a line of a file of cases may have.
const maxLine = 1 << 20

// ReadCases reads one case a line, as JSON; blank lines are skipped. It returns a violation for each line of the file that
// is not a case. Where resolve is given, it says by which name a search finds a tool that a case names, or why no search can
// find it, which is a violation too.
func ReadCases(r io.Reader, file string, resolve func(name string) (string, error)) (cases []Case, violations []v1.Violation) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	add := func(err error) {
		violations = append(violations, v1.Violation{Source: v1.Source{File: file, Line: n}, Message: err.Error()})
	}
	for lines.Scan() {
		n++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		if c, err := readCase(lines.Bytes(), resolve); err != nil {
			add(err)
		} else {
			cases = append(cases, c)
		}
	}
	if err := lines.Err(); err != nil {
		n++
		add(err)
	}
	return cases, violations
}

func readCase(line []byte, resolve func(string) (string, error)) (c Case, err error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	err = dec.Decode(&c)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return c, fmt.Errorf("%q: unexpected %s; a line is %s", wrong.Field, wrong.Value, CaseForm)
	}
	if err != nil {
		return c, fmt.Errorf("%s; a line is %s", strings.TrimPrefix(err.Error(), "json: "), CaseForm)
	}
	switch {
	case dec.More():
		return c, errors.New("more than one value on the line")
	case strings.TrimSpace(c.Ask) == "":
		return c, errors.New(`"ask" is missing or blank`)
	case len(c.Right) == 0 || slices.ContainsFunc(c.Right, func(any []string) bool { return len(any) == 0 }):
		return c, errors.New(`"right" or a list in it is missing or empty`)
	case resolve == nil:
		return c, nil
	}
	for _, any := range c.Right {
		for i, name := range any {
			if any[i], err = resolve(name); err != nil {
				return c, fmt.Errorf(`"right": %w`, err)
			}
		}
	}
	return c, nil
}

// Report says how well a search found what is right. Recall@k is the share of the inner lists of which any name is
// among the first k, NDCG10 the normalized discounted cumulative gain of the first ten; both are means over the cases,
// from 0 to 1.
type Report struct {
	Cases    int     `json:"cases"`
	Recall1  float64 `json:"recall@1"`
	Recall3  float64 `json:"recall@3"`
	Recall5  float64 `json:"recall@5"`
	Recall10 float64 `json:"recall@10"`
	NDCG10   float64 `json:"ndcg@10"`
	Misses   []Miss  `json:"misses"` // cases of which something is not among the first five, the worst first
}

// Miss is a case of which something was not among the first five.
type Miss struct {
	Case
	Recall5 float64  `json:"recall@5"`
	NDCG10  float64  `json:"ndcg@10"`
	Ranks   []int    `json:"ranks"` // of each inner list the best, from 1; 0 if none is among the first Depth
	Found   []string `json:"found"` // the first five
}

// Depth is how many names Evaluate asks for.
const Depth = 50

// Evaluate runs each case through find, which returns the names that fit an ask, the best first, at most limit.
func Evaluate(cases []Case, find func(ask string, limit int) []string) Report {
	r := Report{Cases: len(cases), Misses: []Miss{}}
	n := float64(max(1, len(cases)))
	for _, c := range cases {
		names := find(c.Ask, Depth)
		ranks := ranks(c.Right, names)
		m := Miss{c, recall(ranks, 5), ndcg10(ranks), ranks, names[:min(5, len(names))]}
		r.Recall1 += recall(ranks, 1) / n
		r.Recall3 += recall(ranks, 3) / n
		r.Recall5 += m.Recall5 / n
		r.Recall10 += recall(ranks, 10) / n
		r.NDCG10 += m.NDCG10 / n
		if slices.ContainsFunc(ranks, func(rank int) bool { return rank == 0 || rank > 5 }) {
			r.Misses = append(r.Misses, m)
		}
	}
	slices.SortStableFunc(r.Misses, func(a, b Miss) int {
		return cmp.Or(cmp.Compare(a.Recall5, b.Recall5), cmp.Compare(a.NDCG10, b.NDCG10))
	})
	return r
}

func recall(ranks []int, k int) (share float64) {
	for _, rank := range ranks {
		if rank > 0 && rank <= k {
			share += 1 / float64(len(ranks))
		}
	}
	return share
}

func ranks(right [][]string, names []string) []int {
	found := make([]int, len(right))
	for i, any := range right {
		found[i] = 1 + slices.IndexFunc(names, func(name string) bool { return slices.Contains(any, name) })
	}
	return found
}

// ndcg10 counts each inner list once, at its best rank, against an order that has them all at the top.
func ndcg10(ranks []int) float64 {
	var got, ideal float64
	for i, rank := range ranks {
		if rank > 0 && rank <= 10 {
			got += 1 / math.Log2(float64(rank)+1)
		}
		if i < 10 {
			ideal += 1 / math.Log2(float64(i)+2)
		}
	}
	return got / ideal
}
