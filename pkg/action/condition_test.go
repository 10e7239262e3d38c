package action_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// TestStatusOfServer checks the conditions for the answers of a server and for the lock.
func TestStatusOfServer(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	server := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	server.Metadata.Name, server.Spec.Command = "files", "files"
	changes, err := st.Apply(t.Context(), []v1.Object{server}, store.ApplyOptions{Set: "s", Commit: "c0ffee"})
	if err != nil {
		t.Fatal(err)
	}
	offered := func(problem, description string) mcp.ServerState {
		tool := v1.NewObject(v1.KindTool).(*v1.Tool)
		tool.Metadata.Name = "files__read"
		return mcp.ServerState{Key: server.Key(), Ready: true, Tools: []mcp.DiscoveredTool{{Tool: tool, Remote: "read", Description: description, Problem: problem, InputSchema: []byte(`{}`)}}}
	}
	good := offered("", "Read a file")
	file := filepath.Join(t.TempDir(), lock.Name)
	now, _ := action.LockServers([]mcp.ServerState{good})
	if err := lock.Write(file, lock.File{Servers: now}); err != nil {
		t.Fatal(err)
	}
	observer, err := action.NewObserver(t.Context(), st, file)
	if err != nil {
		t.Fatal(err)
	}
	down, broken, drifted := mcp.ServerState{Key: server.Key(), Reason: "no answer"}, offered("its schema is not valid", "Read a file"), offered("", "Read and delete a file")
	for _, tc := range []struct {
		name                     string
		state                    *mcp.ServerState
		ready, degraded, drifted string // as STATUS REASON
		message                  string // of one of the conditions
	}{
		{"not asked", nil, "Unknown NotAsked", "Unknown NotAsked", "False AsApplied", "was not queried"},
		{"ready", &good, "True ServerReady", "False AsExpected", "False AsApplied", "tools: 1"},
		{"down", &down, "False ServerNotReady", "True ServerNotReady", "False AsApplied", "no answer"},
		{"a broken tool", &broken, "True ServerReady", "True SomeToolsNotReady", "False AsApplied", "files__read: its schema is not valid"},
		{"another description", &drifted, "True ServerReady", "False AsExpected", "True DiffersFromLock", "description"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := observer.Status(registry.Item{Object: server, Ready: true}, changes[0].After, tc.state)
			text := ""
			for typ, want := range map[string]string{v1.ConditionReady: tc.ready, v1.ConditionDegraded: tc.degraded, v1.ConditionDrifted: tc.drifted} {
				c := s.Condition(typ)
				if got := c.Status + " " + c.Reason; got != want {
					t.Errorf("%s is %s, want %s", typ, got, want)
				}
				if c.ObservedGeneration != 1 || c.LastTransitionTime.IsZero() || time.Since(c.LastTransitionTime) < 0 {
					t.Errorf("%+v", c)
				}
				text += c.Message + "\n"
			}
			if !strings.Contains(text, tc.message) {
				t.Errorf("messages %q: none says %q", text, tc.message)
			}
			if s.Set != "s" || s.Revision != 1 || s.Commit != "c0ffee" || s.Generation != 1 || s.ResourceVersion != 1 {
				t.Errorf("status %+v", s)
			}
		})
	}
}

// TestStatusOfOverride checks that an override that changes the served text is drift since the override was made, both
// for a tool of a manifest and for a tool of a server.
func TestStatusOfOverride(t *testing.T) {
	st := memory.New(memory.Options{})
	defer st.Close()
	tool, server := v1.NewObject(v1.KindTool).(*v1.Tool), v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	tool.Metadata.Name, tool.Spec.Description = "read", "Read a file"
	server.Metadata.Name, server.Spec.Command = "files", "files"
	changes, err := st.Apply(t.Context(), []v1.Object{tool, server}, store.ApplyOptions{Set: "s"})
	if err != nil {
		t.Fatal(err)
	}
	records := map[v1.Key]*store.Record{tool.Key(): changes[0].After, server.Key(): changes[1].After}
	drifted := func(o v1.Object) v1.Condition {
		observer, err := action.NewObserver(t.Context(), st, filepath.Join(t.TempDir(), lock.Name))
		if err != nil {
			t.Fatal(err)
		}
		key := o.Head().Key()
		all := map[v1.Key]v1.Status{key: observer.Status(registry.Item{Object: o, Ready: true}, records[key], nil)}
		action.Turned(t.Context(), st, all, records)
		s := all[key]
		return s.Condition(v1.ConditionDrifted)
	}
	for name, o := range map[string]v1.Object{"read": tool, "files__write": server} {
		if c := drifted(o); c.Reason != "AsApplied" {
			t.Errorf("%s: got %+v", name, c)
		}
		made, err := st.SetOverride(t.Context(), store.Override{Tool: name, Description: "Another text", Author: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		c := drifted(o)
		if c.Status != v1.ConditionTrue || c.Reason != "Overridden" || !strings.Contains(c.Message, "by ann") || !strings.Contains(c.Message, "toolctl override unset "+name) {
			t.Errorf("%s: got %+v", name, c)
		}
		if !c.LastTransitionTime.Equal(made.Time) {
			t.Errorf("%s: drifted since %s, and the override was made at %s", name, c.LastTransitionTime, made.Time)
		}
	}
}
