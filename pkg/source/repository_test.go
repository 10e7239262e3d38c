package source_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/source"
)

// pushed is a work tree with the bare repository to which it pushes.
type pushed struct {
	work, bare string
	env        []string
}

func newRepository(t *testing.T) *pushed {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "gitconfig")
	write(t, config, "[user]\nname = a\nemail = a@example.com\n[init]\ndefaultBranch = main\n[protocol \"file\"]\nallow = always\n")
	t.Setenv("GIT_CONFIG_GLOBAL", config)
	r := &pushed{work: filepath.Join(dir, "work"), bare: filepath.Join(dir, "tools.git"), env: append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1")}
	r.git(t, dir, "init", "-q", "--bare", r.bare)
	r.git(t, dir, "init", "-q", r.work)
	r.git(t, r.work, "remote", "add", "origin", r.bare)
	return r
}

func (r *pushed) git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// push commits all of the work tree and returns the commit.
func (r *pushed) push(t *testing.T, args ...string) string {
	t.Helper()
	r.git(t, r.work, "add", "-A")
	r.git(t, r.work, append([]string{"commit", "-q", "--allow-empty", "-m", "a change"}, args...)...)
	r.git(t, r.work, "push", "-q", "--force", "origin", "HEAD:main")
	return r.git(t, r.work, "rev-parse", "HEAD")
}

func (r *pushed) write(t *testing.T, name, text string) {
	t.Helper()
	write(t, filepath.Join(r.work, name), text)
}

// at returns the address of the repository.
func (r *pushed) at(rest string) string { return "git+file://" + r.bare + rest }

func open(t *testing.T, address string, ro source.RepositoryOptions, o source.RemoteOptions) *source.Remote {
	t.Helper()
	a, err := source.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	origin, err := source.NewRepository(a, ro)
	if err != nil {
		t.Fatal(err)
	}
	remote := source.NewRemote(origin, o)
	t.Cleanup(func() {
		if err := remote.Close(); err != nil {
			t.Error(err)
		}
	})
	return remote
}

func tool(name string) string {
	return fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: %s}\nspec: {description: A tool., input_schema: {type: object}, mock_result: 1}\n", name)
}

func names(set *manifest.Set) string {
	var all []string
	for _, o := range set.Objects {
		all = append(all, o.Head().Metadata.Name)
	}
	return strings.Join(all, " ")
}

func TestRemoteFollowsABranch(t *testing.T) {
	r := newRepository(t)
	r.write(t, "prod/a.yaml", tool("a"))
	r.write(t, "other/z.yaml", tool("z"))
	one := r.push(t)
	remote := open(t, r.at("//prod?ref=main"), source.RepositoryOptions{}, source.RemoteOptions{})
	set, err := remote.Load(t.Context())
	if err != nil || names(set) != "a" || set.Objects[0].Head().Source.String() != "prod/a.yaml:1:1" {
		t.Fatalf("got %v, %v", set, err)
	}
	if s := remote.Status(); s.Revision != one || s.Failed != nil || s.Since == nil {
		t.Errorf("got %+v", s)
	}
	if again, err := remote.Load(t.Context()); err != nil || again != set {
		t.Error("a commit that was read is read again")
	}

	r.write(t, "prod/b.yaml", strings.Replace(tool("b"), "mock_result", "mock_resul", 1))
	bad := r.push(t)
	_, err = remote.Load(t.Context())
	var wrong *source.RevisionError
	if !errors.As(err, &wrong) || wrong.Revision != bad || !strings.Contains(err.Error(), bad) || !strings.Contains(err.Error(), "prod/b.yaml:4:") {
		t.Fatalf("got %v", err)
	}
	if s := remote.Status(); s.Revision != one || s.Failed == nil || s.Failed.Revision != bad || len(s.Failed.Places) != 1 || !strings.HasPrefix(s.Failed.Places[0], "prod/b.yaml:4:") {
		t.Errorf("got %+v", s)
	}

	r.write(t, "prod/b.yaml", tool("b"))
	good := r.push(t)
	if set, err = remote.Load(t.Context()); err != nil || names(set) != "a b" {
		t.Fatalf("got %v, %v", set, err)
	}
	if s := remote.Status(); s.Revision != good || s.Failed != nil {
		t.Errorf("got %+v", s)
	}

	// An unreachable source is reported, and works again later.
	if err := os.Rename(r.bare, r.bare+".away"); err != nil {
		t.Fatal(err)
	}
	if _, err = remote.Load(t.Context()); err == nil || errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
	if s := remote.Status(); s.Revision != good || s.Failed == nil || s.Failed.Revision != "" {
		t.Errorf("got %+v", s)
	}
	if err := os.Rename(r.bare+".away", r.bare); err != nil {
		t.Fatal(err)
	}
	if _, err = remote.Load(t.Context()); err != nil || remote.Status().Failed != nil {
		t.Errorf("got %v, %+v", err, remote.Status())
	}
}

// At the start there is no previous good commit: the newest good one is searched.
func TestRemoteStartsWithTheNewestGoodCommit(t *testing.T) {
	r := newRepository(t)
	r.write(t, "a.yaml", tool("a"))
	r.push(t)
	r.write(t, "b.yaml", tool("b"))
	good := r.push(t)
	r.write(t, "b.yaml", "kind: [")
	r.push(t)
	r.write(t, "c.yaml", tool("c"))
	bad := r.push(t)
	remote := open(t, r.at(""), source.RepositoryOptions{}, source.RemoteOptions{Older: true})
	for range 2 { // it stays so
		set, err := remote.Load(t.Context())
		if err != nil || names(set) != "a b" {
			t.Fatalf("got %v, %v", set, err)
		}
		if s := remote.Status(); s.Revision != good || s.Failed == nil || s.Failed.Revision != bad {
			t.Errorf("got %+v", s)
		}
	}
	if _, err := open(t, r.at(""), source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context()); err == nil {
		t.Error("an older commit is used although nobody asked for it")
	}
	if _, err := open(t, r.at("?ref="+bad), source.RepositoryOptions{}, source.RemoteOptions{Older: true}).Load(t.Context()); err == nil {
		t.Error("a commit that is named is another one")
	}
}

