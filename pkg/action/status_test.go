package action_test

import (
	"errors"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// TestSetStates checks the reports of ready, changed and missing objects.
func TestSetStates(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	good, edited, gone := boundTool("files"), boundTool("files"), boundTool("files")
	bad := boundTool("missing")
	for name, tool := range map[string]*v1.Tool{"good": good, "edited": edited, "gone": gone, "bad": bad} {
		if tool.Metadata.Name = name; name != "bad" {
			tool.Spec.MCP, tool.Spec.MockResult = nil, []byte("1")
		}
	}
	if _, err := st.Apply(t.Context(), []v1.Object{good, edited, gone, bad}, store.ApplyOptions{Set: "tools"}); err != nil {
		t.Fatal(err)
	}
	changed := *edited
	changed.Spec.Description = "Something else"
	if _, err := st.Apply(t.Context(), []v1.Object{&changed}, store.ApplyOptions{Others: store.LeaveOthers}); err != nil {
		t.Fatal(err)
	}
	if _, err := st.Delete(t.Context(), []v1.Key{gone.Key()}, store.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.Open(t.Context(), gateway.Options{Store: st})
	if err != nil {
		t.Fatal(err)
	}
	w := &action.Workspace{Gateway: g, Registry: g.Registry(), Store: st}
	defer w.Close()
	revisions, err := st.Revisions(t.Context(), store.RevisionQuery{Set: "tools"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.SetStates(t.Context(), revisions)
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v", all, err)
	}
	s := all[0]
	if s.Objects != 3 || s.Ready != 2 || len(s.Changed) != 1 || s.Changed[0] != "tool/edited" || len(s.Gone) != 1 || s.Gone[0] != "tool/gone" || s.NotReady["tool/bad"] == "" {
		t.Errorf("got %+v", s)
	}
	if _, _, err := w.Look(t.Context(), []v1.Key{gone.Key()}); !errors.As(err, new(*v1.NotFoundError)) {
		t.Errorf("got %v", err)
	}
}

// boundTool returns a tool of an MCP server that does not exist.
func boundTool(server string) *v1.Tool {
	tool := v1.NewObject(v1.KindTool).(*v1.Tool)
	tool.Metadata.Name, tool.Spec.Description, tool.Spec.InputSchema = "tool", "A tool", []byte(`{"type":"object"}`)
	tool.Spec.MCP = &v1.MCPToolSpec{Server: server, Tool: "read"}
	return tool
}
