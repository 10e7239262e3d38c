package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

// remote is an executor of mode mcp that returns the name of the called tool.
type remote struct{ err error }

func (remote) Name() string { return v1.ModeMCP }

func (r remote) Execute(_ context.Context, t *v1.Tool, _ json.RawMessage) (v1.Result, error) {
	content, err := json.Marshal(t.Spec.MCP.Server + ":" + t.Spec.MCP.Tool + ":" + t.Spec.Description)
	return v1.Result{Content: content}, errors.Join(err, r.err)
}

func server(name string) *v1.MCPServer {
	s := &v1.MCPServer{Spec: v1.MCPServerSpec{Command: "true"}}
	s.APIVersion, s.Kind, s.Metadata.Name = v1.APIVersion, v1.KindMCPServer, name
	return s
}

// offered returns a tool as pkg/mcp does: its Source names the server, and its name need not be valid.
func offered(server, name, remote string) *v1.Tool {
	t := bound(name, server, remote)
	t.Spec.Description = "offered"
	t.Source = v1.Source{File: "mcpserver/" + server}
	return t
}

func bound(name, server, remote string) *v1.Tool {
	t := &v1.Tool{Spec: v1.ToolSpec{Description: "declared", InputSchema: json.RawMessage(`{"type":"object"}`), Mode: v1.ModeMCP, MCP: &v1.MCPToolSpec{Server: server, Tool: remote}}}
	t.APIVersion, t.Kind, t.Metadata.Name = v1.APIVersion, v1.KindTool, name
	return t
}

func keyOf(server string) v1.Key {
	return v1.Key{Kind: v1.KindMCPServer, Namespace: v1.DefaultNamespace, Name: server}
}

func discovering(t *testing.T, executor registry.Executor, objects ...v1.Object) *registry.Registry {
	t.Helper()
	reg, err := registry.New(objects, registry.Options{Executors: []registry.Executor{executor}})
	if err != nil {
		t.Fatal(err)
	}
	return reg
}

func toolNames(t *testing.T, reg *registry.Registry) []string {
	t.Helper()
	p, err := reg.List(registry.Query{Kind: v1.KindTool})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, it := range p.Items {
		n := it.Object.Head().Metadata.Name
		if it.Server.Name != "" {
			n += " of " + it.Server.Name
		}
		if !it.Ready {
			n += " not ready: " + it.Reason()
		}
		names = append(names, n)
	}
	return names
}

func TestDiscovered(t *testing.T) {
	reg := discovering(t, remote{}, server("fs"), server("web"), bound("reader", "fs", "read"), bound("web__mine", "web", "other"))
	objects := len(reg.Objects())
	reg.SetDiscovered(keyOf("fs"), registry.Discovery{Tools: []*v1.Tool{offered("fs", "fs__read", "read"), offered("fs", "fs__getSum", "getSum")}})
	reg.SetDiscovered(keyOf("web"), registry.Discovery{Tools: []*v1.Tool{offered("web", "web__mine", "mine"), offered("web", "web__get", "get")}})

	want := []string{"fs__getSum of fs", "reader", "web__get of web", "web__mine"}
	if got := toolNames(t, reg); !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
	if got := len(reg.Objects()); got != objects {
		t.Errorf("Objects returns %d, want the %d that were declared", got, objects)
	}
	for name, content := range map[string]string{
		"fs__getSum":         `"fs:getSum:offered"`,
		"fs.getSum":          `"fs:getSum:offered"`,
		"getSum":             `"fs:getSum:offered"`,
		"default/fs__getSum": `"fs:getSum:offered"`,
		"default/fs.getSum":  `"fs:getSum:offered"`,
		"fs__read":           `"fs:read:declared"`, // the manifest that binds it wins
		"read":               `"fs:read:declared"`,
		"web__mine":          `"web:other:declared"`, // and so does a manifest with the same name
	} {
		res, err := reg.Execute(t.Context(), v1.Call{Tool: name})
		if err != nil || string(res.Content) != content {
			t.Errorf("%s: got %s, %v, want %s", name, res.Content, err, content)
		}
	}
	// A later discovery replaces the earlier one, and Replace keeps the parts that still apply.
	reg.SetDiscovered(keyOf("web"), registry.Discovery{})
	reg.Replace([]v1.Object{server("web")})
	if got := toolNames(t, reg); got != nil {
		t.Errorf("after Replace: %q", got)
	}
	reg.SetDiscovered(keyOf("gone"), registry.Discovery{Tools: []*v1.Tool{offered("gone", "gone__x", "x")}})
	if got := toolNames(t, reg); got != nil {
		t.Errorf("a server that is not there: %q", got)
	}
}

