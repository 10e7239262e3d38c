package diff

import (
	"cmp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/search"
)

var toolsetRules = []rule{
	{"", "", []string{"/spec/include", "/spec/exclude", "/spec/principals", "/spec/groups"}},
	{Neutral, "clients read the description as the instructions of the server", []string{"/spec/description"}},
	{Neutral, "clients see other tools before they search", []string{"/spec/pinned"}},
	{Risky, "clients may have to search for the tools that they listed, or list those that they searched for", []string{"/spec/discovery", "/spec/list_limit", "/spec/list_tokens"}},
}

// selectable is a tool or a prompt that a toolset may select.
type selectable struct {
	kind string
	policy.Subject
}

func (j *judgement) toolset(before, after *v1.Toolset) {
	j.byRules(toolsetRules)
	if at := cmp.Or(j.first("/spec/include"), j.first("/spec/exclude")); at != "" {
		j.selection(at, before, after)
	}
	at := cmp.Or(j.first("/spec/principals"), j.first("/spec/groups"))
	b, a := slices.Concat(before.Spec.Principals, before.Spec.Groups), slices.Concat(after.Spec.Principals, after.Spec.Groups)
	switch {
	case at == "":
	case len(b) == 0:
		j.add(Tighter, at, "only some callers may use the toolset: "+strings.Join(a, ", "), nil)
	case len(a) == 0:
		j.add(Looser, at, "every caller may use the toolset", nil)
	default:
		if gone := cmp.Or(missing(before.Spec.Principals, after.Spec.Principals), missing(before.Spec.Groups, after.Spec.Groups)); gone != "" {
			j.add(Tighter, at, "these callers may no longer use the toolset: "+gone, nil)
		}
		if more := cmp.Or(missing(after.Spec.Principals, before.Spec.Principals), missing(after.Spec.Groups, before.Spec.Groups)); more != "" {
			j.add(Looser, at, "more callers may use the toolset: "+more, nil)
		}
	}
}

// selection judges a change of the content of a toolset by the tools and prompts around it.
func (j *judgement) selection(at string, before, after *v1.Toolset) {
	var gone, more []string
	for _, o := range j.world.selectables {
		switch was, is := search.Contains(before, o.kind, o.Subject), search.Contains(after, o.kind, o.Subject); {
		case was && !is:
			gone = append(gone, o.Name)
		case is && !was:
			more = append(more, o.Name)
		}
	}
	text := func(names []string) string {
		slices.Sort(names)
		return clip.Words(strings.Join(slices.Compact(names), ", "), 200)
	}
	if gone != nil {
		j.add(Breaking, at, "no longer in the toolset: "+text(gone), nil)
	}
	if more != nil {
		j.add(Looser, at, "now in the toolset: "+text(more), nil)
	}
	if gone == nil && more == nil {
		j.add(Unknown, at, "no tool or prompt of a manifest enters or leaves the toolset; those of MCP servers may", nil)
	}
}
