package action

import (
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

func upstreamTool(server string) *v1.Tool {
	t := v1.NewObject(v1.KindTool).(*v1.Tool)
	t.Metadata.Name = "read"
	t.Spec = v1.ToolSpec{Description: "Read a file", InputSchema: []byte(`{"type":"object"}`), MCP: &v1.MCPToolSpec{Server: server, Tool: "read"}}
	return t
}

func serverOf(name string) *v1.MCPServer {
	s := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	s.Metadata.Name, s.Spec.Command = name, "files"
	return s
}

// TestCheckKnowsWhatIsBeside checks that manifests may refer to objects in the store.
func TestCheckKnowsWhatIsBeside(t *testing.T) {
	objects := []v1.Object{upstreamTool("files")}
	for _, tt := range []struct {
		name   string
		beside []v1.Object
		want   string
	}{
		{"nothing", nil, `"files"`},
		{"the server", Placeholders([]store.Record{{Object: serverOf("files")}}), ""},
		{"another", Placeholders([]store.Record{{Object: serverOf("mail")}}), `"files"`},
	} {
		found, err := Violations(t.Context(), objects, tt.beside, gateway.Options{})
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, f := range found {
			text += f.String()
		}
		if (tt.want == "") != (text == "") || !strings.Contains(text, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, text, tt.want)
		}
	}
}

// TestCheckUndo checks that an undo whose manifests refer to a deleted object is refused, and that an undo that
// restores the object is not.
func TestCheckUndo(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	apply := func(set string, objects ...v1.Object) {
		t.Helper()
		if _, err := st.Apply(t.Context(), objects, store.ApplyOptions{Set: set, Prune: true}); err != nil {
			t.Fatal(err)
		}
	}
	undo := func(set string) error {
		t.Helper()
		u, err := rollout.NewUndo(t.Context(), st, set, 1, rollout.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return checkUndo(t.Context(), st, u, gateway.Options{})
	}
	other := upstreamTool("files")
	other.Metadata.Name = "other"
	other.Spec.MCP, other.Spec.MockResult = nil, []byte("1")
	apply("servers", serverOf("files"))
	apply("tools", upstreamTool("files"))
	apply("tools", other)
	if err := undo("tools"); err != nil {
		t.Errorf("with its server: %v", err)
	}
	apply("servers", serverOf("mail"))
	if err := undo("tools"); err == nil || !strings.Contains(err.Error(), `"files"`) {
		t.Errorf("without its server: %v", err)
	}
	if err := undo("servers"); err != nil {
		t.Errorf("the server itself: %v", err)
	}
}

func TestIntoNamespace(t *testing.T) {
	here, there := serverOf("a"), serverOf("b")
	there.Metadata.Namespace = "other"
	got := intoNamespace([]v1.Object{here, there}, "prod")
	if len(got) != 1 || got[0].Message != `mcpserver/b is in namespace "other", and -n names "prod": leave one of them out` || here.Namespace() != "prod" {
		t.Errorf("got %v, %s", got, here.Key())
	}
}
