package source_test

import (
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/source"
)

// For any content of a repository, none of its programs are run, no outside file is read, and limits are enforced.
func TestHostileRepositories(t *testing.T) {
	r := newRepository(t)
	ran := filepath.Join(t.TempDir(), "ran")
	script := filepath.Join(t.TempDir(), "run.sh")
	write(t, script, "#!/bin/sh\ntouch "+ran+"\n")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	write(t, outside, tool("outside"))
	r.write(t, "a.yaml", tool("a"))

	load := func(t *testing.T) (string, error) {
		t.Helper()
		r.push(t)
		set, err := open(t, r.at("?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context())
		if _, ranErr := os.Stat(ran); ranErr == nil {
			t.Fatal("a program of the repository ran")
		}
		if err != nil {
			return "", err
		}
		return names(set), nil
	}
	check := func(t *testing.T, want string) {
		t.Helper()
		if got, err := load(t); err != nil || got != want {
			t.Errorf("got %q, %v; want %q", got, err, want)
		}
	}

	t.Run("hooks and configuration", func(t *testing.T) {
		for _, name := range []string{"post-checkout", "reference-transaction", "post-merge", "pre-receive-not", "post-update-not"} {
			if err := os.Symlink(script, filepath.Join(r.bare, "hooks", name)); err != nil {
				t.Fatal(err)
			}
		}
		defer os.RemoveAll(filepath.Join(r.bare, "hooks"))
		r.push(t) // the hooks are those of a server, which a push would run
		if err := os.RemoveAll(ran); err != nil {
			t.Fatal(err)
		}
		for key, value := range map[string]string{
			"uploadpack.packObjectsHook": script, "core.fsmonitor": script, "core.sshCommand": script, "core.gitProxy": script, "gpg.program": script,
			"filter.bad.smudge": script, "filter.bad.process": script, "core.alternateRefsCommand": "/bin/true", "protocol.ext.allow": "always",
		} {
			r.git(t, r.bare, "config", key, value)
		}
		set, err := open(t, r.at("?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context())
		if err != nil || names(set) != "a" {
			t.Errorf("got %v, %v", set, err)
		}
		if _, err := os.Stat(ran); err == nil {
			t.Error("a program of the repository ran")
		}
		for _, key := range []string{"uploadpack.packObjectsHook", "core.fsmonitor", "core.sshCommand", "core.gitProxy", "gpg.program"} {
			r.git(t, r.bare, "config", "--unset", key)
		}
	})
	t.Run("filters", func(t *testing.T) {
		r.git(t, r.work, "config", "filter.bad.clean", "cat")
		r.git(t, r.work, "config", "filter.bad.smudge", script)
		r.write(t, ".gitattributes", "*.yaml filter=bad export-ignore ident working-tree-encoding=UTF-16\n")
		if err := os.RemoveAll(filepath.Join(r.work, ".gitattributes")); err != nil {
			t.Fatal(err)
		}
		r.write(t, ".gitattributes", "*.yaml filter=bad export-ignore\n")
		check(t, "a")
		if err := os.Remove(filepath.Join(r.work, ".gitattributes")); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("submodules", func(t *testing.T) {
		r.write(t, ".gitmodules", "[submodule \"x\"]\n\tpath = sub\n\turl = https://127.0.0.1:1/x\n\tupdate = none\n")
		head := r.git(t, r.work, "rev-parse", "HEAD")
		if err := os.Mkdir(filepath.Join(r.work, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		r.git(t, r.work, "update-index", "--add", "--cacheinfo", "160000,"+head+",sub")
		check(t, "a")
		if !strings.Contains(r.git(t, r.work, "ls-tree", "HEAD"), "160000 commit") {
			t.Error("there is no submodule")
		}
		for _, url := range []string{"ext::" + script, "file://" + r.bare, "ssh://-oProxyCommand=" + script + "/x"} {
			r.write(t, ".gitmodules", "[submodule \"x\"]\n\tpath = sub\n\turl = "+url+"\n\tupdate = !"+script+"\n")
			if got, err := load(t); got != "a" && (err == nil || !strings.Contains(err.Error(), "git fetch")) { // git refuses some of them itself
				t.Errorf("%s: got %q, %v", url, got, err)
			}
		}
		r.write(t, ".gitmodules", "[submodule \"x\"]\n\tpath = sub\n\turl = https://127.0.0.1:1/x\n")
		r.push(t)
		if _, err := open(t, r.at("//sub?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context()); err == nil || !strings.Contains(err.Error(), "sub at the commit is a submodule") {
			t.Errorf("got %v", err)
		}
		// git itself refuses a submodule whose address is a command, before anything is read.
		r.write(t, ".gitmodules", "[submodule \"x\"]\n\tpath = sub\n\turl = -u./run.sh\n")
		if _, err := load(t); err == nil || !strings.Contains(err.Error(), "git fetch") {
			t.Errorf("got %v", err)
		}
		if err := errors.Join(os.Remove(filepath.Join(r.work, "sub")), os.Remove(filepath.Join(r.work, ".gitmodules"))); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("symlinks", func(t *testing.T) {
		links := map[string]string{"out.yaml": outside, "up": "/", "loop": "loop", "in.yaml": "a.yaml"}
		for name, to := range links {
			if err := os.Symlink(to, filepath.Join(r.work, name)); err != nil {
				t.Fatal(err)
			}
		}
		_, err := load(t)
		if err == nil || !strings.Contains(err.Error(), "2 errors") || !strings.Contains(err.Error(), "out.yaml: the file is a symlink") || strings.Contains(err.Error(), "outside.yaml") {
			t.Errorf("got %v", err)
		}
		for name := range links {
			if name != "up" && name != "loop" {
				_ = os.Remove(filepath.Join(r.work, name))
			}
		}
		check(t, "a") // the other links lead nowhere
		r.write(t, "b.yaml", strings.Replace(tool("b"), "mock_result: 1", "mock_result_file: up/etc/hostname", 1))
		if _, err := load(t); err == nil || !strings.Contains(err.Error(), "does not exist") {
			t.Errorf("got %v", err)
		}
		for _, name := range []string{"b.yaml", "up", "loop"} {
			_ = os.Remove(filepath.Join(r.work, name))
		}
	})
	t.Run("pointers of Git LFS", func(t *testing.T) {
		const text = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
		r.write(t, ".gitattributes", "*.json filter=lfs\n")
		r.write(t, ".lfsconfig", "[lfs]\n\turl = http://127.0.0.1:1/\n\tcustomtransfer.x.path = "+script+"\n")
		r.write(t, "b.yaml", text)
		if _, err := load(t); err == nil || !strings.Contains(err.Error(), "b.yaml: the file is a Git LFS pointer") {
			t.Errorf("got %v", err)
		}
		r.write(t, "b.yaml", strings.Replace(tool("b"), "mock_result: 1", "mock_result_file: answer.json", 1))
		r.write(t, "answer.json", text)
		if _, err := load(t); err == nil || !strings.Contains(err.Error(), "answer.json") {
			t.Errorf("got %v", err)
		}
		for _, name := range []string{".gitattributes", ".lfsconfig", "b.yaml", "answer.json"} {
			_ = os.Remove(filepath.Join(r.work, name))
		}
	})
	t.Run("files beyond the bounds", func(t *testing.T) {
		r.write(t, "large.yaml", strings.Repeat("#", 10<<20+1))
		if _, err := load(t); err == nil || !strings.Contains(err.Error(), "large.yaml: the file is larger than 10485760 bytes") {
			t.Errorf("got %v", err)
		}
		_ = os.Remove(filepath.Join(r.work, "large.yaml"))
	})
	t.Run("a tree that is larger than it looks", func(t *testing.T) {
		id := r.hash(t, "blob", tool("a"))
		tree := r.makeTree(t, "100644 blob "+id+"\ta.yaml\n")
		for range 9 { // 10^9 files
			var entries strings.Builder
			for _, name := range strings.Split("0123456789", "") {
				entries.WriteString("040000 tree " + tree + "\t" + name + "\n")
			}
			tree = r.makeTree(t, entries.String())
		}
		commit := r.git(t, r.work, "commit-tree", "-m", "large", tree)
		r.git(t, r.work, "push", "-q", "--force", "origin", commit+":refs/heads/main")
		_, err := open(t, r.at("?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), "it prints more than") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a name that leaves the folder", func(t *testing.T) {
		id := r.hash(t, "blob", tool("a"))
		tree := r.rawTree(t, "100644 ../../escaped.yaml\x00", id)
		commit := r.git(t, r.work, "commit-tree", "-m", "up", tree)
		r.git(t, r.work, "push", "-q", "--force", "origin", commit+":refs/heads/main")
		if _, err := open(t, r.at("?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context()); err == nil {
			t.Error("it is taken")
		}
	})
}

func (r *pushed) stdin(t *testing.T, input string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = r.work, r.env, strings.NewReader(input)
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

func (r *pushed) hash(t *testing.T, kind, text string) string {
	t.Helper()
	return r.stdin(t, text, "hash-object", "-w", "--literally", "-t", kind, "--stdin")
}

func (r *pushed) makeTree(t *testing.T, entries string) string {
	t.Helper()
	return r.stdin(t, entries, "mktree")
}

// rawTree creates a tree with one entry that git would not create.
func (r *pushed) rawTree(t *testing.T, head, id string) string {
	t.Helper()
	raw, err := hex.DecodeString(id)
	if err != nil {
		t.Fatal(err)
	}
	return r.hash(t, "tree", head+string(raw))
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]source.Address{
		"git+https://git.example.com/team/tools":                      {Scheme: "git+https", Remote: "https://git.example.com/team/tools", Path: "."},
		"git+https://git.example.com:8443/team/tools.git//a/b?ref=v1": {Scheme: "git+https", Remote: "https://git.example.com:8443/team/tools.git", Path: "a/b", Ref: "v1"},
		"git+ssh://git@git.example.com/team/tools//prod/?ref=x/y-1.2": {Scheme: "git+ssh", Remote: "ssh://git@git.example.com/team/tools", Path: "prod", Ref: "x/y-1.2"},
		"git+file:///srv/tools.git//prod":                             {Scheme: "git+file", Remote: "file:///srv/tools.git", Path: "prod"},
		"git+https://[::1]:8443/r?ref=refs/heads/main":                {Scheme: "git+https", Remote: "https://[::1]:8443/r", Path: ".", Ref: "refs/heads/main"},
	} {
		got, err := source.ParseAddress(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v", text, got, err)
		}
		if again, err := source.ParseAddress(got.String()); err != nil || again != got {
			t.Errorf("%s: written as %s", text, got)
		}
	}
	for text, want := range map[string]string{
		"":                                       "expected git+https://",
		"main":                                   "expected git+https://",
		"https://git.example.com/r":              "write git+https://",
		"git+http://git.example.com/r":           "not encrypted",
		"git://git.example.com/r":                "not encrypted",
		"ext::sh -c touch% ran":                  "expected git+https://",
		"git+ext::sh -c id":                      "expected git+https://",
		"git+ext://sh/r":                         "expected git+https://",
		"git+https://me:s3cret@git.example.com":  "TOOLCTL_GIT_PASSWORD",
		"git+https://s3cret@git.example.com/r":   "TOOLCTL_GIT_PASSWORD",
		"git+ssh://git:s3cret@host/r":            "TOOLCTL_GIT_PASSWORD",
		"git+ssh://-oProxyCommand=id/r":          "not the name of a host",
		"git+ssh://-oProxyCommand=id@host/r":     "not the name of a user",
		"git+https://-x/r":                       "not the name of a host",
		"git+https://host":                       "no repository",
		"git+https:///r":                         "not the name of a host",
		"git+file://host/r":                      "absolute path",
		"git+https://host/r//../x":               "not a path within",
		"git+https://host/r//a/../../x":          "not a path within",
		"git+https://host/r//a%00b":              "not a path within",
		"git+https://host/r?ref=--upload-pack=x": "ref",
		"git+https://host/r?ref=-x":              "ref",
		"git+https://host/r?ref=a:b":             "ref",
		"git+https://host/r?ref=a..b":            "ref",
		"git+https://host/r?ref=a*":              "ref",
		"git+https://host/r?ref=a@{1}":           "ref",
		"git+https://host/r?ref=a%0ab":           "ref",
		"git+https://host/r?ref=":                "ref",
		"git+https://host/r?ref=a&ref=b":         "once",
		"git+https://host/r?branch=a":            "?ref=REF",
		"git+https://host/r#main":                "?ref=REF",
		"git+https://host/\x00":                  "expected git+https://",
	} {
		_, err := source.ParseAddress(text)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func FuzzParseAddress(f *testing.F) {
	for _, s := range []string{"git+https://host/r//p?ref=x", "git+ssh://u@h:1/r", "git+https://h/r//a%3fb%25?ref=a%2bb%23c", "git+https://h/r//%01a:b", "git+file:///r//p", "ext::x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := source.ParseAddress(text)
		if err != nil {
			return
		}
		if strings.HasPrefix(a.Ref, "-") || strings.HasPrefix(a.Path, "-") && a.Path == "" || strings.Contains(a.Path, "..") && strings.HasPrefix(a.Path, "../") {
			t.Errorf("%q: %+v", text, a)
		}
		if !strings.HasPrefix(a.Remote, strings.TrimPrefix(a.Scheme, "git+")+"://") {
			t.Errorf("%q: %+v", text, a)
		}
		if again, err := source.ParseAddress(a.String()); err != nil || again != a {
			t.Errorf("%q: %+v is written as %s: %v", text, a, a, err)
		}
	})
}
