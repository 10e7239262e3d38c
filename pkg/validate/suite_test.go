package validate_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/validate"
)

// TestSuite runs the required tests of the official JSON-Schema-Test-Suite. The
// folder with its tests/ and remotes/ is named by JSON_SCHEMA_TEST_SUITE.
//
// 2019-09 and 2020-12 pass all. For the older drafts, testdata/known-differences.txt
// lists where gojsonschema differs, exactly: a listed test that passes fails, and
// so does an unlisted one that does not.
//
// What [validate.Schema.SurelyValid] says of the bytes is held to what the engine says of the document.
func TestSuite(t *testing.T) {
	dir := os.Getenv("JSON_SCHEMA_TEST_SUITE")
	if dir == "" {
		t.Skip("JSON_SCHEMA_TEST_SUITE is not set: skipped the official JSON Schema tests of draft-04, draft-06, draft-07, 2019-09 and 2020-12")
	}
	known := readKnownDifferences(t)
	remotes := readRemotes(t, filepath.Join(dir, "remotes"))
	total, surely := 0, 0
	for _, d := range []struct {
		folder string
		draft  validate.Draft
	}{
		{"draft4", validate.Draft4}, {"draft6", validate.Draft6}, {"draft7", validate.Draft7},
		{"draft2019-09", validate.Draft2019}, {"draft2020-12", validate.Draft2020},
	} {
		files, err := filepath.Glob(filepath.Join(dir, "tests", d.folder, "*.json"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no tests in %s: %v", filepath.Join(dir, "tests", d.folder), err)
		}
		for _, file := range files {
			// The suite's required format.json says that "format" is an annotation
			// unless asked for. This package always asks; there it must not.
			options := validate.Options{Documents: remotes, FormatAnnotation: filepath.Base(file) == "format.json"}
			all, fast := runSuiteFile(t, validate.NewCache(options), d.folder, d.draft, file, known)
			total, surely = total+all, surely+fast
		}
	}
	for _, k := range slices.Sorted(maps.Keys(known)) {
		t.Errorf("known-differences.txt lists a test that passes or does not exist: %s", k)
	}
	t.Logf("%d tests, %d of them valid by their bytes", total, surely)
	if surely < 500 {
		t.Errorf("%d documents are valid by their bytes: the common keywords are not among them", surely)
	}
}

type suiteGroup struct {
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// runSuiteFile takes the differences that it meets out of known.
func runSuiteFile(t *testing.T, cache *validate.Cache, folder string, draft validate.Draft, file string, known map[string]string) (total, surely int) {
	var groups []suiteGroup
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &groups); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	for _, g := range groups {
		schema := cache.Schema(g.Schema, draft)
		for _, test := range g.Tests {
			total++
			name := strings.Join([]string{folder, strings.TrimSuffix(filepath.Base(file), ".json"), g.Description, test.Description}, " | ")
			doc, err := validate.Decode(test.Data)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			violations, err := schema.Validate(doc)
			var problem string
			if schema.SurelyValid(test.Data) {
				surely++
				if err != nil || len(violations) > 0 {
					t.Errorf("%s: surely valid, and the engine says %v %v", name, violations, err)
				}
			}
			switch {
			case err != nil:
				problem = fmt.Sprintf("error: %v", err)
			case test.Valid && len(violations) > 0:
				problem = fmt.Sprintf("refused: %v", violations)
			case !test.Valid && len(violations) == 0:
				problem = "accepted"
			}
			if _, listed := known[name]; listed && problem != "" {
				delete(known, name)
			} else if problem != "" {
				t.Errorf("%s: %s\n\tschema %s\n\tdocument %s", name, problem, g.Schema, test.Data)
			}
			for _, f := range violations {
				if f.Message == "" || f.Expected == "" || f.Got == "" || strings.Contains(f.Message, "%!") {
					t.Errorf("%s: error is not whole: %+v", name, f)
				}
			}
		}
	}
	return total, surely
}

// readKnownDifferences reads lines of "draft | file | group | test | reason".
func readKnownDifferences(t *testing.T) map[string]string {
	f, err := os.Open("testdata/known-differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	known := map[string]string{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		fields := strings.Split(line, " | ")
		if len(fields) != 5 || fields[4] == "" {
			t.Fatalf("known-differences.txt: want draft | file | group | test | reason, got %q", line)
		}
		known[strings.Join(fields[:4], " | ")] = fields[4]
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return known
}

func readRemotes(t *testing.T, dir string) map[string]json.RawMessage {
	remotes := map[string]json.RawMessage{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		remotes["http://localhost:1234/"+filepath.ToSlash(rel)] = raw
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return remotes
}
