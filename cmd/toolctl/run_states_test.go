package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// TestRunOfAFolder checks that a run that an earlier toolctl saved as a file can be resumed, and is saved in the store
// when it is pending again.
func TestRunOfAFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for name, text := range map[string]string{
		"tools.yaml": `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, input_schema: {type: object}, mock_result: {}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [pay]}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: ask}
spec: {description: Ask, tools: [pay], template: Pay}
`,
		"model.yaml": "- tool_calls: [{tool: pay, args: {}}]\n- text: paid\n",
	} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	toolctl(t, exitOK, "apply", "-f", "tools.yaml")
	toolctl(t, exitPending, "run", "ask", "--script", "model.yaml")
	id := toTheFolder(t, filepath.Join(dir, action.StoreDir))
	listed := func(want string) {
		t.Helper()
		if out, _ := toolctl(t, exitOK, "runs", "list", "-o", "name"); out != want {
			t.Errorf("runs %q, want %q", out, want)
		}
	}
	listed(id + "\n")
	toolctl(t, exitPending, "run", "--resume", id)
	listed(id + "\n")
	if left, err := os.ReadDir(filepath.Join(action.StoreDir, "runs")); err != nil || len(left) > 0 {
		t.Errorf("the folder has %v, %v", left, err)
	}
	calls, _ := toolctl(t, exitOK, "approvals", "list", "-o", "name")
	toolctl(t, exitOK, "approvals", "approve", strings.TrimSpace(calls))
	if out, _ := toolctl(t, exitOK, "run", "--resume", id); out != "paid\n" {
		t.Errorf("got %q", out)
	}
	listed("")
}

// toTheFolder moves the only run of a store to the folder in which an earlier toolctl kept it.
func toTheFolder(t *testing.T, dir string) string {
	t.Helper()
	st, err := sqlite.Open(t.Context(), filepath.Join(dir, "state.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	all, err := st.ListRuns(t.Context())
	if err != nil || len(all) != 1 {
		t.Fatalf("got %v, %v, want one run", all, err)
	}
	run, err := st.GetRun(t.Context(), all[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(dir, "runs")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, run.ID+".json"), run.State, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := st.DeleteRun(t.Context(), run.ID); err != nil {
		t.Fatal(err)
	}
	return run.ID
}
