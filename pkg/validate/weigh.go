package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// counting lists the keywords that hold a count. Both engines fail silently for a count beyond a Go
// int.
var counting = []string{
	"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains", "maxContains",
}

const maxCount = 1<<53 - 1 // what JavaScript calls MAX_SAFE_INTEGER, which generators write for "no limit"

// weigh sets the cost of applying a schema object by itself, and records the
// violations that neither engine reports well.
func (g *graph) weigh(i int, obj map[string]any) {
	n := &g.nodes[i]
	n.checks = 1
	for _, kw := range counting {
		num, ok := obj[kw].(json.Number)
		if !ok {
			continue
		}
		if _, ok := asCount(num); !ok {
			g.violation(place{n.at.doc, n.at.ptr + "/" + kw}, fmt.Sprintf("an integer from 0 to %d", maxCount), "number "+string(num),
				"%s must be an integer from 0 to %d, got number %s", kw, maxCount, clip.Runes(string(num), maxGot))
		}
	}
	for _, kw := range []string{"enum", "required", "type", "examples"} {
		items, _ := obj[kw].([]any)
		if len(items) > maxList {
			g.violation(place{n.at.doc, n.at.ptr + "/" + kw}, fmt.Sprintf("at most %d items", maxList), describe(items),
				"%s has %d items: at most %d", kw, len(items), maxList)
		}
		if kw == "enum" {
			n.checks += enumCost(items)
		}
	}
	if p, ok := obj["pattern"].(string); ok {
		n.text += g.weighPattern(place{n.at.doc, n.at.ptr + "/pattern"}, p)
	}
	if named, ok := obj["properties"].(map[string]any); ok {
		n.checks += float64(len(named)) / 16 // gojsonschema searches these names linearly
	}
	if patterns, ok := obj["patternProperties"].(map[string]any); ok {
		for _, p := range slices.Sorted(maps.Keys(patterns)) {
			n.text += g.weighPattern(place{n.at.doc, v1.Pointer(n.at.ptr, "patternProperties", p)}, p)
			n.checks += 40 // gojsonschema compiles it again for each member
		}
	}
}

// enumCost returns the cost of comparing a value with all items. Numbers are expensive, because the
// 2020-12 engine converts both to exact fractions each time.
func enumCost(items []any) float64 {
	cost := 0.0
	for _, item := range items {
		if _, ok := item.(json.Number); ok {
			cost += 1.5
		} else {
			cost += 0.125
		}
	}
	return cost
}

func (g *graph) weighPattern(at place, pattern string) float64 {
	size, err := patternSize(pattern)
	if err != nil {
		g.violation(at, "a regular expression", strconv.Quote(pattern), "pattern %q cannot be used: %v", clip.Runes(pattern, maxGot), err)
	}
	return float64(size)
}

// asCount returns the value of a counting keyword as an integer; 3.0 counts as 3.
func asCount(n json.Number) (int64, bool) {
	if !isInteger(n) {
		return 0, false
	}
	if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
		return i, i >= 0 && i <= maxCount
	}
	f, err := n.Float64()
	if err != nil || f < 0 || f > maxCount {
		return 0, false
	}
	return int64(f), true
}

// checkCycles records a violation for each path from a schema back to itself that
// consumes no input, such as a reference to "#" or two definitions that refer to each
// other through allOf. No document could ever be checked against it, and
// gojsonschema would overflow the stack, which ends the process. Without a cycle
// it sets the order.
func (g *graph) checkCycles() {
	const (
		unseen = iota
		open
		done
	)
	state := make([]uint8, len(g.nodes))
	order := make([]int, 0, len(g.nodes))
	var trail []int
	cycles := 0
	var visit func(i int)
	visit = func(i int) {
		switch state[i] {
		case done:
			return
		case open:
			if cycles++; cycles <= maxViolations {
				g.cycleViolation(trail, i)
			}
			return
		}
		state[i] = open
		trail = append(trail, i)
		for _, j := range g.nodes[i].same {
			visit(j)
		}
		trail = trail[:len(trail)-1]
		state[i] = done
		order = append(order, i)
	}
	for i := range g.nodes {
		visit(i)
	}
	if cycles == 0 {
		slices.Reverse(order)
		g.order = order
	}
}

func (g *graph) cycleViolation(trail []int, back int) {
	start := 0
	for i, n := range trail {
		if n == back {
			start = i
		}
	}
	const show = 6
	var way []string
	for _, n := range append(append([]int{}, trail[start:]...), back) {
		way = append(way, "#"+g.nodes[n].at.ptr)
	}
	if len(way) > show {
		way = append(way[:show-1:show-1], "…", way[len(way)-1])
	}
	at := g.nodes[back].at
	g.violation(at, "a schema that reaches itself only through properties or items", strings.Join(way, " → "),
		"schema leads back to itself without reading any further input, so no value could ever be checked: %s", strings.Join(way, " → "))
}