func TestDiscoveredBareNames(t *testing.T) {
	reg := discovering(t, remote{}, server("a"), server("b"))
	for _, s := range []string{"a", "b"} {
		reg.SetDiscovered(keyOf(s), registry.Discovery{Tools: []*v1.Tool{offered(s, "search", "search")}})
	}
	for _, name := range []string{"search", "default/search"} {
		_, err := reg.Execute(t.Context(), v1.Call{Tool: name})
		if want := `tool "` + name + `" is ambiguous: it matches default/a__search and default/b__search`; err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	for _, name := range []string{"a__search", "default/a__search"} {
		if res, err := reg.Execute(t.Context(), v1.Call{Tool: name}); err != nil || string(res.Content) != `"a:search:offered"` {
			t.Errorf("%s: got %s, %v", name, res.Content, err)
		}
	}
}

func TestDiscoveredNotReady(t *testing.T) {
	down := &v1.MCPError{Server: "fs", Message: "connection refused"}
	refused := &v1.PolicyError{Tool: "fs__write", Policy: "toolctl.lock", Rule: "locked", Message: "its description differs"}
	broken := offered("fs", "fs__broken", "broken")
	broken.Violations = []v1.Violation{{Path: "/spec/input_schema", Message: "not a schema"}}
	reg := discovering(t, remote{err: down}, server("fs"), bound("writer", "fs", "write"))
	reg.SetDiscovered(keyOf("fs"), registry.Discovery{
		Tools:   []*v1.Tool{broken, offered("fs", "fs__read", "read"), offered("fs", "fs__write", "write")},
		Refused: map[string]error{"write": refused},
	})
	want := []string{
		"fs__broken of fs not ready: spec.input_schema: not a schema",
		"fs__read of fs",
		`writer not ready: tool "fs__write": refused by policy "toolctl.lock", rule locked: its description differs`,
	}
	if got := toolNames(t, reg); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	var policy *v1.PolicyError
	if _, err := reg.Execute(t.Context(), v1.Call{Tool: "writer"}); !errors.As(err, &policy) {
		t.Errorf("a refused tool: %v", err)
	}
	if _, err := reg.Plan(t.Context(), v1.Call{Tool: "writer"}); !errors.As(err, &policy) {
		t.Errorf("a plan of a refused tool: %v", err)
	}
	var invalid *v1.ValidationError
	if _, err := reg.Execute(t.Context(), v1.Call{Tool: "fs__broken"}); !errors.As(err, &invalid) {
		t.Errorf("a broken tool: %v", err)
	}

	// While the server is down its tools are listed as not ready, and calls reach the executor.
	reg.SetDiscovered(keyOf("fs"), registry.Discovery{Tools: []*v1.Tool{offered("fs", "fs__read", "read")}, Err: down})
	for _, line := range toolNames(t, reg) {
		if !strings.Contains(line, `not ready: mcp server "fs": connection refused`) {
			t.Errorf("listed %q", line)
		}
	}
	it, err := reg.Get(v1.KindMCPServer, "", "fs")
	if err != nil || it.Ready {
		t.Errorf("the server: %+v, %v", it, err)
	}
	var mcp *v1.MCPError
	for _, name := range []string{"fs__read", "fs__unknown", "fs.unknown", "default/fs__unknown"} {
		if _, err := reg.Execute(t.Context(), v1.Call{Tool: name}); !errors.As(err, &mcp) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var notFound *v1.NotFoundError
	if _, err := reg.Execute(t.Context(), v1.Call{Tool: "unknown"}); !errors.As(err, &notFound) {
		t.Errorf("an unknown tool: %v", err)
	}
}

// Descriptions that were set replace those of manifests and servers, and survive every change of the set.
func TestSetDescriptions(t *testing.T) {
	plain := &v1.Tool{Spec: v1.ToolSpec{Description: "declared", InputSchema: json.RawMessage(`{"type":"object"}`), MockResult: json.RawMessage(`1`)}}
	plain.APIVersion, plain.Kind, plain.Metadata.Name = v1.APIVersion, v1.KindTool, "plain"
	reg := discovering(t, remote{}, server("s"), plain)
	found := func() map[string]string {
		p, err := reg.List(registry.Query{Kind: v1.KindTool})
		if err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, it := range p.Items {
			all[it.FullName] = it.Tool().Spec.Description
		}
		return all
	}
	reg.SetDescriptions(map[v1.Key]string{{Name: "plain"}: "told", {Kind: v1.KindTool, Namespace: v1.DefaultNamespace, Name: "s__read"}: "served", {Name: "gone"}: "x"})
	reg.SetDiscovered(keyOf("s"), registry.Discovery{Tools: []*v1.Tool{offered("s", "read", "read"), offered("s", "write", "write")}})
	want := map[string]string{"default/plain": "told", "default/s__read": "served", "default/s__write": "offered"}
	if d := cmp.Diff(want, found()); d != "" {
		t.Errorf("after discovery (-want +got):\n%s", d)
	}
	if plain.Spec.Description != "declared" {
		t.Error("the manifest was changed")
	}
	for _, o := range reg.Objects() {
		if tool, ok := o.(*v1.Tool); ok && tool.Spec.Description != "declared" {
			t.Errorf("Objects returns %q", tool.Spec.Description)
		}
	}
	reg.Replace([]v1.Object{server("s"), plain})
	if d := cmp.Diff(want, found()); d != "" {
		t.Errorf("after Replace (-want +got):\n%s", d)
	}
	reg.SetDescriptions(nil)
	if d := cmp.Diff(map[string]string{"default/plain": "declared", "default/s__read": "offered", "default/s__write": "offered"}, found()); d != "" {
		t.Errorf("taken back (-want +got):\n%s", d)
	}
}
