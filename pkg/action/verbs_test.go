package action_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/store"
)

// wrong reports whether an error is wrong usage.
func wrong(err error) bool { return errors.As(err, new(*action.UsageError)) }

// TestOverride overrides a description, restores an earlier override and then the original; each is a version.
func TestOverride(t *testing.T) {
	c := config(t, folder(t, map[string]string{"hello": "hi"}))
	apply(t, action.Apply{Config: c})
	c = &action.Config{DSN: c.DSN, By: "ann"}
	for _, o := range []action.Override{{Text: " one "}, {Text: "two"}, {Version: "1"}, {Unset: true}} {
		o.Config, o.Tool = c, "hello"
		if r, err := o.Run(t.Context()); err != nil || r.Override == nil || r.Override.Author != "ann" {
			t.Fatalf("%+v: got %+v, %v", o, r, err)
		}
	}
	if r, err := (&action.Override{Config: c, Tool: "hello", Unset: true}).Run(t.Context()); err != nil || r.Override != nil {
		t.Errorf("unset again: got %+v, %v", r, err)
	}
	all, err := action.Overrides{Config: c, Tool: "hello"}.Run(t.Context())
	var texts []string
	for _, o := range all {
		texts = append(texts, o.Description)
	}
	if want := []string{"", "one", "two", "one"}; err != nil || !slices.Equal(texts, want) {
		t.Errorf("got %q, %v, want %q", texts, err, want)
	}
	if all, err := (action.Overrides{Config: c}).Run(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("holds: got %v, %v", all, err)
	}
	for _, o := range []action.Override{{Text: " "}, {Text: strings.Repeat("x", store.MaxDescription+1)}, {Version: "9"}} {
		o.Config, o.Tool = c, "hello"
		if _, err := o.Run(t.Context()); !wrong(err) {
			t.Errorf("%q %q: got %v, want wrong usage", o.Text, o.Version, err)
		}
	}
}

// TestConnect checks that a server can be connected only once, and that only a connected server can be disconnected.
func TestConnect(t *testing.T) {
	c := config(t, folder(t, map[string]string{"hello": "hi"}))
	words := action.ServerWords{Words: []string{"docs-server", "--stdio"}, Name: "docs", Env: []string{"KEY", "MODE=a"}}
	connect := &action.Connect{Config: &action.Config{DSN: c.DSN}, ServerWords: words, Unasked: true}
	if r, err := connect.Run(t.Context()); err != nil || r.Server.Name != "docs" || r.Tools != -1 {
		t.Fatalf("got %+v, %v", r, err)
	}
	if _, err := connect.Run(t.Context()); !wrong(err) {
		t.Errorf("again: got %v, want wrong usage", err)
	}
	connect.Replace = true
	if _, err := connect.Run(t.Context()); err != nil {
		t.Error(err)
	}
	all, err := (&action.Connections{Config: connect.Config}).Run(t.Context())
	if want := (action.Connection{Name: "docs", Namespace: "default", Source: "connect", Transport: "stdio", Address: "docs-server"}); err != nil || len(all) != 1 || all[0] != want {
		t.Errorf("got %+v, %v", all, err)
	}
	made, err := (&action.Import{Config: c, From: &action.ImportServer{ServerWords: words}}).Run(t.Context())
	if err != nil || len(made.Manifests) != 1 || made.Manifests[0].Object.(*v1.MCPServer).Spec.Env["KEY"] != "${KEY}" {
		t.Errorf("import: got %v, %v", made, err)
	}
	if _, err := (&action.Disconnect{Config: connect.Config, Names: []string{"none"}}).Run(t.Context()); !errors.As(err, new(*v1.NotFoundError)) {
		t.Errorf("got %v, want that there is none", err)
	}
	if keys, err := (&action.Disconnect{Config: connect.Config, Names: []string{"docs"}}).Run(t.Context()); err != nil || len(keys) != 1 {
		t.Errorf("got %v, %v", keys, err)
	}
	if _, err := (&action.Connections{Config: c}).Run(t.Context()); !wrong(err) {
		t.Errorf("files: got %v, want wrong usage", err)
	}
}

