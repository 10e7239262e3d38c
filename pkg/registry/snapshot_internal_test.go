package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
)

// stub is an executor that does nothing.
type stub string

func (s stub) Name() string { return string(s) }

func (stub) Execute(context.Context, *v1.Tool, json.RawMessage) (v1.Result, error) {
	return v1.Result{}, nil
}

// counting counts the tools that it checks.
type counting struct {
	stub
	checks atomic.Int32
}

func (c *counting) Check(*v1.Tool) []v1.Violation {
	c.checks.Add(1)
	return nil
}

func header(kind, namespace, name string) v1.Header {
	return v1.Header{APIVersion: v1.APIVersion, Kind: kind, Metadata: v1.Metadata{Namespace: namespace, Name: name}, Source: v1.Source{File: namespace + "/" + name}}
}

func toolOf(namespace, name, server string) *v1.Tool {
	t := &v1.Tool{Header: header(v1.KindTool, namespace, name), Spec: v1.ToolSpec{Description: "d", InputSchema: json.RawMessage(`{"type":"object"}`), Mode: v1.ModeMock, MockResult: json.RawMessage(`1`)}}
	if server != "" {
		t.Spec.Mode, t.Spec.MockResult, t.Spec.MCP = v1.ModeMCP, nil, &v1.MCPToolSpec{Server: server, Tool: name}
	}
	return t
}

func policyOf(namespace, name string, spec v1.ToolPolicySpec) *v1.ToolPolicy {
	return &v1.ToolPolicy{Header: header(v1.KindToolPolicy, namespace, name), Spec: spec}
}

