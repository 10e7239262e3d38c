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

// Repository is an origin that reads a Git repository with the program git. It runs no program of the repository: there
// is no work tree, hooks, filters and submodules are ignored, and git uses only the protocol of the address. Each
// revision is fetched into its own folder, without the history.
type Repository struct {
	address Address
	signers *signers // nil: commits need no signature
	host    *proc.Host
	env     []string
	config  []string
	limits  proc.Limits
}

// RepositoryOptions configure a [Repository].
type RepositoryOptions struct {
	// Environ is the environment of git, without the variables that would redirect git. Default: [os.Environ].
	Environ []string
	// RequireSigned is a file of keys in a form for [Repository]: allowed signers of SSH, or public keys of OpenPGP. A
	// commit without a signature by one of these keys is bad. Default: signatures are not required.
	RequireSigned string
}

// Environment variables with the credentials for an address of git+https.
const (
	UserVariable     = "TOOLCTL_GIT_USERNAME"
	PasswordVariable = "TOOLCTL_GIT_PASSWORD" //nolint:gosec // it is the name of one
)

// NewRepository returns an origin for a Git address.
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

// fetching returns the configuration for fetching: git starts no other programs, checks the received objects, and
// writes one file whose size can be limited.
func fetching() []string {
	return append(slices.Clone(inert), "core.symlinks=false", "fetch.recurseSubmodules=false", "fetch.unpackLimit=1", "transfer.unpackLimit=1",
		"fetch.fsckObjects=true", "transfer.fsckObjects=true", "transfer.bundleURI=false", "gc.auto=0", "maintenance.auto=false", "protocol.version=2",
		"advice.defaultBranchName=false")
}

// credentials makes git read the credentials from the environment, for the host of the address only. The command line
// contains only the names of the variables, so that the values do not appear in process lists.
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

// ofGit are the variables of git that are kept: for signing in, reaching a server, and the user's configuration.
// Others, such as GIT_DIR, would redirect git or write secrets to its log.
var ofGit = []string{"GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_", "GIT_CONFIG_VALUE_",
	"GIT_SSL_", "GIT_PROXY_SSL_", "GIT_HTTP_", "GIT_EXEC_PATH"}

// environment returns the environment of git, which prevents prompts and allows only one protocol.
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

// with sets variables and removes duplicates, because a program may read either of two variables with the same name.
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

// Close closes the process host that runs git.
func (r *Repository) Close() error {
	r.host.Close()
	return nil
}

// Trust returns the content of the file of keys.
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

// Head returns the commit that the address names. If a branch and a tag have the same name, the branch counts.
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
	dir, err := os.MkdirTemp("", "toolctl-git-") // an empty folder, so that git reads no repository configuration
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

// Fetch fetches one commit and writes its files: those at the address's path, or all if the path is built from others.
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

// clone fetches a commit, with the earlier commits that the options of git include, into a temporary bare repository,
// which the caller must remove. It fetches by hash a commit that is not the head of a branch or tag.
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

// full reports whether a file of a clone has reached the size limit, because git does not report this.
func (r *Repository) full(dir string) bool {
	packs, err := filepath.Glob(filepath.Join(dir, "objects", "pack", "*"))
	return err == nil && r.limits.FileBytes > 0 && slices.ContainsFunc(packs, func(p string) bool {
		info, err := os.Stat(p)
		return err == nil && info.Size() >= r.limits.FileBytes
	})
}

const maxOlder = 20

// Older returns the commits before a commit, following first parents.
func (r *Repository) Older(ctx context.Context, revision string) ([]string, error) {
	if wholeCommit.MatchString(r.address.Ref) {
		return nil, nil // the address names this commit only
	}
	all, err := r.history(ctx, revision, maxOlder+1, "--first-parent", fmt.Sprintf("--max-count=%d", maxOlder+1))
	return all[min(1, len(all)):], err
}

// Descends reports whether a commit is equal to another or its descendant. A commit in the address itself was chosen by
// the user, so it always descends.
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
			break // this was the whole history
		}
	}
	return false, nil
}

// history returns a commit and its ancestors, up to a depth; 0 means all. It fetches only commits.
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
