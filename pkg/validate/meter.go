package validate

import (
	"encoding/json"
	"hash/maphash"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// A meter counts exactly which subschemas are applied to which values of one document.
type meter struct {
	g     *graph
	rank  []int // the position of a node in the graph's order
	steps float64
	text  float64
	seen  func(path string, node int) // called for each visit, if set
}

// measure returns a violation if checking v would take too long, and nil if an engine may check it.
func (g *graph) measure(v any) *v1.Violation {
	return g.meter().value(v, "", map[int]float64{0: 1})
}

// visits lists the paths of the values in v to which a node is applied.
func (g *graph) visits(node int, v any) []string {
	var paths []string
	m := g.meter()
	m.seen = func(path string, i int) {
		if i == node {
			paths = append(paths, path)
		}
	}
	m.value(v, "", map[int]float64{0: 1})
	return paths
}

func (g *graph) meter() *meter {
	m := &meter{g: g, rank: make([]int, len(g.nodes))}
	for r, i := range g.order {
		m.rank[i] = r
	}
	return m
}

// value counts v and all values inside it. visits holds the number of visits by each node.
func (m *meter) value(v any, path string, visits map[int]float64) *v1.Violation {
	active := m.expand(visits)
	unique := false
	for _, a := range active {
		n := &m.g.nodes[a.node]
		if m.seen != nil {
			m.seen(path, a.node)
		}
		obj, _ := n.schema.(map[string]any)
		unique = unique || obj["uniqueItems"] == true
		switch v := v.(type) {
		case string:
			m.steps += a.times
			m.text += a.times * n.text * float64(len(v))
		case map[string]any:
			m.steps += a.times * (1 + (n.checks-1)*float64(len(v)))
			for k := range v {
				m.text += a.times * n.text * float64(len(k))
			}
		default:
			m.steps += a.times * n.checks
		}
	}
	if arr, ok := v.([]any); ok && unique {
		m.steps += comparisons(arr)
	}
	if m.steps > maxSteps || m.text > maxText {
		return &v1.Violation{Path: path, Expected: "a document that can be checked in bounded time", Got: describe(v),
			Message: "document is too large for this schema: checking it would take too long"}
	}
	switch v := v.(type) {
	case map[string]any:
		for k, member := range v {
			at := v1.Pointer(path, k)
			if f := m.value(k, at, m.next(active, func(n *node, visit func(int)) { each(n.names, visit) })); f != nil {
				return f
			}
			if f := m.value(member, at, m.next(active, func(n *node, visit func(int)) {
				if j, ok := n.byName[k]; ok {
					visit(j)
				}
				each(n.anyName, visit)
			})); f != nil {
				return f
			}
		}
	case []any:
		for i, item := range v {
			if f := m.value(item, path+"/"+strconv.Itoa(i), m.next(active, func(n *node, visit func(int)) {
				if i < len(n.byIndex) {
					visit(n.byIndex[i])
				}
				each(n.anyItem, visit)
			})); f != nil {
				return f
			}
		}
	}
	return nil
}

func each(list []int, f func(int)) {
	for _, j := range list {
		f(j)
	}
}

type visit struct {
	node  int
	times float64
}

// expand adds the nodes that are applied in place. A node comes before those
// that are applied with it, so its count is complete when it is processed.
func (m *meter) expand(visits map[int]float64) []visit {
	todo := make([]int, 0, len(visits)) // ranks in ascending order
	for i := range visits {
		todo = append(todo, m.rank[i])
	}
	slices.Sort(todo)
	var active []visit
	for k := 0; k < len(todo); k++ {
		i := m.g.order[todo[k]]
		times := visits[i]
		active = append(active, visit{i, times})
		for _, j := range m.g.nodes[i].same {
			if at, known := slices.BinarySearch(todo, m.rank[j]); !known {
				todo = slices.Insert(todo, at, m.rank[j])
			}
			visits[j] += times
		}
	}
	return active
}

func (m *meter) next(active []visit, edges func(n *node, visit func(int))) map[int]float64 {
	visits := map[int]float64{}
	for _, a := range active {
		edges(&m.g.nodes[a.node], func(j int) { visits[j] += a.times })
	}
	return visits
}

// comparisons returns how many pairs of items the 2019-09 and 2020-12 engine compares
// for uniqueItems. It compares items with equal hashes, and the hash ignores the
// nesting of an item: [[],[]] and [[[]]] collide, so all items of a hostile array can
// collide.
func comparisons(arr []any) float64 {
	groups := map[uint64]float64{}
	first := map[uint64]any{}
	var h maphash.Hash
	total := 0.0
	for _, item := range arr {
		h.Reset()
		hashParts(&h, item)
		sum := h.Sum64()
		if other, ok := first[sum]; !ok {
			first[sum] = item
		} else if reflect.DeepEqual(item, other) {
			return total // the engine stops here too
		}
		total += groups[sum]
		groups[sum]++
	}
	return total
}

func hashParts(h *maphash.Hash, v any) {
	switch v := v.(type) {
	case map[string]any:
		h.WriteByte(0)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			hashParts(h, k)
			hashParts(h, v[k])
		}
	case []any:
		h.WriteByte(1)
		for _, item := range v {
			hashParts(h, item)
		}
	case string:
		h.WriteByte(4)
		h.WriteString(v)
	case json.Number:
		h.WriteByte(5)
		h.WriteString(strings.TrimPrefix(string(v), "-"))
	case bool:
		h.WriteByte(3)
	default:
		h.WriteByte(2)
	}
}
