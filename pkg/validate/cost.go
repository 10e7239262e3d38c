package validate

import (
	"fmt"
	"slices"
)

// Bounds of the cost of checking one document. A step is one subschema applied to one
// value, up to 1 µs; text counts one byte of a string against one instruction of a pattern.
const (
	maxSteps = 2_000_000
	maxText  = 200_000_000
	// maxFound is the maximum number of problems that are collected for one document.
	maxFound = 30_000
	// maxExpansion is the maximum number of times that one schema may visit one value, with all
	// nested allOf, anyOf and $ref expanded.
	maxExpansion = 100_000
	// maxChain is the maximum nesting of subschemas that apply to one value. Both engines recurse
	// once for each, at each level of the document, and a Go stack that outgrows 1 GB ends the
	// process.
	maxChain = 100
)

// costs bounds the work of a document from its survey alone: entry d holds for
// documents of depth d, and the last entry for all deeper ones if it is complete.
type costs struct {
	checks, text []float64
	complete     bool
	unique       bool // the schema contains uniqueItems
}

// costs counts, for each depth, the paths from the root schema to any subschema
// that an engine can follow in a document of that depth: an upper bound of the
// visits to one value. Without recursion in the schema, the counts soon stop growing.
func (g *graph) costs() costs {
	const maxTable = 24
	var c costs
	for _, n := range g.nodes {
		if obj, ok := n.schema.(map[string]any); ok && obj["uniqueItems"] == true {
			c.unique = true
		}
	}
	checks, text := make([]float64, len(g.nodes)), make([]float64, len(g.nodes))
	for depth := 0; depth <= maxTable && !c.complete; depth++ {
		nextChecks, nextText := make([]float64, len(g.nodes)), make([]float64, len(g.nodes))
		for k := len(g.order) - 1; k >= 0; k-- {
			i := g.order[k]
			n := &g.nodes[i]
			nextChecks[i], nextText[i] = n.checks, n.text
			for _, j := range n.same {
				nextChecks[i] += nextChecks[j]
				nextText[i] += nextText[j]
			}
			if depth == 0 {
				continue
			}
			n.inner(func(j int) {
				nextChecks[i] += checks[j]
				nextText[i] += text[j]
			})
		}
		c.complete = depth > 0 && nextChecks[0] == checks[0]
		checks, text = nextChecks, nextText
		c.checks, c.text = append(c.checks, checks[0]), append(c.text, text[0])
		if depth == 0 {
			g.checkExpansion(checks)
			g.checkChain()
		}
		if checks[0] > maxSteps {
			break
		}
	}
	return c
}

func (g *graph) checkExpansion(checks []float64) {
	worst := -1
	for i, n := range checks {
		if n > maxExpansion && (worst < 0 || n < checks[worst]) {
			worst = i
		}
	}
	if worst >= 0 {
		g.violation(g.nodes[worst].at, fmt.Sprintf("at most %d checks of one value", maxExpansion), "more",
			"schema expands to more than %d checks of one value; a chain of allOf, anyOf or $ref doubles it at each link", maxExpansion)
	}
}

func (g *graph) checkChain() {
	chain := make([]int, len(g.nodes))
	for _, i := range slices.Backward(g.order) {
		chain[i] = 1
		for _, j := range g.nodes[i].same {
			chain[i] = max(chain[i], 1+chain[j])
		}
		if chain[i] == maxChain+1 {
			g.violation(g.nodes[i].at, fmt.Sprintf("at most %d nested subschemas", maxChain), "more",
				"schema applies more than %d subschemas to one value, each through the next by allOf, anyOf, $ref or the like", maxChain)
			return
		}
	}
}

func (n *node) inner(f func(int)) {
	for _, j := range n.byName {
		f(j)
	}
	for _, js := range [][]int{n.anyName, n.names, n.byIndex, n.anyItem} {
		for _, j := range js {
			f(j)
		}
	}
}

// affordable reports whether the survey alone shows that a document is cheap to check.
func (c *costs) affordable(s *survey) bool {
	d := s.depth
	if d >= len(c.checks) {
		if !c.complete {
			return false
		}
		d = len(c.checks) - 1
	}
	const longArray = 1000
	return float64(s.values)*c.checks[d] <= maxSteps && float64(s.text)*c.text[d] <= maxText && !(c.unique && s.longest > longArray)
}

// checksOf returns an upper bound of the checks that a document needs, and so of its errors.
func (c *costs) checksOf(s *survey) float64 {
	return float64(s.values) * c.checks[min(s.depth, len(c.checks)-1)]
}
