package scenario

import (
	"math"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
)

// Kinds of [CoverageItem].
const (
	// CoverCalled: the tool was called.
	CoverCalled = "called"
	// CoverProperty: an argument was given.
	CoverProperty = "property"
	// CoverEnum: a value of an enum was given.
	CoverEnum = "enum"
	// CoverRequired: a call was refused because a required argument was missing.
	CoverRequired = "required"
	// CoverError: a call failed, because of its "arguments" or in its "execution".
	CoverError = "error"
	// CoverRule: the rule of a policy decided on a call.
	CoverRule = "rule"
)

// Coverage is the part of tools and policies that the calls of scenarios covered.
type Coverage struct {
	// Covered and Total count items, and Percent is their ratio: 100 if there are no items.
	Covered  int             `json:"covered"`
	Total    int             `json:"total"`
	Percent  float64         `json:"percent"`
	Tools    []CoveredObject `json:"tools"`
	Policies []CoveredObject `json:"policies"`
}

// CoveredObject is the coverage of one tool or policy.
type CoveredObject struct {
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Covered   int     `json:"covered"`
	Total     int     `json:"total"`
	Percent   float64 `json:"percent"`
	// Calls is the number of calls of a tool, or of decisions of a policy.
	Calls int            `json:"calls"`
	Items []CoverageItem `json:"items"`
}

// CoverageItem is one thing to cover.
type CoverageItem struct {
	// Kind is called, property, enum, required, error or rule.
	Kind string `json:"kind"`
	// Name is a JSON pointer into the arguments, followed by the value for an enum; the field
	// of a rule; or the kind of failure.
	Name    string `json:"name,omitempty"`
	Covered bool   `json:"covered"`
}

// Cover returns which parts of the tools and policies among the objects the calls of a report
// covered. Broken objects are left out.
func Cover(objects []v1.Object, report *Report) *Coverage {
	calls := map[v1.Key][]*Call{}
	fired := map[string]int{}
	for i := range report.Scenarios {
		for _, c := range allCalls(report.Scenarios[i].Turns) {
			calls[c.key] = append(calls[c.key], c)
			if d := c.Result.Policy; d != nil && d.Rule != "" {
				fired[d.Policy+"|"+d.Rule]++
			}
		}
	}
	out := &Coverage{Tools: []CoveredObject{}, Policies: []CoveredObject{}}
	for _, o := range objects {
		h := o.Head()
		if h.Broken() {
			continue
		}
		switch o := o.(type) {
		case *v1.Tool:
			out.Tools = append(out.Tools, coverTool(o, calls[o.Key()]))
		case *v1.ToolPolicy:
			out.Policies = append(out.Policies, coverPolicy(o, fired))
		}
	}
	for _, list := range [][]CoveredObject{out.Tools, out.Policies} {
		slices.SortFunc(list, func(a, b CoveredObject) int {
			return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
		})
		for i := range list {
			list[i].count()
			out.Covered += list[i].Covered
			out.Total += list[i].Total
		}
	}
	out.Percent = percent(out.Covered, out.Total)
	return out
}

func (o *CoveredObject) count() {
	for _, item := range o.Items {
		o.Total++
		if item.Covered {
			o.Covered++
		}
	}
	o.Percent = percent(o.Covered, o.Total)
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 100
	}
	return math.Floor(float64(part)/float64(whole)*1000) / 10
}

func coverTool(t *v1.Tool, calls []*Call) CoveredObject {
	out := CoveredObject{Namespace: t.Namespace(), Name: t.Metadata.Name, Calls: len(calls)}
	add := func(kind, name string, covered bool) {
		out.Items = append(out.Items, CoverageItem{Kind: kind, Name: name, Covered: covered})
	}
	add(CoverCalled, "", len(calls) > 0)
	w := &schemaWalk{}
	w.schema(t.Spec.InputSchema)
	given := make([]map[string][]any, len(calls)) // values by pointer, for each call
	for i, c := range calls {
		given[i] = map[string][]any{}
		values("", c.args(), given[i], 0)
	}
	gave := func(pointer string, ok func(any) bool) bool {
		return slices.ContainsFunc(given, func(g map[string][]any) bool { return slices.ContainsFunc(g[pointer], ok) })
	}
	for _, p := range w.properties {
		add(CoverProperty, p, gave(p, func(any) bool { return true }))
	}
	for _, e := range w.enums {
		add(CoverEnum, e.pointer+" "+show(e.value), gave(e.pointer, func(v any) bool { return len(compareExact(e.value, v)) == 0 }))
	}
	for _, p := range w.required {
		covered := false
		for _, c := range calls {
			if err := c.Result.Error; err != nil && err.Type == v1.ArgsInvalid {
				covered = covered || slices.ContainsFunc(err.Violations, func(f v1.Violation) bool { return generalize(f.Path) == p && strings.Contains(f.Message, "missing") })
			}
		}
		add(CoverRequired, p, covered)
	}
	failed := func(refused bool) bool {
		return slices.ContainsFunc(calls, func(c *Call) bool {
			err := c.Result.Error
			return err != nil && (refused && err.Type == v1.ArgsInvalid || !refused && c.executed)
		})
	}
	if len(w.properties)+len(w.required) > 0 {
		add(CoverError, "arguments", failed(true))
	}
	add(CoverError, "execution", failed(false))
	return out
}

func compareExact(want, got any) []Difference {
	m := &matcher{exact: true}
	m.value(want, got, "$", "")
	return m.found
}

func coverPolicy(p *v1.ToolPolicy, fired map[string]int) CoveredObject {
	out := CoveredObject{Namespace: p.Namespace(), Name: p.Metadata.Name}
	name := p.Metadata.Name
	if p.Namespace() != v1.DefaultNamespace {
		name = p.Namespace() + "/" + name
	}
	for _, rule := range policy.RulesOf(&p.Spec) {
		n := fired[name+"|"+rule]
		out.Calls += n
		out.Items = append(out.Items, CoverageItem{Kind: CoverRule, Name: rule, Covered: n > 0})
	}
	return out
}
