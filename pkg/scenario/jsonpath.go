package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/theory/jsonpath"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Limits for a JSONPath, because its parser recurses and each ".." multiplies the work.
const (
	maxPathLength  = 512
	maxDescendants = 2
)

// hasAddress reports whether a member of an object is a JSONPath.
func hasAddress(want map[string]any) bool {
	for key := range want {
		if strings.HasPrefix(key, "$") {
			return true
		}
	}
	return false
}

// addresses compares the values that the JSONPaths of an object select (RFC 9535). "$" is the
// value that the object is compared with. Its other members are compared as a subset.
func (m *matcher) addresses(want map[string]any, got any, path, field string) {
	rest := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if !strings.HasPrefix(key, "$") {
			rest[key] = want[key]
			continue
		}
		m.address(key, want[key], got, path, v1.Pointer(field, key))
	}
	if len(rest) > 0 {
		m.object(rest, got, path, field)
	}
}

func (m *matcher) address(addr string, want, got any, path, field string) {
	p, err := parsePath(addr)
	if err != nil {
		m.differ(path, field, "a JSONPath that can be read: "+err.Error(), got)
		return
	}
	at := path + strings.TrimPrefix(addr, "$")
	if _, gone := got.(absentValue); gone {
		m.value(want, got, at, field)
		return
	}
	located := p.SelectLocated(got)
	located.Sort()
	if p.Query().Singular() != nil {
		if len(located) == 0 {
			m.value(want, absentValue{}, at, field)
			return
		}
		m.value(want, located[0].Node, at, field)
		return
	}
	nodes := make([]any, len(located))
	for i, n := range located {
		nodes[i] = n.Node
	}
	if cond, ok := want.(map[string]any); ok && isCondition(cond) {
		if _, asks := cond["exists"]; asks && len(nodes) == 0 {
			m.value(want, absentValue{}, at, field)
			return
		}
	}
	m.value(want, nodes, at, field)
}

func parsePath(addr string) (*jsonpath.Path, error) {
	if len(addr) > maxPathLength {
		return nil, fmt.Errorf("it is longer than %d bytes", maxPathLength)
	}
	if n := strings.Count(addr, ".."); n > maxDescendants {
		return nil, fmt.Errorf("it has %d times \"..\", more than %d", n, maxDescendants)
	}
	p, err := jsonpath.Parse(addr)
	if err != nil {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(err.Error(), "jsonpath: "))
	}
	return p, nil
}
