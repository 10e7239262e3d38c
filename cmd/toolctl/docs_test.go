package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// TestDocs runs every console block of the README and of docs/. A line that starts with "$ " is a command, and the
// lines after it are its output, stdout and stderr together. A line "..." stands for any number of lines, and a last
// line "[exit N]" for an exit code other than 0. The blocks of a page run in order in one folder, which has a copy of
// manifests/ and the page's yaml blocks with a title (```yaml title=NAME).
func TestDocs(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("the pages run without the race detector: what they show is in scripts, which run with it")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, filepath.Join(root, "README.md"))
	for _, page := range pages {
		name, _ := filepath.Rel(root, page)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(filepath.Join(root, "manifests"))); err != nil {
				t.Fatal(err)
			}
			made := runPage(t, root, dir, string(text))
			if os.Getenv("UPDATE_DOCS") != "" && made != string(text) {
				if err := os.WriteFile(page, []byte(made), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

var fence = regexp.MustCompile("(?ms)^```(console|yaml title=|go)([^\n]*)\n(.*?)^```$")

// runPage runs a page and returns the page with the actual output of its commands.
func runPage(t *testing.T, root, dir, text string) string {
	made := text
	for _, m := range fence.FindAllStringSubmatch(text, -1) {
		kind, arg, body := m[1], strings.TrimSpace(m[2]), m[3]
		if kind == "yaml title=" {
			path := filepath.Join(dir, filepath.FromSlash(arg))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(body), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if kind != "console" {
			continue
		}
		var ran strings.Builder
		for _, step := range splitSteps(body) {
			ran.WriteString("$ " + step.command + "\n" + runStep(t, root, dir, step))
		}
		made = strings.Replace(made, m[0], "```console\n"+ran.String()+"```", 1)
	}
	return made
}

type step struct{ command, output string }

func splitSteps(body string) []step {
	var steps []step
	for line := range strings.Lines(body) {
		if cmd, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, step{command: strings.TrimSpace(cmd)})
		} else if n := len(steps); n > 0 {
			if s := &steps[n-1]; s.output == "" && strings.HasSuffix(s.command, "\\") {
				s.command += "\n" + strings.TrimRight(line, "\n")
				continue
			}
			steps[n-1].output += line
		}
	}
	return steps
}

// runStep runs a command and returns its output, or the expected output if it matches.
func runStep(t *testing.T, root, dir string, s step) string {
	t.Helper()
	if s.command == "go test ./..." {
		return "" // this command would run the docs test itself
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", s.command)
	cmd.Dir = dir
	if strings.HasPrefix(s.command, "go run ./cmd/toolctl") {
		cmd.Dir = root
	}
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "TOOLCTL_STORE=")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil {
		if !asExit(err, &exit) {
			t.Fatalf("$ %s: %v", s.command, err)
		}
		out = append(bytes.TrimRight(out, "\n"), fmt.Sprintf("\n[exit %d]\n", exit.ExitCode())...)
	}
	if fits(strings.TrimSpace(s.output), strings.TrimSpace(string(out))) {
		return s.output
	}
	t.Errorf("$ %s\ngot:\n%s\nthe page says:\n%s", s.command, out, s.output)
	return string(out)
}

func asExit(err error, exit **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError) //nolint:errorlint // what Run returns is never wrapped
	*exit = e
	return ok
}

// fits reports whether output matches the expected output, in which a line "..." matches any lines.
func fits(want, got string) bool {
	var re strings.Builder
	re.WriteString(`\A`)
	for i, line := range strings.Split(want, "\n") {
		if i > 0 {
			re.WriteString(`\n`)
		}
		if strings.TrimSpace(line) == "..." {
			re.WriteString(`(?s:.*)`)
		} else {
			re.WriteString(regexp.QuoteMeta(strings.TrimRight(line, " ")))
			re.WriteString(` *`)
		}
	}
	re.WriteString(`\z`)
	return regexp.MustCompile(re.String()).MatchString(got)
}
