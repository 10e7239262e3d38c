package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

const crds = "../../crds"

func TestDefinitionsAreCurrent(t *testing.T) {
	files, err := generate("../../..")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(crds, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is stale (%v): run go generate ./crds in k8s/", name, err)
		}
	}
	have, err := filepath.Glob(crds + "/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(have) != len(files) {
		t.Errorf("%s has %d files, expected %d: remove what no kind has", crds, len(have), len(files))
	}
	kustomization, err := os.ReadFile(crds + "/Kustomization")
	if err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if !bytes.Contains(kustomization, []byte("- "+name+"\n")) {
			t.Errorf("%s/Kustomization lacks %s", crds, name)
		}
	}
}
