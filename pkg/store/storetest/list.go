package storetest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

func testList(t *testing.T, backend Backend) {
	st := backend.open(t)
	var objects []v1.Object
	for _, kind := range v1.Kinds() {
		for _, ns := range []string{"", "b", "a"} {
			for _, name := range []string{"z", "y"} {
				o := v1.NewObject(kind)
				raw(o)
				o.Head().Metadata.Namespace, o.Head().Metadata.Name = ns, name
				objects = append(objects, o)
			}
		}
	}
	rand.Shuffle(len(objects), func(i, j int) { objects[i], objects[j] = objects[j], objects[i] })
	mustApply(t, st, objects, store.ApplyOptions{Set: "all"})
	mustApply(t, st, []v1.Object{Tool("solo", "a")}, store.ApplyOptions{Set: "solo"})

	var all []string
	for _, kind := range v1.Kinds() {
		for _, rest := range []string{"a/y", "a/z", "b/y", "b/z", "default/solo", "default/y", "default/z"} {
			if kind == v1.KindTool || rest != "default/solo" {
				all = append(all, kind+" "+rest)
			}
		}
	}
	keep := func(part string) []string {
		return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return !strings.Contains(s, part) })
	}
	for _, tc := range []struct {
		name  string
		opts  store.ListOptions
		want  []string
		total int
	}{
		{"all", store.ListOptions{}, all, len(all)},
		{"kind", store.ListOptions{Kind: v1.KindPrompt}, keep("Prompt "), 6},
		{"unknown kind", store.ListOptions{Kind: "Bird"}, nil, 0},
		{"namespace", store.ListOptions{Namespace: "b"}, keep(" b/"), 2 * len(v1.Kinds())},
		{"kind and namespace", store.ListOptions{Kind: v1.KindTool, Namespace: "default"}, keep("Tool default/"), 3},
		{"name", store.ListOptions{Name: "solo"}, keep("solo"), 1},
		{"name of a kind in a namespace", store.ListOptions{Kind: v1.KindPrompt, Namespace: "a", Name: "z"}, keep("Prompt a/z"), 1},
		{"set", store.ListOptions{Set: "solo"}, keep("solo"), 1},
		{"set and namespace", store.ListOptions{Set: "solo", Namespace: "a"}, nil, 0},
		{"limit", store.ListOptions{Limit: 3}, all[:3], len(all)},
		{"offset", store.ListOptions{Offset: 29}, all[29:], len(all)},
		{"offset and limit over two kinds", store.ListOptions{Offset: 5, Limit: 12}, all[5:17], len(all)},
		{"offset past the end", store.ListOptions{Offset: 99, Limit: 1}, nil, len(all)},
		{"limit of a namespace", store.ListOptions{Namespace: "a", Offset: 1, Limit: 2}, keep(" a/")[1:3], 2 * len(v1.Kinds())},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list := mustList(t, st, tc.opts)
			var got []string
			for _, r := range list.Records {
				got = append(got, r.Key().String())
			}
			want := tc.want
			if tc.name == "kind and namespace" {
				want = slices.DeleteFunc(slices.Clone(want), func(s string) bool { return !strings.HasPrefix(s, "Tool ") })
			}
			if !slices.Equal(got, want) || list.Total != tc.total || list.ResourceVersion != int64(len(all)) {
				t.Errorf("got %q, total %d at %d\nwant %q, total %d at %d", got, list.Total, list.ResourceVersion, want, tc.total, len(all))
			}
		})
	}
	if _, err := st.List(t.Context(), store.ListOptions{Limit: -1}); err == nil || !strings.Contains(err.Error(), "limit -1 may not be negative") {
		t.Error(err)
	}
}

// testListRemote: tools are found by the name of the tool that they call on their server.
func testListRemote(t *testing.T, backend Backend) {
	st := backend.open(t)
	bound := func(name, mode, remote string) *v1.Tool {
		x := Tool(name, "a")
		x.Spec.MockResult, x.Spec.Mode, x.Spec.MCP = nil, mode, &v1.MCPToolSpec{Server: "git", Tool: remote}
		return x
	}
	mustApply(t, st, []v1.Object{bound("push", "", ""), bound("mine", v1.ModeMCP, "push"), bound("pull", "", "pull"), bound("off", v1.ModeMock, "push"), Tool("other", "a")}, store.ApplyOptions{})
	names := func() (names []string) {
		for _, r := range mustList(t, st, store.ListOptions{Remote: "push"}).Records {
			names = append(names, r.Key().Name)
		}
		return names
	}
	if got := names(); !slices.Equal(got, []string{"mine", "push"}) {
		t.Errorf("tools that call push: %q", got)
	}
	mustApply(t, st, []v1.Object{bound("mine", v1.ModeMCP, "pull")}, store.ApplyOptions{})
	if got := names(); !slices.Equal(got, []string{"push"}) {
		t.Errorf("after a change: %q", got)
	}
}

// testListDecodesInOrder lists more records than one worker decodes.
func testListDecodesInOrder(t *testing.T, backend Backend) {
	st := backend.open(t)
	mustApply(t, st, Tools(500, "a"), store.ApplyOptions{})
	for i, r := range mustList(t, st, store.ListOptions{}).Records {
		if want := fmt.Sprintf("tool-%04d", i); r.Key().Name != want || r.Object.Head().Source.File != "tools/"+want+".yaml" {
			t.Fatalf("record %d is %s from %s", i, r.Key(), r.Object.Head().Source)
		}
	}
}
