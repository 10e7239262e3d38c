package gateway_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// named returns an object of a kind, whose name may have a namespace prefix.
func named(t *testing.T, kind, namespace, name, spec string) v1.Object {
	t.Helper()
	o := v1.NewObject(kind)
	if err := json.Unmarshal(fmt.Appendf(nil, `{"apiVersion":"toolctl.dev/v1","kind":%q,"metadata":{"name":%q,"namespace":%q},"spec":%s}`, kind, name, namespace, spec), o); err != nil {
		t.Fatal(err)
	}
	return o
}

// A name has the same meaning and policies whether the whole store is read or only the needed objects; and the other
// objects are not read.
func TestStoredTool(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	var objects []v1.Object
	mock := func(namespace, name string) {
		objects = append(objects, named(t, v1.KindTool, namespace, name, `{"description":"d","input_schema":{"type":"object"},"mock_result":1}`))
	}
	bound := func(namespace, name, server, remote string) {
		objects = append(objects, named(t, v1.KindTool, namespace, name, fmt.Sprintf(`{"description":"d","input_schema":{"type":"object"},"mcp":{"server":%q,"tool":%q}}`, server, remote)))
	}
	const others = 300
	for i := range others {
		mock(v1.DefaultNamespace, fmt.Sprintf("other-%d", i))
	}
	for _, ns := range []string{v1.DefaultNamespace, "prod"} {
		mock(ns, "get-weather")
		mock(ns, "weather.get")
		objects = append(objects,
			named(t, v1.KindMCPServer, ns, "git", `{"command":"git-mcp"}`), named(t, v1.KindMCPServer, ns, "a__b", `{"command":"x"}`), named(t, v1.KindMCPServer, ns, "hub", `{"command":"x"}`),
			named(t, v1.KindToolPolicy, ns, "careful", `{"blocklist":["push","git__tag","solo"],"max_total_tool_calls":9}`))
		bound(ns, "mine", "git", "push")
		bound(ns, "tag", "git", "tag")
		bound(ns, "odd", "hub", "git__nothing")
	}
	mock("prod", "only-prod")
	mock(v1.DefaultNamespace, "push") // makes the bare name ambiguous here
	bound(v1.DefaultNamespace, "first", "git", "twice")
	bound(v1.DefaultNamespace, "second", "hub", "twice")
	bound(v1.DefaultNamespace, "lonely", "hub", "solo")
	bound(v1.DefaultNamespace, "lost", "gone", "x")
	if _, err := st.Apply(t.Context(), objects, store.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	whole := open(t, gateway.Options{Store: st})
	for _, tc := range []struct {
		namespace, name string
		all             bool // it needs the whole store
	}{
		{"", "get-weather", false}, {"prod", "get-weather", false}, {"", "prod/get-weather", false}, {"default", "prod/get-weather", true}, {"", "weather.get", false},
		{"", "only-prod", false}, {"default", "only-prod", true}, {"", "other-7", false}, {"", "default/other-7", false},
		{"", "mine", false}, {"prod", "mine", false}, {"", "push", false}, {"prod", "push", true}, {"prod", "git__push", false}, {"", "git__push", false}, {"prod", "git.push", false},
		{"prod", "mcp__git__push", false}, {"", "prod/git__tag", false}, {"prod", "tag", false}, {"", "git__nothing", false}, {"prod", "git__nothing", false}, {"", "twice", true}, {"", "solo", true}, {"", "lonely", false},
		{"", "a__b__c", false}, {"", "lost", false}, {"", "nothing", true}, {"", "", true}, {"", "prod/", true}, {"", "get-wether", true}, {"", "__", true}, {"", "mcp__", true},
	} {
		t.Run(tc.namespace+" "+tc.name, func(t *testing.T) {
			g := open(t, gateway.Options{Store: st, Source: gateway.StoredTool(st, tc.namespace, tc.name)})
			if diff := cmp.Diff(decided(t, whole, tc.namespace, tc.name), decided(t, g, tc.namespace, tc.name)); diff != "" {
				t.Errorf("-of all +of what is needed:\n%s", diff)
			}
			if !slices.Equal(keys(whole.ServersNamed(tc.namespace, tc.name)), keys(g.ServersNamed(tc.namespace, tc.name))) {
				t.Errorf("servers %v, want %v", g.ServersNamed(tc.namespace, tc.name), whole.ServersNamed(tc.namespace, tc.name))
			}
			if read := len(g.Registry().Objects()); (read >= others) != tc.all {
				t.Errorf("%d objects were read, all of them: %v", read, tc.all)
			}
		})
	}
}

func keys(all []v1.Key) []string {
	var names []string
	for _, k := range all {
		names = append(names, k.String())
	}
	return names
}

// decided returns the result of a call by a name, without the similar names for a missing tool.
func decided(t *testing.T, g *gateway.Gateway, namespace, name string) any {
	t.Helper()
	it, err := g.Registry().Lookup(namespace, name)
	var missing *v1.NotFoundError
	if errors.As(err, &missing) && !missing.Ambiguous {
		return "not found"
	}
	if err != nil {
		return err.Error()
	}
	plan, err := g.Registry().Plan(t.Context(), v1.Call{Tool: name, Namespace: namespace, Session: "s", Args: []byte(`{}`)})
	return struct {
		Tool  string
		Ready bool
		Plan  registry.Plan
		Err   string
	}{it.Tool().Key().String(), it.Ready, plan, fmt.Sprint(err)}
}
