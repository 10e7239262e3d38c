package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// sizeBudget is the most bytes that the stripped binary has. `make size` says what each
// module adds.
const sizeBudget = 40_000_000 + postgresSize

// postgresSize is what the PostgreSQL store adds, nearly all of it pgx: goose was there for SQLite.
const postgresSize = 4_260_000

func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("it links the program once more")
	}
	file := filepath.Join(t.TempDir(), "toolctl")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the stripped binary has %d bytes", info.Size())
	if info.Size() > sizeBudget {
		t.Errorf("the stripped binary has %d bytes, and %d are allowed: make size says what each module adds", info.Size(), sizeBudget)
	}
}
