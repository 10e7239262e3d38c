package toolctl_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Every package that others may import shows in an Example how it is used.
func TestPublicPackagesHaveExamples(t *testing.T) {
	for name := range layout {
		if !strings.HasPrefix(name, "pkg/") || strings.Contains(name, "/internal/") {
			continue
		}
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(name), "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || bytes.Contains(text, []byte("\nfunc Example"))
		}
		if !found {
			t.Errorf("%s has no Example", name)
		}
	}
}
