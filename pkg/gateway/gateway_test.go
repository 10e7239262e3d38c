package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
)

// tool returns the manifest of a mock.
func tool(name, result string) string {
	return fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: %s}\nspec: {description: d, input_schema: {type: object}, mock_result: %s}\n", name, result)
}

// changing is a source that can switch to another folder.
type changing struct {
	mu   sync.Mutex
	fsys fs.FS
}

func (c *changing) Load(ctx context.Context) (*manifest.Set, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return manifest.LoadFS(ctx, c.fsys, manifest.Options{})
}

func (c *changing) Watch(context.Context, func(error)) (<-chan struct{}, error) { return nil, nil }

func (c *changing) set(manifests ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fsys := fstest.MapFS{}
	for i, m := range manifests {
		fsys[fmt.Sprintf("%d.yaml", i)] = &fstest.MapFile{Data: []byte(m)}
	}
	c.fsys = fsys
}

func open(t *testing.T, o gateway.Options) *gateway.Gateway {
	t.Helper()
	g, err := gateway.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	return g
}

func call(t *testing.T, g *gateway.Gateway, name, want string) {
	t.Helper()
	if res, err := g.Call(t.Context(), v1.Call{Tool: name}); err != nil || string(res.Content) != want {
		t.Errorf("%s: %s, %v; want %s", name, res.Content, err, want)
	}
}

// silent answers initialize at once, and tools/list when it is released. It signals requests for the tools on asked.
func silent(t *testing.T) (manifest string, asked, release chan struct{}) {
	asked, release = make(chan struct{}, 8), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.NewDecoder(r.Body).Decode(&m)
		answer := `"error":{"code":-32601,"message":"no such method"}`
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == "initialize":
			answer = `"result":{"protocolVersion":"2025-11-25","serverInfo":{"name":"silent","version":"1"},"capabilities":{"tools":{}}}`
		case m.Method == "tools/list":
			asked <- struct{}{}
			select {
			case <-release:
			case <-r.Context().Done():
			}
			answer = `"result":{"tools":[{"name":"late","inputSchema":{"type":"object"}}]}`
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, m.ID, answer)
	}))
	t.Cleanup(s.CloseClientConnections)
	t.Cleanup(s.Close)
	return "apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: silent}\nspec: {url: " + s.URL + "/mcp, timeout_ms: 600000}\n", asked, release
}

// A server that answers initialize and never lists its tools delays only its own tools, but no call and no reload, even
// one that changes the server itself.
func TestSilentServerHoldsUpNothing(t *testing.T) {
	server, asked, release := silent(t)
	source := new(changing)
	source.set(server, tool("a", "1"))
	g := open(t, gateway.Options{Source: source})
	g.Handler() // queries the server
	<-asked
	call(t, g, "a", "1")

	source.set(server, tool("a", "2"), tool("b", "3"))
	if err := g.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	call(t, g, "a", "2")
	call(t, g, "b", "3")

	source.set(strings.Replace(server, "spec: {", "spec: {description: another, ", 1), tool("a", "4"))
	if err := g.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-asked // with its new manifest, during the query with the old one
	call(t, g, "a", "4")

	close(release)
	if states := g.Discover(t.Context()); len(states) != 1 || !states[0].Ready {
		t.Errorf("the server is %+v", states)
	}
	if _, err := g.Registry().Lookup("", "silent__late"); err != nil {
		t.Error(err)
	}
}

// Closing a gateway does not wait for a server either.
func TestCloseEndsWhatIsAsked(t *testing.T) {
	server, asked, _ := silent(t)
	source := new(changing)
	source.set(server)
	g := open(t, gateway.Options{Source: source})
	g.Handler()
	<-asked
}

