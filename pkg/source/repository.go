package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/proc"
	"toolctl.dev/toolctl/pkg/overlay"
)

// Repository is an origin that asks a repository of git, by the program git. Nothing of the
// repository is run: it has no work tree, hooks, filters and submodules are not looked at, and git
// speaks the one protocol of the address. Each revision is fetched into a folder of its own,
// without the history.
type Repository struct {
	address Address
	signers *signers // nil: a commit needs no signature
	host    *proc.Host
	env     []string
	config  []string
	limits  proc.Limits
}

// RepositoryOptions configure a [Repository].
type RepositoryOptions struct {
	// Environ is the environment of git. Variables of git that would lead it elsewhere are
	// left out. Default: [os.Environ].
	Environ []string
	// RequireSigned is a file of keys, as [Repository] wants them: allowed signers of SSH, or
	// public keys of OpenPGP. A commit that none of them signed is bad. Default: no signature is
	// needed.
	RequireSigned string
}

// Variables of the environment that say who signs in to an address of git+https.
const (
	UserVariable     = "TOOLCTL_GIT_USERNAME"
	PasswordVariable = "TOOLCTL_GIT_PASSWORD" //nolint:gosec // it is the name of one
)

// NewRepository makes an origin of an address of git.
func NewRepository(a Address, o RepositoryOptions) (*Repository, error) {
	if !a.IsGit() {
		return nil, fmt.Errorf("%s is not a Git repository", a)
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	r := &Repository{address: a, host: &proc.Host{}, config: fetching(), limits: limited()}
	r.env = environment(o.Environ, strings.TrimPrefix(a.Scheme, "git+"))
	if password := variable(o.Environ, PasswordVariable); password != "" && a.Scheme == GitHTTPS {
		r.config = append(r.config, credentials(a)...)
	}
	if o.RequireSigned != "" {
		r.signers = &signers{file: o.RequireSigned}
		if _, err := r.signers.read(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// fetching is the configuration by which git fetches: it starts nothing of its own, checks what
// it gets, and writes one file that can be bounded.
func fetching() []string {
	return append(slices.Clone(inert), "core.symlinks=false", "fetch.recurseSubmodules=false", "fetch.unpackLimit=1", "transfer.unpackLimit=1",
		"fetch.fsckObjects=true", "transfer.fsckObjects=true", "transfer.bundleURI=false", "gc.auto=0", "maintenance.auto=false", "protocol.version=2",
		"advice.defaultBranchName=false")
}

// credentials has git take who signs in from the environment, for the host of the address alone.
// The command has the names of the variables, so that their values are in no list of processes.
func credentials(a Address) []string {
	host := strings.TrimPrefix(a.Remote, "https://")
	host, _, _ = strings.Cut(host, "/")
	key := "credential.https://" + host + ".helper="
	return []string{key, key + `!f() { test "$1" = get && printf 'username=%s\npassword=%s\n' "${` + UserVariable + `:-git}" "$` + PasswordVariable + `"; }; f`}
}

func variable(environ []string, name string) string {
	value := ""
	for _, e := range environ {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			value = v
		}
	}
	return value
}

// ofGit are the variables of git that stay: how it signs in and reaches a server, and whose
// configuration it reads. Others, such as GIT_DIR, would lead it elsewhere, or write secrets to
// its log.
var ofGit = []string{"GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_",
	"GIT_SSL_", "GIT_PROXY_SSL_", "GIT_HTTP_", "GIT_EXEC_PATH"}

// environment is that of git: it asks nobody, and speaks one protocol.
func environment(environ []string, protocol string) []string {
	var env []string
	for _, e := range environ {
		name, _, _ := strings.Cut(e, "=")
		if strings.HasPrefix(name, "GIT_") && !slices.ContainsFunc(ofGit, func(p string) bool { return name == p || strings.HasSuffix(p, "_") && strings.HasPrefix(name, p) }) {
			continue
		}
		env = append(env, e)
	}
	return with(env, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL="+protocol, "GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_OPTIONAL_LOCKS=0", "GIT_ATTR_NOSYSTEM=1", "SSH_ASKPASS_REQUIRE=never", "LC_ALL=C")
}

// with sets variables. Of two with one name a program may read either.
func with(env []string, variables ...string) []string {
	all := slices.Clone(variables)
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		if !slices.ContainsFunc(variables, func(v string) bool { return strings.HasPrefix(v, name+"=") }) {
			all = append(all, e)
		}
	}
	return all
}

func (r *Repository) git(dir string) *runner {
	return &runner{host: r.host, dir: dir, bare: true, env: r.env, config: r.config, limits: r.limits}
}

func (r *Repository) String() string { return r.address.String() }

// Close ends what runs git.
func (r *Repository) Close() error {
	r.host.Close()
	return nil
}

// Trust is what the file of keys holds.
func (r *Repository) Trust() (string, error) {
	if r.signers == nil {
		return "", nil
	}
	k, err := r.signers.read()
	if err != nil {
		return "", err
	}
	return k.digest, nil
}

// Head asks which commit the address names. Of a branch and a tag of one name it is the branch.
func (r *Repository) Head(ctx context.Context) (string, error) {
	if wholeCommit.MatchString(r.address.Ref) {
		return r.address.Ref, nil
	}
	names := []string{"HEAD"}
	switch ref := r.address.Ref; {
	case strings.HasPrefix(ref, "refs/"):
		names = []string{ref + "^{}", ref}
	case ref != "":
		names = []string{"refs/heads/" + ref, "refs/tags/" + ref + "^{}", "refs/tags/" + ref}
	}
	dir, err := os.MkdirTemp("", "toolctl-git-") // it is no repository: no configuration of one is read
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	out, err := r.git(dir).run(ctx, append([]string{"ls-remote", "--quiet", "--end-of-options", r.address.Remote}, names...)...)
	if err != nil {
		return "", err
	}
	found := map[string]string{}
	for line := range strings.Lines(out) {
		if id, name, ok := strings.Cut(strings.TrimRight(line, "\n"), "\t"); ok && wholeCommit.MatchString(id) {
			found[name] = id
		}
	}
	for _, name := range names {
		if id := found[name]; id != "" {
			return id, nil
		}
	}
	if r.address.Ref == "" {
		return "", errors.New("the repository is empty")
	}
	return "", fmt.Errorf("the repository has no branch or tag %q", r.address.Ref)
}

// Fetch fetches one commit and writes its files, those of the address's path and, when that is
// built from others, all.
func (r *Repository) Fetch(ctx context.Context, revision, dir string) (Files, error) {
	clone, err := r.clone(ctx, revision, "--depth=1")
	if err != nil {
		return Files{}, err
	}
	defer os.RemoveAll(clone.dir)
	if r.signers != nil {
		if err := r.signers.verify(ctx, clone, revision); err != nil {
			return Files{}, err
		}
	}
	t := &tree{runner: clone, commit: revision, name: "the commit"}
	left, err := t.extract(ctx, r.address.Path, dir)
	if err == nil && r.address.Path != "." && overlay.Is(filepath.Join(dir, filepath.FromSlash(r.address.Path))) {
		left, err = t.extract(ctx, ".", dir)
	}
	if err != nil {
		if failed := new(gitError); ctx.Err() == nil && !errors.As(err, &failed) && !errors.Is(err, os.ErrPermission) {
			err = &RevisionError{Revision: revision, Err: err}
		}
		return Files{}, err
	}
	return Files{Path: path.Clean(r.address.Path), leftOut: left}, nil
}

// clone fetches a commit, with those before it that the options of git leave, into a bare repository of
// its own, which the caller removes. A commit that is no branch's or tag's is fetched by its name.
func (r *Repository) clone(ctx context.Context, commit string, options ...string) (_ *runner, err error) {
	dir, err := os.MkdirTemp("", "toolctl-git-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	format := "sha1"
	if len(commit) > len("da39a3ee5e6b4b0d3255bfef95601890afd80709") {
		format = "sha256"
	}
	g := r.git(dir)
	if _, err := g.run(ctx, "init", "--quiet", "--bare", "--template=", "--object-format="+format, "."); err != nil {
		return nil, err
	}
	args := append([]string{"fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--force"}, options...)
	_, err = g.run(ctx, append(args, "--end-of-options", r.address.Remote, "+"+commit+":refs/toolctl/at")...)
	if failed := new(gitError); errors.As(err, &failed) && r.full(dir) {
		err = &gitError{failed.command, fmt.Sprintf("the repository is too large: one of its packs exceeds %d MiB", r.limits.FileBytes>>20)}
	}
	return g, err
}

// full reports whether a file of a clone has reached the limit: git does not say why it ended.
func (r *Repository) full(dir string) bool {
	packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*"))
	return err == nil && r.limits.FileBytes > 0 && slices.ContainsFunc(packs, func(p string) bool {
		info, err := os.Stat(p)
		return err == nil && info.Size() >= r.limits.FileBytes
	})
}

const maxOlder = 20

// Older returns the commits before one, on its first line of parents.
func (r *Repository) Older(ctx context.Context, revision string) ([]string, error) {
	if wholeCommit.MatchString(r.address.Ref) {
		return nil, nil // it is this one or none
	}
	all, err := r.history(ctx, revision, maxOlder+1, "--first-parent", fmt.Sprintf("--max-count=%d", maxOlder+1))
	return all[min(1, len(all)):], err
}

// Descends reports whether a commit is another or has it among those before it. One that the
// address itself names was chosen by whoever runs toolctl.
func (r *Repository) Descends(ctx context.Context, revision, earlier string) (bool, error) {
	if wholeCommit.MatchString(r.address.Ref) {
		return true, nil
	}
	const near = 100 // most are a few commits ahead, and a whole history may be large
	for _, depth := range []int{near, 0} {
		all, err := r.history(ctx, revision, depth)
		if err != nil || slices.Contains(all, earlier) {
			return err == nil, err
		}
		if len(all) < near {
			break // that was the whole
		}
	}
	return false, nil
}

// history returns a commit and those before it, up to a depth; 0 is all. It asks for commits alone.
func (r *Repository) history(ctx context.Context, revision string, depth int, options ...string) ([]string, error) {
	fetch := []string{"--filter=tree:0"}
	if depth > 0 {
		fetch = append(fetch, fmt.Sprintf("--depth=%d", depth))
	}
	clone, err := r.clone(ctx, revision, fetch...)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(clone.dir)
	out, err := clone.run(ctx, append(append([]string{"rev-list"}, options...), "--end-of-options", revision)...)
	return strings.Fields(out), err
}
