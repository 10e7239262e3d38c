package registry

import (
	"fmt"
	"maps"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
)

// ReplaceGroup replaces all tools of a group in one step: a call sees either the old group or the new one. A group
// consists of the tools whose label [v1.LabelGroup] is its name, such as all tools of one provider; ReplaceGroup sets
// the label on copies of the given tools. Without tools it removes the group. [Registry.List] lists a group with the
// selector "toolctl.dev/group=NAME".
//
// It changes nothing and returns an error if a tool is broken, if two tools have the same name, or if a tool outside
// the group has the name of a given tool.
func (r *Registry) ReplaceGroup(group string, tools ...v1.Object) error {
	if group == "" || !v1.IsLabelValue(group) {
		return fmt.Errorf("registry: %q is not the name of a group: expected the value of a label", group)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.snap.Load()
	next := slices.DeleteFunc(slices.Clone(old.given), func(o v1.Object) bool {
		return o.Head().Kind == v1.KindTool && o.Head().Metadata.Labels[v1.LabelGroup] == group
	})
	taken := make(map[v1.Key]bool, len(next))
	for _, o := range next {
		taken[o.Head().Key()] = true
	}
	for _, t := range tools {
		key := t.Head().Key()
		if key.Kind != v1.KindTool {
			return fmt.Errorf("registry: %s is not a tool: a group can contain only tools", key)
		}
		if taken[key] {
			return fmt.Errorf("registry: %s is registered already, outside group %q or twice within it", key, group)
		}
		if violations := allViolations(t); hasError(violations) {
			return v1.NewValidationError(v1.ManifestInvalid, key.Name, violations)
		}
		taken[key] = true
		next = append(next, labelled(t, group))
	}
	r.swap(func(c *contents) { c.given = next })
	return nil
}

// labelled returns a copy of a tool with the label of a group.
func labelled(t v1.Object, group string) v1.Object {
	labels := maps.Clone(t.Head().Metadata.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1.LabelGroup] = group
	switch t := t.(type) {
	case *GoTool:
		c := *t
		c.Metadata.Labels = labels
		return &c
	case *v1.Tool:
		c := *t
		c.Metadata.Labels = labels
		return &c
	}
	return t
}