func TestReload(t *testing.T) {
	source := new(changing)
	source.set(tool("a", "1"))
	g := open(t, gateway.Options{Source: source, Objects: []v1.Object{
		registry.Func("own", "In Go.", func(context.Context, struct{}) (int, error) { return 7, nil }),
	}})
	call(t, g, "own", "7")

	source.set(tool("a", "2"), tool("a", "3"))
	if err := g.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), "a") {
		t.Errorf("two of one name: %v", err)
	}
	call(t, g, "a", "1")

	source.set(tool("b", "2"))
	if err := g.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	call(t, g, "b", "2")
	call(t, g, "own", "7")
	var missing *v1.NotFoundError
	if _, err := g.Call(t.Context(), v1.Call{Tool: "a"}); !errors.As(err, &missing) {
		t.Errorf("a tool that went: %v", err)
	}
	page, err := g.List(registry.Query{Kind: v1.KindTool})
	if err != nil || page.Total != 2 {
		t.Errorf("%d tools, %v", page.Total, err)
	}
}

// Unreadable manifests are omitted at the start and reported.
func TestViolations(t *testing.T) {
	source := new(changing)
	source.set(tool("a", "1"), strings.Replace(tool("b", "1"), "description", "descripton", 1))
	g := open(t, gateway.Options{Source: source})
	call(t, g, "a", "1")
	if v := g.Violations(); len(v) == 0 || !strings.Contains(v[0].String(), "descripton") {
		t.Errorf("violations %v", v)
	}
}

// Problems with prompts are logged in one line, at each reload.
func TestWarningOfPrompts(t *testing.T) {
	source := new(changing)
	source.set(tool("a", "1"))
	var log bytes.Buffer
	g := open(t, gateway.Options{Source: source, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for _, name := range []string{"one", "two"} {
		source.set(tool("a", "1"), "apiVersion: toolctl.dev/v1\nkind: Prompt\nmetadata: {name: "+name+"}\nspec: {template: '{{.a'}\n",
			"apiVersion: toolctl.dev/v1\nkind: Prompt\nmetadata: {name: other}\nspec: {template: '{{.b'}\n")
		set, err := source.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		log.Reset()
		g.Replace(set)
		g.View("").Prompts()
		if got := log.String(); strings.Count(got, "level=WARN") != 1 || !strings.Contains(got, name) || !strings.Contains(got, "other") {
			t.Errorf("logged:\n%s", got)
		}
	}
}

func TestWatch(t *testing.T) {
	dir := t.TempDir()
	write := func(text string) {
		next := filepath.Join(t.TempDir(), "next")
		if err := errors.Join(os.WriteFile(next, []byte(text), 0o644), os.Rename(next, filepath.Join(dir, "a.yaml"))); err != nil {
			t.Fatal(err)
		}
	}
	write(tool("a", "1"))
	loaded := make(chan struct{}, 8)
	source := told{gateway.Files(manifest.Options{}, dir), loaded}
	g := open(t, gateway.Options{Source: source, Watch: true})
	<-loaded // at the start
	write(tool("a", "2"))
	for {
		<-loaded
		g.Violations() // waits for the running reload
		if res, _ := g.Call(t.Context(), v1.Call{Tool: "a"}); string(res.Content) == "2" {
			return
		}
	}
}

// told signals each read of a source.
type told struct {
	gateway.Source
	loaded chan struct{}
}

func (s told) Load(ctx context.Context) (*manifest.Set, error) {
	set, err := s.Source.Load(ctx)
	select {
	case s.loaded <- struct{}{}:
	default:
	}
	return set, err
}

func TestSourceThatCannotBeFollowed(t *testing.T) {
	source := new(changing)
	source.set(tool("a", "1"))
	if g, err := gateway.Open(t.Context(), gateway.Options{Source: source, Watch: true}); err == nil || g != nil {
		t.Errorf("got %v, %v", g, err)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]gateway.Options{
		"selector": {Subset: gateway.Subset{Selector: "a=b=c"}},
		"tokens":   {TokenFile: "/nowhere/at/all"},
	} {
		if _, err := gateway.Open(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	g := open(t, gateway.Options{})
	if p, err := g.List(registry.Query{}); err != nil || p.Total != 0 {
		t.Errorf("the zero value: %d objects, %v", p.Total, err)
	}
}
