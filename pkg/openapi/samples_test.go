package openapi_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/importer"
	"toolctl.dev/toolctl/pkg/openapi"
)

// TestSamples imports the public documents in the folder that the variable
// OPENAPI_SAMPLES names, however deep they lie. Each has to import without an
// error, each manifest has to keep all rules, and a second import has to change
// nothing. Files that are no OpenAPI 3 documents are passed over.
func TestSamples(t *testing.T) {
	dir := os.Getenv("OPENAPI_SAMPLES")
	if dir == "" {
		t.Skip("OPENAPI_SAMPLES names no folder with OpenAPI documents: public documents are not imported")
	}
	count := 0
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !isSample(t, path) {
			return err
		}
		count++
		name, _ := filepath.Rel(dir, path)
		t.Run(filepath.ToSlash(name), func(t *testing.T) { importSample(t, path) })
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if count == 0 {
		t.Errorf("%s holds no OpenAPI document", dir)
	}
}

// isSample reports whether a file says that it is an OpenAPI 3.0 or 3.1 document.
func isSample(t *testing.T, path string) bool {
	t.Helper()
	switch filepath.Ext(path) {
	case ".json", ".yaml", ".yml":
	default:
		return false
	}
	st, err := os.Stat(path) // the target of a link
	if err != nil || st.Size() > 50<<20 {
		return false
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flat := strings.NewReplacer(" ", "", "\"", "", "'", "")
	start := flat.Replace(string(data))
	return strings.Contains(start, "openapi:3.0") || strings.Contains(start, "openapi:3.1")
}

func importSample(t *testing.T, path string) {
	start := time.Now()
	doc, err := openapi.Load(t.Context(), path, openapi.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	loaded := time.Since(start)
	set, err := doc.Import(t.Context(), openapi.Options{})
	if err != nil && strings.Contains(err.Error(), "--server") {
		set, err = doc.Import(t.Context(), openapi.Options{Server: "https://api.example"})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tools, %d skipped, %d warnings; read in %v, imported in %v", len(set.Tools), len(set.Skipped), len(set.Warnings), loaded, time.Since(start)-loaded)
	for _, s := range set.Skipped {
		t.Logf("skipped %s: %s", s.Operation, s.Reason)
		if strings.Contains(s.Reason, "schema cannot be used") {
			t.Errorf("%s: %s", s.Operation, s.Reason)
		}
	}
	for _, w := range set.Warnings {
		if strings.Contains(w.Message, "no output_schema") {
			t.Logf("%s", w)
		}
	}
	checkTools(t, set)
	out := filepath.Join(t.TempDir(), "tools")
	if err := set.Write(t.Context(), out, importer.WriteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := set.Write(t.Context(), out, importer.WriteOptions{Prune: true}); err != nil {
		t.Fatal(err)
	}
	for _, c := range set.Changes {
		if c.Action != importer.ActionUnchanged {
			t.Errorf("the second import: %s %s", c.Action, c.File)
		}
	}
	if st, err := os.Stat(filepath.Join(out, importer.LockFile)); err == nil {
		t.Logf("lock file: %d bytes", st.Size())
	}
}