func newTestRegistry(t interface{ Fatal(...any) }, objects []v1.Object) *Registry {
	r, err := New(objects, Options{Executors: []Executor{stub(v1.ModeMock), stub(v1.ModeMCP)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// made returns the number of entries of a registry that the previous snapshot did not have.
func made(r *Registry, before *snapshot) int {
	n := 0
	for _, e := range r.snap.Load().entries {
		if !slices.Contains(before.entries, e) {
			n++
		}
	}
	return n
}

// The cost of a change depends on the change: unaffected entries are reused.
func TestReplacePreparesWhatChanged(t *testing.T) {
	const many = 500
	objects := []v1.Object{
		policyOf("a", "calm", v1.ToolPolicySpec{Blocklist: []string{"none"}}),
		&v1.MCPServer{Header: header(v1.KindMCPServer, "a", "crm"), Spec: v1.MCPServerSpec{Command: "true"}},
		toolOf("a", "remote", "crm"),
	}
	for i := range many {
		objects = append(objects, toolOf([]string{"a", "b"}[i%2], fmt.Sprint("tool-", i), ""))
	}
	r := newTestRegistry(t, objects)
	crm := v1.Key{Kind: v1.KindMCPServer, Namespace: "a", Name: "crm"}
	for _, step := range []struct {
		name   string
		change func()
		want   int
	}{
		{"nothing", func() { r.Replace(slices.Clone(objects)) }, 0},
		{"one tool", func() { objects[10] = toolOf("b", "tool-7", ""); r.Replace(objects) }, 1},
		{"one more", func() { r.Replace(append(objects[:len(objects):len(objects)], toolOf("b", "more", ""))) }, 1},
		{"one less", func() { r.Replace(objects) }, 0},
		{"another description", func() { r.SetDescriptions(map[v1.Key]string{{Namespace: "b", Name: "tool-9"}: "better"}) }, 1},
		{"what a server offers", func() { r.SetDiscovered(crm, Discovery{Tools: []*v1.Tool{toolOf("a", "offered", "crm")}}) }, 3}, // the server, and both of its tools
		{"a policy", func() {
			objects[0] = policyOf("a", "calm", v1.ToolPolicySpec{Blocklist: []string{"tool-0"}})
			r.Replace(objects)
		}, 1 + 2 + many/2},
		{"an object twice", func() { r.Replace(append(objects[:len(objects):len(objects)], toolOf("a", "tool-2", ""))) }, 1},
	} {
		before := r.snap.Load()
		step.change()
		if got := made(r, before); got != step.want {
			t.Errorf("%s: %d entries were prepared, want %d", step.name, got, step.want)
		}
	}
}

// CheckObjects compiles only the schemas of new objects.
func TestCheckObjectsChecksWhatChanged(t *testing.T) {
	counted := &counting{stub: v1.ModeMock}
	var objects []v1.Object
	for i := range 50 {
		objects = append(objects, toolOf("a", fmt.Sprint("tool-", i), ""))
	}
	r, err := New(objects, Options{Executors: []Executor{counted}})
	if err != nil {
		t.Fatal(err)
	}
	r.Check(t.Context())
	broken := toolOf("a", "tool-3", "")
	broken.Spec.InputSchema = json.RawMessage(`{"type":"txt"}`)
	objects[3] = broken
	counted.checks.Store(0)
	for range 2 {
		if found := r.CheckObjects(t.Context(), objects); len(found) != 1 || !strings.HasPrefix(found[0].Path, "/spec/input_schema") {
			t.Errorf("found %v", found)
		}
	}
	if n := counted.checks.Load(); n != 2 {
		t.Errorf("%d tools were checked, want the one that changed at each time", n)
	}
	if it, err := r.Lookup("a", "tool-3"); err != nil || !it.Ready {
		t.Errorf("the tool that is served: %v, %v", it.Reasons, err)
	}
}

// After any sequence of changes, a registry equals one that is created in one step.
func TestSnapshotsAreAsNewOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pool := []v1.Object{
			policyOf("a", "p", v1.ToolPolicySpec{Blocklist: []string{"x"}}),
			policyOf("a", "p", v1.ToolPolicySpec{Blocklist: []string{"crm__*"}}),
			policyOf("b", "p", v1.ToolPolicySpec{Match: &v1.Match{Labels: map[string]string{"team": "pay"}}, Blocklist: []string{"*"}}),
			toolOf("a", "x", ""), toolOf("a", "x", ""), toolOf("b", "x", ""), toolOf("a", "y", "crm"), toolOf("b", "y", "crm"), toolOf("a", "z", "gone"),
		}
		broken := policyOf("b", "q", v1.ToolPolicySpec{})
		broken.Violations = []v1.Violation{{Message: "broken"}}
		nameless := policyOf("", "", v1.ToolPolicySpec{})
		nameless.Violations = []v1.Violation{{Message: "broken"}}
		pool = append(pool, broken, nameless)
		for _, labels := range []map[string]string{nil, {"team": "pay"}} {
			for _, namespace := range []string{"a", "b"} {
				h := header(v1.KindMCPServer, namespace, "crm")
				h.Metadata.Labels = labels
				pool = append(pool, &v1.MCPServer{Header: h, Spec: v1.MCPServerSpec{Command: "true"}})
			}
		}
		discoveries := []Discovery{
			{}, {Err: errors.New("away")}, {Tools: []*v1.Tool{toolOf("a", "x", "crm"), toolOf("a", "y", "crm"), toolOf("a", "w", "crm")}},
			{Tools: []*v1.Tool{toolOf("a", "w", "crm")}, Refused: map[string]error{"y": errors.New("not as locked")}},
		}
		texts := []map[v1.Key]string{nil, {{Namespace: "a", Name: "x"}: "better"}, {{Namespace: "a", Name: "crm__w"}: "other"}}

		var objects []v1.Object
		r := newTestRegistry(t, nil)
		for range rapid.IntRange(1, 8).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "step") {
			case 0, 1:
				objects = rapid.SliceOfN(rapid.SampledFrom(pool), 0, 12).Draw(t, "objects")
				objects = slices.CompactFunc(objects, func(a, b v1.Object) bool { return a == b })
				r.CheckObjects(context.Background(), objects)
				r.Replace(objects)
			case 2:
				r.SetDiscovered(v1.Key{Kind: v1.KindMCPServer, Namespace: "a", Name: "crm"}, rapid.SampledFrom(discoveries).Draw(t, "discovery"))
			case 3:
				r.SetDescriptions(rapid.SampledFrom(texts).Draw(t, "texts"))
			}
		}
		fresh := newTestRegistry(t, nil)
		now := r.snap.Load().contents
		now.given = objects
		fresh.snap.Store(fresh.build(now, &snapshot{}))
		if got, want := shown(t, r), shown(t, fresh); got != want {
			t.Fatalf("got\n%s\nwant\n%s", got, want)
		}
	})
}

// shown returns all data that a registry reports about its objects.
func shown(t *rapid.T, r *Registry) string {
	page, err := r.List(Query{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, it := range page.Items {
		line := fmt.Sprintf("%s %s server=%v ready=%v reasons=%v blocked=%v labels=%v", it.Object.Head().Key(), it.FullName, it.Server, it.Ready, it.Reasons, it.Blocked, it.Object.Head().Metadata.Labels)
		if tool := it.Tool(); tool != nil {
			_, err := r.Lookup("", tool.Metadata.Name)
			line += fmt.Sprintf(" %q %v", tool.Spec.Description, cmp.Or(err, errors.New("found")))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
