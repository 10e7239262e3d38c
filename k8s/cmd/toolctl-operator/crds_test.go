package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/k8s/internal/clustertest"
)

// What kubectl says of the kinds: that the definitions are structural the API server says when it
// takes them.
func TestKinds(t *testing.T) {
	w := newWorld(t, clustertest.Options{})
	var list apiext.CustomResourceDefinitionList
	if err := json.Unmarshal([]byte(w.MustKubectl(t, "get", "crd", "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	ours := 0
	for _, crd := range list.Items {
		if crd.Spec.Group == "toolctl.dev" {
			ours++
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiext.NonStructuralSchema && c.Status == apiext.ConditionTrue {
				t.Errorf("%s: %s", crd.Name, c.Message)
			}
		}
	}
	if ours != len(v1.Kinds()) {
		t.Errorf("there are %d kinds, expected %d", ours, len(v1.Kinds()))
	}

	t.Run("api-resources", func(t *testing.T) {
		out := w.MustKubectl(t, "api-resources", "--api-group=toolctl.dev", "--no-headers")
		for _, k := range v1.KindInfos() {
			want := strings.Join(append([]string{k.Name}, strings.Join(k.Short, ","), "toolctl.dev/v1", "true", k.Kind), " ")
			if want = strings.Join(strings.Fields(want), " "); !strings.Contains(strings.Join(strings.Fields(out), " "), want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
	})
	t.Run("explain", func(t *testing.T) {
		out := w.MustKubectl(t, "explain", "tool.spec.timeout_ms")
		for _, want := range []string{"timeout_ms <integer>", "Default: 30000.", "all attempts included"} {
			if !strings.Contains(out, want) {
				t.Errorf("no %q in\n%s", want, out)
			}
		}
		if out := w.MustKubectl(t, "explain", "toolpolicy", "--recursive"); !strings.Contains(out, "max_tool_calls_per_turn") {
			t.Error(out)
		}
	})
	t.Run("refused", func(t *testing.T) {
		bad := func(old, new string) string { return strings.Replace(weather, old, new, 1) }
		tests := map[string]struct{ text, want string }{
			"unknown field": {bad("  description:", "  descripton: x\n  description:"), `unknown field "spec.descripton"`},
			"wrong type":    {bad("Current weather\n", "Current weather\n  timeout_ms: soon\n"), "spec.timeout_ms"},
			"not of a list": {bad("Current weather\n", "Current weather\n  mode: quick\n"), "spec.mode: Unsupported value"},
			"below":         {bad("Current weather\n", "Current weather\n  timeout_ms: -1\n"), "spec.timeout_ms"},
			"two executors": {bad("mock_result: {conditions: sunny}", "http: {url: 'https://a.example'}\n  mcp: {server: a, tool: b}"), "http and mcp exclude each other"},
			"no executor":   {bad("mock_result: {conditions: sunny}", "timeout_ms: 1"), "spec.mock_result: Required value"},
			"mode":          {bad("mock_result: {conditions: sunny}", "mode: live"), "mode live needs http"},
			"schema's root": {bad("input_schema: {type: object,", "input_schema: {type: array,"), "spec.input_schema.type"},
			"key alone":     {bad("mock_result: {conditions: sunny}", "http: {url: 'https://a.example', tls: {key_file: /a}}"), "key_file needs cert_file"},
			"server":        {"apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: a}\nspec: {url: 'https://a.example', command: b}\n", "expected exactly one of command or url"},
			"args":          {"apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: a}\nspec: {url: 'https://a.example', args: [b]}\n", "args needs command"},
		}
		var all []string
		for name, tt := range tests {
			all = append(all, strings.NewReplacer("{name: get-weather", "{name: "+strings.ReplaceAll(strings.ReplaceAll(name, " ", "-"), "'", ""), "{name: a}", "{name: "+name+"}").Replace(tt.text))
		}
		file := filepath.Join(t.TempDir(), "bad.yaml")
		if err := os.WriteFile(file, []byte(strings.Join(all, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		out, errs, ok := w.Kubectl(t, "apply", "-f", file)
		if ok || out != "" {
			t.Errorf("some were applied: %s", out)
		}
		for name, tt := range tests {
			if !strings.Contains(errs, tt.want) {
				t.Errorf("%s: no %q in\n%s", name, tt.want, errs)
			}
		}
	})
}
