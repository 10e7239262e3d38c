package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// sizeBudget is the maximum size of the stripped binary in bytes. `make size` shows the size of each module.
const sizeBudget = 40_000_000 + postgresSize + consoleSize + searchSize

// postgresSize is the part of the PostgreSQL store, nearly all of it pgx; SQLite already needed goose.
const postgresSize = 4_260_000

// searchSize is the part of toolsets and the search for tools, with the stemmer, embeddings and their commands.
const searchSize = 700_000

// consoleSize is the maximum size of the console, with its pages, scripts and OpenAPI document. It was 560,000 bytes
// before lists had order, filters and pages, and before forms and results had help for newcomers. Above 800,000 bytes
// it is too large for any feature.
const consoleSize = 720_000

func TestSize(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("the programs that are measured are built without the race detector: the tests without it build them")
	}
	size := stripped(t)
	t.Logf("the stripped binary has %d bytes", size)
	if size > sizeBudget {
		t.Errorf("the stripped binary has %d bytes, and %d are allowed: make size says what each module adds", size, sizeBudget)
	}
	without := stripped(t, "-overlay", withoutConsole(t))
	t.Logf("the console adds %d of them", size-without)
	if size-without > consoleSize {
		t.Errorf("the console adds %d bytes, and %d are allowed", size-without, consoleSize)
	}
}

// withoutConsole writes an overlay with an empty package in place of the console.
func withoutConsole(t *testing.T) string {
	t.Helper()
	console, err := filepath.Abs("../../pkg/console")
	if err != nil {
		t.Fatal(err)
	}
	nothing, err := filepath.Abs("testdata/noconsole/console.go")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(console, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for _, file := range files {
		if !strings.HasSuffix(file, "_test.go") {
			replace[file] = "" // removes the file
		}
	}
	replace[filepath.Join(console, "console.go")] = nothing
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(overlay, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return overlay
}

// stripped builds the program as it is released, and returns its size in bytes.
func stripped(t *testing.T, flags ...string) int64 {
	t.Helper()
	if testing.Short() {
		t.Skip("it links the program once more")
	}
	file := filepath.Join(t.TempDir(), "toolctl")
	build := exec.Command("go", append(append([]string{"build", "-trimpath", "-ldflags", "-s -w"}, flags...), "-o", file, ".")...)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
