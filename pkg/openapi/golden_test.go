package openapi_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/openapi"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestGolden imports documents that use every rule, and compares manifests and
// report with what a person has read.
func TestGolden(t *testing.T) {
	for _, name := range []string{"shop-3.0.yaml", "fleet-3.1.json"} {
		t.Run(name, func(t *testing.T) {
			set := load(t, "testdata/"+name, openapi.Options{})
			got := stream(t, set) + report(set)
			golden := "testdata/" + name + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("run with -update when this is right (-want +got):\n%s", diff)
			}
			again := load(t, "testdata/"+name, openapi.Options{})
			if diff := cmp.Diff(got, stream(t, again)+report(again)); diff != "" {
				t.Errorf("a second import differs:\n%s", diff)
			}
			checkTools(t, set)
		})
	}
}

func load(t testing.TB, path string, o openapi.Options) *openapi.Set {
	t.Helper()
	doc, err := openapi.Load(t.Context(), path, openapi.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := doc.Import(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func stream(t testing.TB, set *openapi.Set) string {
	t.Helper()
	var docs []string
	for _, tool := range set.Tools {
		text, err := manifest.MarshalYAML(tool.Manifest)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, string(text))
	}
	return strings.Join(docs, "---\n")
}

func report(set *openapi.Set) string {
	var b strings.Builder
	b.WriteString("--- report\n")
	for _, s := range set.Skipped {
		fmt.Fprintf(&b, "skipped %s: %s\n", s.Operation, s.Reason)
	}
	for _, w := range set.Warnings {
		fmt.Fprintln(&b, w)
	}
	for _, e := range set.Env {
		fmt.Fprintf(&b, "env %s %s\n", e.Variable, strings.Join(e.Hosts, " "))
	}
	return b.String()
}
