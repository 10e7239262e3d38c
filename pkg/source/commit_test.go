package source_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
)

const toolText = "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: NAME}\nspec: {description: D, input_schema: {type: object}, mock_result_file: result.json}\n"

// repository makes a repository with one commit: tools/a.yaml, tools/result.json, other/b.yaml.
func repository(t *testing.T, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	dir := t.TempDir()
	git(t, dir, append([]string{"init", "-q", "-b", "main"}, args...)...)
	write(t, filepath.Join(dir, "tools", "a.yaml"), strings.ReplaceAll(toolText, "NAME", "a"))
	write(t, filepath.Join(dir, "tools", "result.json"), "1\n")
	write(t, filepath.Join(dir, "other", "b.yaml"), strings.ReplaceAll(toolText, "NAME", "b"))
	write(t, filepath.Join(dir, "other", "result.json"), "2\n")
	git(t, dir, "add", "-A")
	commit(t, dir)
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func commit(t *testing.T, dir string) {
	t.Helper()
	git(t, dir, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "-q", "-m", "a commit")
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// commitOf reads the paths and returns their commit.
func commitOf(t *testing.T, paths ...string) string {
	t.Helper()
	set, err := manifest.Load(t.Context(), paths, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return source.Commit(t.Context(), paths, set.Objects)
}

func TestCommit(t *testing.T) {
	for _, tc := range []struct {
		name  string
		edit  func(t *testing.T, dir string)
		paths []string
		want  string // "", "clean" or "dirty"
	}{
		{name: "as committed", paths: []string{"tools"}, want: "clean"},
		{name: "one file", paths: []string{"tools/a.yaml"}, want: "clean"},
		{name: "two folders", paths: []string{"tools", "other"}, want: "clean"},
		{name: "the top", paths: []string{"."}, want: "clean"},
		{name: "another folder changed", paths: []string{"tools"}, want: "clean", edit: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "other", "b.yaml"), "# changed\n") }},
		{name: "a manifest changed", paths: []string{"tools"}, want: "dirty", edit: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "tools", "a.yaml"), strings.ReplaceAll(toolText, "NAME", "z"))
		}},
		{name: "a staged change", paths: []string{"tools"}, want: "dirty", edit: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "tools", "a.yaml"), strings.ReplaceAll(toolText, "NAME", "z"))
			git(t, dir, "add", "-A")
		}},
		{name: "a file that a manifest names changed", paths: []string{"tools/a.yaml"}, want: "dirty", edit: func(t *testing.T, dir string) { write(t, filepath.Join(dir, "tools", "result.json"), "3\n") }},
		{name: "a manifest is gone", paths: []string{"tools", "other"}, want: "dirty", edit: func(t *testing.T, dir string) {
			os.Remove(filepath.Join(dir, "other", "b.yaml"))
			write(t, filepath.Join(dir, "other", "c.md"), "---\napiVersion: toolctl.dev/v1\nkind: Prompt\nmetadata: {name: c}\n---\ntext\n")
		}},
		{name: "a new manifest", paths: []string{"tools"}, want: "dirty", edit: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "tools", "n.yaml"), strings.ReplaceAll(toolText, "NAME", "n"))
		}},
		{name: "a new file that is no manifest", paths: []string{"."}, want: "clean", edit: func(t *testing.T, dir string) { write(t, filepath.Join(dir, ".toolctl", "state.db"), "x") }},
		{name: "lines that end otherwise", paths: []string{"tools"}, want: "clean", edit: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "tools", "a.yaml"), strings.ReplaceAll(strings.ReplaceAll(toolText, "NAME", "a"), "\n", "\r\n"))
		}},
		{name: "a folder that is not committed", paths: []string{"new"}, want: "dirty", edit: func(t *testing.T, dir string) {
			write(t, filepath.Join(dir, "new", "a.yaml"), strings.ReplaceAll(toolText, "NAME", "n"))
			write(t, filepath.Join(dir, "new", "result.json"), "1")
		}},
		{name: "no commit yet", paths: []string{"tools"}, want: "", edit: func(t *testing.T, dir string) { os.RemoveAll(filepath.Join(dir, ".git")); git(t, dir, "init", "-q") }},
		{name: "no repository", paths: []string{"tools"}, want: "", edit: func(t *testing.T, dir string) { os.RemoveAll(filepath.Join(dir, ".git")) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := repository(t)
			head := git(t, dir, "rev-parse", "HEAD")
			if tc.edit != nil {
				tc.edit(t, dir)
			}
			var paths []string
			for _, p := range tc.paths {
				paths = append(paths, filepath.Join(dir, filepath.FromSlash(p)))
			}
			want := map[string]string{"clean": head, "dirty": head + source.Dirty}[tc.want]
			if got := commitOf(t, paths...); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	t.Run("SHA-256", func(t *testing.T) {
		dir := repository(t, "--object-format=sha256")
		if got, want := commitOf(t, filepath.Join(dir, "tools")), git(t, dir, "rev-parse", "HEAD"); got != want || len(got) != 64 {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("stdin", func(t *testing.T) {
		if got := source.Commit(t.Context(), nil, nil); got != "" {
			t.Errorf("%q of no path", got)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		dir := repository(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := source.Commit(ctx, []string{dir}, nil); got != "" {
			t.Errorf("%q", got)
		}
	})
}

// TestCommitRunsNothing: hooks, file system monitors and filters of the repository are not run.
func TestCommitRunsNothing(t *testing.T) {
	dir := repository(t)
	trap := filepath.Join(t.TempDir(), "ran")
	program := "touch " + trap + "; cat"
	for _, key := range []string{"core.fsmonitor", "filter.evil.clean", "filter.evil.smudge", "filter.evil.process", "diff.evil.textconv"} {
		git(t, dir, "config", key, program)
	}
	write(t, filepath.Join(dir, ".git", "info", "attributes"), "* filter=evil diff=evil\n")
	write(t, filepath.Join(dir, "tools", "a.yaml"), strings.ReplaceAll(toolText, "NAME", "z"))
	hook := filepath.Join(dir, ".git", "hooks", "post-index-change")
	write(t, hook, "#!/bin/sh\ntouch "+trap+"\n")
	if err := os.Chmod(hook, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := commitOf(t, filepath.Join(dir, "tools")); !strings.HasSuffix(got, source.Dirty) {
		t.Errorf("%q, want it dirty", got)
	}
	set, err := source.LoadGit(t.Context(), source.Git{Rev: "HEAD", Paths: []string{filepath.Join(dir, "tools")}}, manifest.Options{})
	if err != nil || len(set.Objects) != 1 || set.Objects[0].Head().Metadata.Name != "a" {
		t.Errorf("the manifests of HEAD: %+v, %v", set, err)
	}
	if _, err := os.Stat(trap); err == nil {
		t.Error("a program of the repository was run")
	}
}
