package search_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/search"
)

func toolset(spec v1.ToolsetSpec) *v1.Toolset {
	s := v1.NewObject(v1.KindToolset).(*v1.Toolset)
	s.Metadata.Name, s.Spec = "support", spec
	return s
}

// tool returns the subject of NAMESPACE/NAME with labels; a name with "__" is a tool of the server before it.
func tool(full string, labels ...string) policy.Subject {
	namespace, name, _ := strings.Cut(full, "/")
	o := policy.Subject{Namespace: namespace, Name: name, Labels: map[string]string{}}
	for _, l := range labels {
		k, v, _ := strings.Cut(l, "=")
		o.Labels[k] = v
	}
	if server, remote, ok := strings.Cut(name, "__"); ok {
		o.Server, o.Remote, o.Discovered, o.Bare = server, remote, true, true
		o.ServerLabels, o.Labels = o.Labels, nil
	}
	return o
}

func TestContains(t *testing.T) {
	entries := func(all ...v1.ToolsetMatch) []v1.ToolsetMatch { return all }
	tools := func(names ...string) v1.ToolsetMatch { return v1.ToolsetMatch{Tools: names} }
	team := map[string]string{"team": "support"}
	crm := policy.Subject{Namespace: "default", Server: "crm", ServerLabels: team}
	for _, tc := range []struct {
		name string
		spec v1.ToolsetSpec
		kind string
		o    policy.Subject
		want bool
	}{
		{"no include", v1.ToolsetSpec{}, v1.KindTool, tool("default/a"), true},
		{"no include, elsewhere", v1.ToolsetSpec{}, v1.KindTool, tool("pay/a"), false},
		{"an empty include", v1.ToolsetSpec{Include: []v1.ToolsetMatch{}}, v1.KindTool, tool("default/a"), false},
		{"a name", v1.ToolsetSpec{Include: entries(tools("a"))}, v1.KindTool, tool("default/a"), true},
		{"a pattern", v1.ToolsetSpec{Include: entries(tools("b", "a*"))}, v1.KindTool, tool("default/ab"), true},
		{"another name", v1.ToolsetSpec{Include: entries(tools("a"))}, v1.KindTool, tool("default/ab"), false},
		{"every name, elsewhere", v1.ToolsetSpec{Include: entries(tools("*"))}, v1.KindTool, tool("pay/a"), false},
		{"a name with its namespace", v1.ToolsetSpec{Include: entries(tools("pay/a"))}, v1.KindTool, tool("pay/a"), true},
		{"a namespace that only begins like it", v1.ToolsetSpec{Include: entries(tools("pay*"))}, v1.KindTool, tool("payments/a"), false},
		{"a form of the name", v1.ToolsetSpec{Include: entries(tools("mcp__crm__*"))}, v1.KindTool, tool("default/crm__get"), true},
		{"a pattern does not let a server's name in", v1.ToolsetSpec{Include: entries(tools("get*"))}, v1.KindTool, tool("default/crm__get"), false},
		{"a pattern keeps a server's name out", v1.ToolsetSpec{Exclude: entries(tools("get*"))}, v1.KindTool, tool("default/crm__get"), false},
		{"excluded", v1.ToolsetSpec{Include: entries(tools("a*")), Exclude: entries(tools("ab"))}, v1.KindTool, tool("default/ab"), false},
		{"excluded elsewhere only", v1.ToolsetSpec{Include: entries(tools("pay/*")), Exclude: entries(tools("a"))}, v1.KindTool, tool("pay/a"), true},
		{"labels", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Labels: team})}, v1.KindTool, tool("default/a", "team=support"), true},
		{"labels of the server", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Labels: team})}, v1.KindTool, tool("default/crm__a", "team=support"), true},
		{"other labels", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Labels: team})}, v1.KindTool, tool("default/a", "team=sales"), false},
		{"labels, elsewhere", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Labels: team})}, v1.KindTool, tool("pay/a", "team=support"), false},
		{"an empty label is not an absent one", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Labels: map[string]string{"x": ""}})}, v1.KindTool, tool("default/a"), false},
		{"labels of a prompt", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Labels: team})}, v1.KindPrompt, tool("default/p", "team=support"), true},
		{"tools with labels are no prompts", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Labels: team, Tools: []string{"*"}})}, v1.KindPrompt, tool("default/p", "team=support"), false},
		{"both must match", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Labels: team, Tools: []string{"a"}})}, v1.KindTool, tool("default/b", "team=support"), false},
		{"prompts", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Prompts: []string{"reply-*"}})}, v1.KindPrompt, tool("default/reply-kindly"), true},
		{"prompts are no tools", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Prompts: []string{"*"}})}, v1.KindTool, tool("default/a"), false},
		{"tools and prompts", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Tools: []string{"a"}, Prompts: []string{"p"}})}, v1.KindTool, tool("default/a"), true},
		{"a server", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Servers: []string{"crm"}})}, v1.KindTool, tool("default/crm__get"), true},
		{"a server's prompt", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Servers: []string{"crm"}})}, v1.KindPrompt, tool("default/crm__reply"), true},
		{"some tools of a server", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Servers: []string{"crm"}, Tools: []string{"crm__get*"}})}, v1.KindTool, tool("default/crm__put"), false},
		{"a server elsewhere", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Servers: []string{"pay/crm"}})}, v1.KindTool, tool("pay/crm__get"), true},
		{"the server of that name elsewhere", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Servers: []string{"crm"}})}, v1.KindTool, tool("pay/crm__get"), false},
		{"every server, for a tool without one", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Servers: []string{"*"}})}, v1.KindTool, tool("default/a"), false},
		{"resources of a server", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Servers: []string{"crm"}})}, v1.KindMCPServer, crm, true},
		{"resources by label", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Labels: team})}, v1.KindMCPServer, crm, true},
		{"a tool brings no resources", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{Servers: []string{"crm"}, Tools: []string{"crm__get"}})}, v1.KindMCPServer, crm, false},
		{"an excluded server's resources", v1.ToolsetSpec{Exclude: entries(v1.ToolsetMatch{Servers: []string{"crm"}})}, v1.KindMCPServer, crm, false},
		{"an excluded tool keeps the resources", v1.ToolsetSpec{Exclude: entries(tools("crm__*"))}, v1.KindMCPServer, crm, true},
		{"an empty entry", v1.ToolsetSpec{Include: entries(v1.ToolsetMatch{})}, v1.KindTool, tool("default/a"), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := search.Contains(toolset(tc.spec), tc.kind, tc.o); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestPins(t *testing.T) {
	s := toolset(v1.ToolsetSpec{Pinned: []string{"get-*", "pay/refund"}})
	for full, want := range map[string]bool{"default/get-order": true, "default/crm__get-order": false, "pay/get-order": false, "pay/refund": true, "default/refund": false} {
		if got := search.Pins(s, tool(full)); got != want {
			t.Errorf("%s: got %v", full, got)
		}
	}
}

// Entries only ever add what they match or remove it, in any order, and what is in another namespace is never in a toolset
// that does not name that namespace.
func TestContainsProperties(t *testing.T) {
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a*", "*", "b__*", "b__a", "a/a", "a/*", "a/b__*", "mcp__b__a", "b.a"}), 0, 2)
	servers := rapid.SliceOfN(rapid.SampledFrom([]string{"b", "a/b", "*"}), 0, 1)
	entry := rapid.Custom(func(t *rapid.T) v1.ToolsetMatch {
		m := v1.ToolsetMatch{Tools: names.Draw(t, "tools"), Servers: servers.Draw(t, "servers"), Prompts: names.Draw(t, "prompts")}
		if rapid.Bool().Draw(t, "labelled") {
			m.Labels = map[string]string{"team": rapid.SampledFrom([]string{"x", "y"}).Draw(t, "team")}
		}
		return m
	})
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{v1.KindTool, v1.KindPrompt}).Draw(t, "kind")
		o := tool(rapid.SampledFrom([]string{"a", "default"}).Draw(t, "namespace")+"/"+rapid.SampledFrom([]string{"a", "b", "b__a", "b__b"}).Draw(t, "name"),
			rapid.SampledFrom([]string{"team=x", "team=y", "other=x"}).Draw(t, "label"))
		list := rapid.SliceOfN(entry, 0, 3)
		spec := v1.ToolsetSpec{Include: list.Draw(t, "include"), Exclude: list.Draw(t, "exclude")}
		one := entry.Draw(t, "one")
		had := search.Contains(toolset(spec), kind, o)

		more, less := spec, spec
		more.Include = append(slices.Clone(spec.Include), one)
		less.Exclude = append(slices.Clone(spec.Exclude), one)
		alone := search.Contains(toolset(v1.ToolsetSpec{Include: []v1.ToolsetMatch{one}, Exclude: spec.Exclude}), kind, o)
		if got := search.Contains(toolset(more), kind, o); got != (had || alone) {
			t.Fatalf("with one more entry included: %v; before %v, by the entry alone %v", got, had, alone)
		}
		if search.Contains(toolset(less), kind, o) && !had {
			t.Fatal("an exclusion brought it in")
		}
		if alone && search.Contains(toolset(less), kind, o) {
			t.Fatal("an entry that includes it does not exclude it")
		}
		slices.Reverse(more.Include)
		slices.Reverse(more.Exclude)
		if search.Contains(toolset(more), kind, o) != (had || alone) {
			t.Fatal("the order of entries matters")
		}
		if had && o.Namespace == "a" {
			for _, m := range spec.Include {
				if slices.ContainsFunc(slices.Concat(m.Tools, m.Servers, m.Prompts), func(p string) bool { return strings.HasPrefix(p, "a/") }) {
					return
				}
			}
			t.Fatal("it is in another namespace, which nothing names")
		}
	})
}
