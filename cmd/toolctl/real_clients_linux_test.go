package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// realClients returns the folder with the clients that .ci/mcp-clients installs.
func realClients(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TOOLCTL_MCP_CLIENTS")
	if dir == "" {
		t.Skip("TOOLCTL_MCP_CLIENTS is not set: run .ci/mcp-clients, which needs Node, and set it to the folder that it prints")
	}
	return dir
}

// servedGateway runs toolctl serve in front of the SDK's everything-server. It returns the arguments that start it
// over stdio, and its address over HTTP.
func servedGateway(t *testing.T) (args []string, url string) {
	t.Helper()
	dir := t.TempDir()
	everything := filepath.Join(dir, "everything")
	if out, err := exec.Command("go", "build", "-o", everything, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server").CombinedOutput(); err != nil {
		t.Fatalf("build the upstream: %v\n%s", err, out)
	}
	manifests := filepath.Join(dir, "manifests")
	writeFile(t, filepath.Join(manifests, "server.yaml"), fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: everything}\nspec: {command: %q, tool_names: bare}\n"+
		"---\napiVersion: toolctl.dev/v1\nkind: Toolset\nmetadata: {name: searched}\nspec: {include: [{servers: [everything]}], discovery: search}\n", everything))
	args = []string{linked(t, "toolctl"), "serve", "-f", manifests}
	return args, launchServe(t, again(t, "toolctl"), args[2:]...).url
}

func runClient(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	cmd := command(filepath.Join(dir, "node"), args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir()) // the Inspector keeps a catalog there
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s\n%s", strings.Join(args, " "), err, out, said.Bytes())
	}
	return out
}

const (
	everythingText   = "This is a simple text response for testing."
	everythingPrompt = "Prompt with arguments: arg1='one', arg2='two'"
	everythingStatic = "This is the content of the static text resource."
)

// TestTypeScriptClients connects the clients of both major versions of the TypeScript SDK.
func TestTypeScriptClients(t *testing.T) {
	t.Parallel()
	dir := realClients(t)
	args, url := servedGateway(t)
	script, err := filepath.Abs("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, version string }{{"v1", "2025-11-25"}, {"v2", "legacy"}, {"v2", "auto"}, {"v2", "2026-07-28"}} {
		for transport, target := range map[string][]string{"stdio": args, "http": {url}, "http, searched": {url + "/searched"}} {
			t.Run(c.line+"/"+c.version+"/"+transport, func(t *testing.T) {
				var got struct {
					Server, Call, Prompt, Resource string
					Listed                         int
					Tools                          []string
				}
				transport, _, searched := strings.Cut(transport, ",")
				out := runClient(t, dir, append([]string{script, dir, c.line, c.version, transport}, target...)...)
				if err := json.Unmarshal(out, &got); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				if got.Server != "toolctl" || got.Call != everythingText || got.Prompt != everythingPrompt || got.Resource != everythingStatic {
					t.Errorf("got %+v", got)
				}
				if searched != (got.Listed == 2) || !searched && len(got.Tools) < 20 || !slices.Contains(got.Tools, "test_simple_text") {
					t.Errorf("tools %s", got.Tools)
				}
			})
		}
	}
}

// TestInspector connects the command line of the MCP Inspector.
func TestInspector(t *testing.T) {
	t.Parallel()
	dir := realClients(t)
	args, url := servedGateway(t)
	inspector := []string{filepath.Join(dir, "node_modules", "@modelcontextprotocol", "inspector", "clients", "launcher", "build", "index.js"), "--cli"}
	for transport, target := range map[string][]string{"stdio": append([]string{"--"}, args...), "http": {"--transport", "http", "--server-url", url}} {
		for _, c := range []struct {
			name string
			args []string
			want string
		}{
			{"list tools", []string{"--method", "tools/list"}, `"name": "test_simple_text"`},
			{"call a tool", []string{"--method", "tools/call", "--tool-name", "test_simple_text"}, everythingText},
			{"get a prompt", []string{"--method", "prompts/get", "--prompt-name", "test_prompt_with_arguments", "--prompt-args", "arg1=one", "arg2=two"}, everythingPrompt},
			{"read a resource", []string{"--method", "resources/read", "--uri", "test://static-text"}, everythingStatic},
		} {
			t.Run(transport+"/"+c.name, func(t *testing.T) {
				if out := runClient(t, dir, slices.Concat(inspector, c.args, target)...); !bytes.Contains(out, []byte(c.want)) {
					t.Errorf("got %s, expected %s", out, c.want)
				}
			})
		}
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--method", "tools/list"}, `"name": "find_tools"`},
		{[]string{"--method", "tools/call", "--tool-name", "find_tools", "--tool-arg", "query=simple text"}, "test_simple_text"},
		{[]string{"--method", "tools/call", "--tool-name", "call_tool", "--tool-arg", "name=test_simple_text"}, everythingText},
	} {
		if out := runClient(t, dir, slices.Concat(inspector, c.args, []string{"--transport", "http", "--server-url", url + "/searched"})...); !bytes.Contains(out, []byte(c.want)) {
			t.Errorf("%q: got %s, expected %s", c.args, out, c.want)
		}
	}
}
