package main

import (
	"path/filepath"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// exampleRenders has the variables and the expected messages for every prompt of manifests/.
var exampleRenders = map[string]struct {
	args []string
	want string
}{
	"travel-advice": {
		[]string{"-a", "city=Oslo", "-a", "days=3"},
		"system: You are a travel adviser. Ask the tools; do not guess the weather.\n\nuser: What should I pack for 3 days in Oslo?\n",
	},
	"packing-list": {
		[]string{"-a", `{"city":"Oslo","items":["boots","a hat"]}`},
		"user: # A packing list for a city\n\nWrite a packing list for Oslo as a markdown list, warm things first.\nPut these on it: boots, a hat.\n",
	},
	"summarize": {
		[]string{"-a", " A long text. "},
		"user: # Sums up any text\n\nSum this up in at most three sentences, and name its topics:\n\nA long text.\n",
	},
	"invoice-desk": {
		[]string{"-a", "company=Initech"},
		"system: You are Sam of Initech and answer questions about invoices. \nNever promise a refund.\n",
	},
}

func TestManifestsRender(t *testing.T) {
	root, err := filepath.Abs("../../manifests")
	if err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Load(t.Context(), []string{root}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range set.Objects {
		h := o.Head()
		if h.Kind != v1.KindPrompt || strings.Contains(h.Source.File, "scenarios") {
			continue
		}
		t.Run(h.Metadata.Name, func(t *testing.T) {
			example, ok := exampleRenders[h.Metadata.Name]
			if !ok {
				t.Fatalf("%s: no messages of prompt %q", h.Source, h.Metadata.Name)
			}
			code, out := runCommand(t.Context(), append([]string{"render", "-f", root, h.Metadata.Name}, example.args...)...)
			if code != exitOK || out != example.want {
				t.Errorf("exit code %d:\n%s\nwant\n%s", code, out, example.want)
			}
		})
	}
}
