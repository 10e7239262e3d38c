package plan_test

import (
	"path/filepath"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

func TestSetName(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	here, err := filepath.Abs("a")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := plan.SetName([]string{"a", here, "-", "./a/"}); err != nil || got != "-\n"+here {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestSkipped(t *testing.T) {
	if plan.Skipped(nil, "prod") != nil {
		t.Error("nothing was skipped, and something may be held")
	}
	record := func(name, namespace, file string) store.Record {
		o := storetest.Tool(name, "a")
		o.Metadata.Namespace, o.Source.File = namespace, file
		return store.Record{Object: o}
	}
	held := plan.Skipped([]manifest.Skipped{
		{Key: v1.Key{Kind: v1.KindTool, Namespace: v1.DefaultNamespace, Name: "one"}, File: "a.yaml"}, {File: "broken.yaml"},
	}, "prod")
	for _, tt := range []struct {
		r    store.Record
		want bool
	}{
		{record("one", "", "elsewhere.yaml"), true}, {record("one", "prod", "a.yaml"), true}, {record("one", "test", "a.yaml"), false},
		{record("two", "", "a.yaml"), false}, {record("three", "test", "broken.yaml"), true},
	} {
		if got := held(tt.r); got != tt.want {
			t.Errorf("%s of %s: %v, want %v", tt.r.Key(), tt.r.Object.Head().Source.File, got, tt.want)
		}
	}
}
