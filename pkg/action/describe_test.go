package action_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
)

// TestDescribe checks that an object of the store has a record and a status, and an object of a file has neither.
func TestDescribe(t *testing.T) {
	c := config(t, folder(t, map[string]string{"a": "1", "b": "2"}))
	apply(t, action.Apply{Config: c})
	for _, test := range []struct {
		c      *action.Config
		stored bool
	}{{c, false}, {&action.Config{DSN: c.DSN}, true}} {
		all, err := (&action.Describe{Config: test.c, Requests: []action.Request{{Kind: v1.KindTool}}}).Run(t.Context())
		if err != nil || len(all) != 2 {
			t.Fatalf("got %v, %v", all, err)
		}
		for _, d := range all {
			if !d.Ready || (d.Record != nil) != test.stored || (d.Status != nil) != test.stored || d.Shown == nil {
				t.Errorf("stored %t: got %+v", test.stored, d)
			}
		}
	}
	all, err := (&action.Describe{Config: c, Requests: []action.Request{{Kind: v1.KindTool, Names: []string{"a", "none"}}}}).Run(t.Context())
	if len(all) != 1 || !errors.As(err, new(*v1.NotFoundError)) {
		t.Errorf("got %v, %v, want one and that there is no second", all, err)
	}
}

// TestEdit checks that the edited text is applied, and that a text with errors is edited again and kept if the errors
// stay.
func TestEdit(t *testing.T) {
	c := config(t, folder(t, map[string]string{"a": "1"}))
	apply(t, action.Apply{Config: c})
	edit := func(texts ...func(string) string) ([]action.Edited, error) {
		return (&action.Edit{Config: &action.Config{DSN: c.DSN, By: "ann"}, Requests: []action.Request{{Kind: v1.KindTool, Names: []string{"a"}}}, Editor: func(_ context.Context, file string) error {
			was, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			next := texts[0](string(was))
			texts = texts[1:]
			return os.WriteFile(file, []byte(next), 0o600)
		}}).Run(t.Context())
	}
	same := func(s string) string { return s }
	swap := func(from, to string) func(string) string {
		return func(s string) string {
			if !strings.Contains(s, from) {
				t.Errorf("no %q in\n%s", from, s)
			}
			return strings.ReplaceAll(s, from, to)
		}
	}
	if all, err := edit(same); err != nil || all[0].Cancelled != "nothing was changed" {
		t.Errorf("got %+v, %v", all, err)
	}
	if all, err := edit(func(string) string { return "" }); err != nil || all[0].Cancelled != "the file is empty" {
		t.Errorf("got %+v, %v", all, err)
	}
	if all, err := edit(swap("Says hello", "Greets"), nil); err != nil || len(all[0].Changes) != 1 {
		t.Errorf("got %+v, %v", all, err)
	}
	if all, err := edit(swap("name: a", "name: b"), swap("an edit cannot change kind, namespace or name", "")); err == nil || len(all) != 0 {
		t.Errorf("got %+v, %v, want that the name stays", all, err)
	}
	_, err := edit(swap("description:", "descripton:"), same)
	var invalid *action.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("got %v, want that the manifest still has errors", err)
	}
	_, rest, _ := strings.Cut(err.Error(), "kept in ")
	file, _, _ := strings.Cut(rest, "\n")
	if _, err := os.Stat(file); err != nil {
		t.Error(err)
	}
	_ = os.RemoveAll(filepath.Dir(file))
}
