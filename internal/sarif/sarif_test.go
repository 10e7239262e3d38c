package sarif_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	oasis "github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/sarif"
	"toolctl.dev/toolctl/pkg/validate"
)

// A log is what OASIS's schema and an independent reader take, with and without a place, an
// object and a reason to suppress it.
func TestLog(t *testing.T) {
	log := sarif.Log(sarif.Driver{Name: "toolctl x", Version: "1.2.3", URI: "https://toolctl.dev/docs", Rules: []sarif.Rule{
		{ID: "a", Summary: "A.", Help: "Do a.", URI: "https://toolctl.dev/docs#a", Level: sarif.Error}, {ID: "b", Summary: "B.", Help: "Do b.", URI: "https://toolctl.dev/docs#b", Level: sarif.Note},
	}}, []sarif.Result{
		{Rule: "b", Level: sarif.Note, Message: "one", Source: v1.Source{File: "a b/ü.yaml", Line: 3, Column: 7}, Object: v1.Key{Kind: "Tool", Namespace: "default", Name: "x"}, Path: "/spec"},
		{Rule: "a", Level: sarif.Error, Message: "two", Suppressed: "there is none"},
	})
	raw, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	var doc oasis.Report
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&doc); err != nil {
		t.Fatal(err)
	}
	schema := validate.NewCache(validate.Options{}).Schema(oasisSchema(t), 0)
	if violations, err := schema.ValidateJSON(raw); err != nil || len(violations) > 0 {
		t.Errorf("%v, %v in %s", violations, err, raw)
	}
	broken := bytes.Replace(raw, []byte(`"startLine":`), []byte(`"startLine":-`), 1)
	if violations, err := schema.ValidateJSON(broken); err != nil || len(violations) == 0 {
		t.Errorf("a line below 1 is found valid: %v, %v", violations, err)
	}
	results := doc.Runs[0].Results
	if len(results) != 2 || results[0].RuleIndex != 1 {
		t.Fatalf("%d results, of rule %d", len(results), results[0].RuleIndex)
	}
	if at := *results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI; at != "a%20b/%C3%BC.yaml" {
		t.Errorf("the file is %s", at)
	}
	if s := results[1].Suppressions; len(s) != 1 || *s[0].Justification != "there is none" {
		t.Errorf("suppressions %+v", s)
	}
}

// oasisSchema is the schema of OASIS, which the library has and does not show.
func oasisSchema(t *testing.T) []byte {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/owenrumney/go-sarif/v3").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(dir)), "pkg/report/v210/sarif/schema.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(source), "`")
	text, _, ok := strings.Cut(text, "`")
	if !ok {
		t.Fatal("the schema is not where it was")
	}
	return []byte(text)
}