func TestRemoteRefs(t *testing.T) {
	r := newRepository(t)
	r.write(t, "a.yaml", tool("tagged"))
	tagged := r.push(t)
	r.git(t, r.work, "tag", "-a", "-m", "a tag", "v1")
	r.git(t, r.work, "tag", "main") // of the branch's name: the branch counts
	r.git(t, r.work, "push", "-q", "origin", "refs/tags/v1", "refs/tags/main")
	r.write(t, "a.yaml", tool("newest"))
	r.git(t, r.work, "add", "-A")
	r.git(t, r.work, "commit", "-q", "-m", "next")
	r.git(t, r.work, "push", "-q", "origin", "HEAD:refs/heads/main")
	for ref, want := range map[string]string{
		"": "newest", "?ref=main": "newest", "?ref=v1": "tagged", "?ref=refs/tags/main": "tagged", "?ref=refs/tags/v1": "tagged", "?ref=" + tagged: "tagged",
	} {
		set, err := open(t, r.at(ref), source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context())
		if err != nil || names(set) != want {
			t.Errorf("%q: got %v, %v; want %s", ref, set, err, want)
		}
	}
	for ref, want := range map[string]string{
		"?ref=none":                             `has no branch or tag "none"`,
		"?ref=" + strings.Repeat("0", 39) + "1": "git fetch",
		"//none?ref=main":                       "the commit has no none",
	} {
		if _, err := open(t, r.at(ref), source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", ref, err, want)
		}
	}
}

// A folder with a kustomization.yaml is built, with referenced files above it, and nothing outside the repository.
func TestRemoteBuildsEnvironments(t *testing.T) {
	r := newRepository(t)
	r.write(t, "base/kustomization.yaml", "resources: [a.yaml]\n")
	r.write(t, "base/a.yaml", tool("a"))
	r.write(t, "prod/kustomization.yaml", "resources: [../base]\nnameSuffix: -prod\n")
	r.push(t)
	remote := open(t, r.at("//prod"), source.RepositoryOptions{}, source.RemoteOptions{})
	set, err := remote.Load(t.Context())
	if err != nil || names(set) != "a-prod" || set.Objects[0].Head().Source.File != "base/a.yaml" {
		t.Fatalf("got %v, %v", set, err)
	}
	r.write(t, "prod/kustomization.yaml", "resources: [../../../../../../../../../etc]\n")
	r.push(t)
	if _, err = remote.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "prod/kustomization.yaml:1:13") || strings.Contains(err.Error(), os.TempDir()) {
		t.Errorf("got %v", err)
	}
}

func TestRemoteChecks(t *testing.T) {
	r := newRepository(t)
	r.write(t, "a.yaml", tool("a"))
	commit := r.push(t)
	check := func(_ context.Context, set *manifest.Set) ([]v1.Violation, error) {
		return []v1.Violation{{Message: "just a hint", Severity: v1.SeverityWarning}, {Source: set.Objects[0].Head().Field("/spec/description"), Message: "too short"}}, nil
	}
	_, err := open(t, r.at(""), source.RepositoryOptions{}, source.RemoteOptions{Check: check}).Load(t.Context())
	if want := "commit " + commit + ": 1 error\n  a.yaml:4:8: too short"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	// If a source loses its manifests, the empty set is not served.
	r.git(t, r.work, "rm", "-q", "a.yaml")
	r.push(t)
	if _, err := open(t, r.at(""), source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context()); err == nil {
		t.Error("an empty source is taken")
	}
	if set, err := open(t, r.at(""), source.RepositoryOptions{}, source.RemoteOptions{Manifests: manifest.Options{AllowEmpty: true}}).Load(t.Context()); err != nil || len(set.Objects) != 0 {
		t.Errorf("got %v, %v", set, err)
	}
}

// Credentials for HTTPS come from the environment, and appear in no message.
func TestRepositoryOverHTTPS(t *testing.T) {
	r := newRepository(t)
	r.write(t, "a.yaml", tool("a"))
	r.push(t)
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: git, Args: []string{"http-backend"}, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.bare), "GIT_HTTP_EXPORT_ALL=1"}, InheritEnv: []string{"GIT_CONFIG_GLOBAL", "PATH"}}
	const secret = `p%s"w'\n$(touch ran)`
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if user, password, ok := req.BasicAuth(); !ok || user != "git" || password != secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			http.Error(w, "who are you, "+password, http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, req)
	}))
	t.Cleanup(srv.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	write(t, ca, pemOf(srv.Certificate().Raw))
	t.Setenv("GIT_SSL_CAINFO", ca)
	address := "git+" + srv.URL + "/tools.git?ref=main"
	for password, want := range map[string]string{secret: "", "wrong-secret": "Authentication failed", "": "could not read Username"} {
		env := append(os.Environ(), source.PasswordVariable+"="+password)
		set, err := open(t, address, source.RepositoryOptions{Environ: env}, source.RemoteOptions{}).Load(t.Context())
		switch {
		case want == "" && (err != nil || names(set) != "a"):
			t.Errorf("got %v, %v", set, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wrong-secret")):
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func pemOf(der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
