package permit_test

import (
	"fmt"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/permit"
)

func tool(spec v1.ToolSpec) *v1.Tool {
	return &v1.Tool{Header: v1.Header{Kind: v1.KindTool, Metadata: v1.Metadata{Name: "t", Namespace: "team-a"}}, Spec: spec}
}

func server(spec v1.MCPServerSpec) *v1.MCPServer {
	return &v1.MCPServer{Header: v1.Header{Kind: v1.KindMCPServer, Metadata: v1.Metadata{Name: "s", Namespace: "team-a"}}, Spec: spec}
}

func TestCheck(t *testing.T) {
	yes, no := true, false
	here := []string{"platform", "team-a"}
	for _, tt := range []struct {
		name   string
		object v1.Object
		rules  *permit.Rules
		want   string // the path of the only violation, or ""
	}{
		{"a mock", tool(v1.ToolSpec{}), &permit.Rules{}, ""},
		{"a program", tool(v1.ToolSpec{Exec: &v1.ExecSpec{}}), &permit.Rules{}, "/spec/exec"},
		{"a program without rules", tool(v1.ToolSpec{Exec: &v1.ExecSpec{Sandbox: "off"}}), nil, ""},
		{"a program of another namespace", tool(v1.ToolSpec{Exec: &v1.ExecSpec{}}), &permit.Rules{Exec: []string{"team", "team-a2", "team-*"}}, "/spec/exec"},
		{"a program that may run", tool(v1.ToolSpec{Exec: &v1.ExecSpec{}}), &permit.Rules{Exec: here}, ""},
		{"a program that is not chosen", tool(v1.ToolSpec{Mode: "mock", Exec: &v1.ExecSpec{}}), &permit.Rules{}, "/spec/exec"},
		{"no sandbox", tool(v1.ToolSpec{Exec: &v1.ExecSpec{Sandbox: "off"}}), &permit.Rules{Exec: here}, "/spec/exec/sandbox"},
		{"no sandbox where all may", tool(v1.ToolSpec{Exec: &v1.ExecSpec{Sandbox: "off"}}), &permit.Rules{Exec: here, Unsandboxed: []string{"*"}}, ""},
		{"the public network", tool(v1.ToolSpec{HTTP: &v1.HTTPSpec{}}), &permit.Rules{}, ""},
		{"the private network", tool(v1.ToolSpec{HTTP: &v1.HTTPSpec{AllowPrivateNetwork: true}}), &permit.Rules{}, "/spec/http/allow_private_network"},
		{"a server that is started", server(v1.MCPServerSpec{Command: "x"}), &permit.Rules{Exec: here}, "/spec/command"},
		{"one that may be", server(v1.MCPServerSpec{Command: "x"}), &permit.Rules{Command: here}, ""},
		{"a server elsewhere", server(v1.MCPServerSpec{URL: "https://example.com"}), &permit.Rules{}, ""},
		{"a server here", server(v1.MCPServerSpec{URL: "http://localhost:1"}), &permit.Rules{}, "/spec/url"},
		{"a server inside", server(v1.MCPServerSpec{URL: "http://10.0.0.1", AllowPrivateNetwork: &yes}), &permit.Rules{}, "/spec/allow_private_network"},
		{"a server that asks for nothing", server(v1.MCPServerSpec{URL: "http://localhost:1", AllowPrivateNetwork: &no}), &permit.Rules{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bad := tt.rules.Check(tt.object)
			if tt.want == "" && len(bad) > 0 || tt.want != "" && (len(bad) != 1 || bad[0].Path != tt.want || !bad[0].Forbidden || bad[0].IsWarning()) {
				t.Errorf("got %+v, want %s", bad, tt.want)
			}
			served := tt.rules.Apply([]v1.Object{tt.object})[0]
			if got := served.Head().Broken(); got != (tt.want != "") {
				t.Errorf("broken: %v", got)
			}
			if tt.object.Head().Violations != nil {
				t.Error("the object that was given was changed")
			}
		})
	}
}

// The rules decide where the machine or a variable would decide.
func TestApplyNarrows(t *testing.T) {
	objects := []v1.Object{
		tool(v1.ToolSpec{Exec: &v1.ExecSpec{}}), tool(v1.ToolSpec{Exec: &v1.ExecSpec{Sandbox: "auto"}}),
		server(v1.MCPServerSpec{URL: "http://${HOST}:1"}),
	}
	served := (&permit.Rules{Exec: []string{"*"}}).Apply(objects)
	for _, o := range served[:2] {
		if got := o.(*v1.Tool).Spec.Exec.Sandbox; got != v1.SandboxRequired || o.Head().Broken() {
			t.Errorf("sandbox %q", got)
		}
	}
	if got := served[2].(*v1.MCPServer).Spec.AllowPrivateNetwork; got == nil || *got {
		t.Errorf("allow_private_network %v", got)
	}
	for i, o := range (&permit.Rules{Exec: []string{"*"}, Unsandboxed: []string{"team-a"}, PrivateNetwork: []string{"team-a"}}).Apply(objects) {
		if o != objects[i] {
			t.Errorf("%d: what is permitted was changed", i)
		}
	}
}

func ExampleRules_Check() {
	rules := &permit.Rules{Exec: []string{"platform"}}
	t := &v1.Tool{Header: v1.Header{Kind: v1.KindTool, Metadata: v1.Metadata{Name: "count", Namespace: "team-a"}}}
	t.Spec.Exec = &v1.ExecSpec{Command: "wc"}
	for _, v := range rules.Check(t) {
		fmt.Println(v.Message)
	}
	// Output: namespace "team-a" may not run programs: allow it with --allow-exec=team-a
}