// TestExport checks that a store is exported only into a new folder and copied only to a new store, and lists its sets.
func TestExport(t *testing.T) {
	c := config(t, folder(t, map[string]string{"a": "1", "b": "2"}))
	apply(t, action.Apply{Config: c})
	c = &action.Config{DSN: c.DSN}
	dir := filepath.Join(t.TempDir(), "out")
	if r, err := (&action.Export{Config: c, Dir: dir}).Run(t.Context()); err != nil || r.Objects != 2 || r.Files != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, at := range []string{dir, ""} {
		if _, err := (&action.Export{Config: c, Dir: at}).Run(t.Context()); !wrong(err) {
			t.Errorf("%q: got %v, want wrong usage", at, err)
		}
	}
	if sets, err := (&action.AppliedSets{Config: c}).Run(t.Context()); err != nil || len(sets) != 1 || sets[0].Objects != 2 {
		t.Errorf("got %+v, %v", sets, err)
	}
	copied := filepath.Join(t.TempDir(), "copy.db")
	if r, err := (&action.CopyStore{Config: c, From: c.DSN, To: copied}).Run(t.Context()); err != nil || r.Objects != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := (&action.CopyStore{Config: c, From: c.DSN, To: copied}).Run(t.Context()); !errors.As(err, new(*action.InvalidError)) {
		t.Errorf("got %v, want that the copy is there already", err)
	}
}

// TestClient checks that the configuration contains no values of variables, is written once, and that the previous
// file is kept.
func TestClient(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(home)
	c := config(t, folder(t, map[string]string{"hello": "hi"}))
	client := &action.Client{Config: c, Client: "claude"}
	e, err := client.Run(t.Context())
	if err != nil || !strings.Contains(string(e.Text), "serve") {
		t.Fatalf("got %+v, %v", e, err)
	}
	client.Write = true
	if e, err = client.Run(t.Context()); err != nil || !e.Changes() || e.Write() != nil {
		t.Fatalf("got %+v, %v", e, err)
	}
	if e, err = client.Run(t.Context()); err != nil || e.Changes() {
		t.Errorf("again: got %+v, %v", e, err)
	}
	none, remote := "", &action.Client{Config: c, Client: "claude", URL: "https://tools.example.com/mcp"}
	if e, err = remote.Run(t.Context()); err != nil || !strings.Contains(string(e.Text), "TOOLCTL_TOKEN") {
		t.Errorf("got %s, %v", e.Text, err)
	}
	remote.TokenEnv = &none
	if e, err = remote.Run(t.Context()); err != nil || strings.Contains(string(e.Text), "TOOLCTL_TOKEN") {
		t.Errorf("got %s, %v", e.Text, err)
	}
	for _, bad := range []*action.Client{{Client: "none"}, {Client: "claude", Name: "a b"}, {Client: "claude", URL: "tools"}, {Client: "claude", URL: "http://a", Authoring: true}} {
		if bad.Config = c; !wrong(func() error { _, err := bad.Run(t.Context()); return err }()) {
			t.Errorf("%+v is not wrong usage", bad)
		}
	}
}

// TestSchemaDiff checks that a pointer selects a part of a document, and that a document that is not a schema is
// refused.
func TestSchemaDiff(t *testing.T) {
	a := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(a, []byte("spec: {type: object}"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &action.SchemaDiff{Config: &action.Config{Stdin: strings.NewReader("{type: object, required: [x]}")}, As: diff.Input, Old: a + "#/spec", New: "-"}
	if r, err := d.Run(t.Context()); err != nil || r.Class != diff.Breaking {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, old := range []string{a + "#/sepc", a + "#spec"} {
		if d.Old = old; !wrong(func() error { _, err := d.Run(t.Context()); return err }()) {
			t.Errorf("%s is not wrong usage", old)
		}
	}
}
