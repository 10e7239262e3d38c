package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/proc"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/overlay"
)

// Git names the files of a revision.
type Git struct {
	// Dir is a folder of the repository. Default: that of the first path, or the current one.
	Dir string
	// Rev is a revision in the syntax of git, such as HEAD~1, main or a commit.
	Rev string
	// Paths are the files and folders to read, as paths on this machine; they need not exist now. Paths that the
	// revision does not have are skipped.
	Paths []string
	// InTree are paths within the tree of the revision, which must exist there.
	InTree []string
	// Overlays are those of Paths that are built if the revision has a kustomization.yaml there. If Overlays is not
	// empty, the paths of InTree are built too.
	Overlays []string
}

const maxGitTime = 2 * time.Minute

// LoadGit reads the manifests of a revision. Their positions are named REV:PATH.
func LoadGit(ctx context.Context, g Git, o manifest.Options) (*manifest.Set, error) {
	ctx, cancel := context.WithTimeout(ctx, maxGitTime)
	defer cancel()
	if g.Dir == "" && len(g.Paths) > 0 {
		g.Dir = folderOf(g.Paths[0])
	}
	host := &proc.Host{}
	defer host.Close()
	r := local(host, g.Dir)
	top, err := r.run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	commit, err := r.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", g.Rev+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("git: the repository has no revision %q", g.Rev)
	}
	tmp, err := os.MkdirTemp("", "toolctl-git-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	if tmp, err = filepath.EvalSymlinks(tmp); err != nil {
		return nil, err
	}
	t := &tree{runner: r, commit: strings.TrimSpace(commit), name: g.Rev, links: true}
	var found, overlays []string
	extract := func(in string, built bool) error {
		if _, err := t.extract(ctx, in, tmp); err != nil {
			return err
		}
		at := filepath.Join(tmp, filepath.FromSlash(in))
		found = append(found, at)
		if built && overlay.Is(at) {
			overlays = append(overlays, at)
		}
		return nil
	}
	for _, p := range g.Paths {
		in, err := inTree(strings.TrimSuffix(top, "\n"), p)
		if err != nil {
			return nil, err
		}
		if err := extract(in, slices.Contains(g.Overlays, p)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for _, in := range g.InTree {
		in = path.Clean(in)
		if !fs.ValidPath(in) {
			return nil, fmt.Errorf("git: %q is not a path within the repository", in)
		}
		if err := extract(in, len(g.Overlays) > 0); err != nil {
			return nil, err
		}
	}
	if len(found) == 0 {
		return &manifest.Set{}, nil
	}
	if len(overlays) > 0 { // an overlay may name any file of the repository
		if _, err := t.extract(ctx, ".", tmp); err != nil {
			return nil, err
		}
	}
	o.Build = func(ctx context.Context, dir string) (*manifest.Built, error) {
		if !slices.Contains(overlays, dir) {
			return nil, nil
		}
		return overlay.Build(ctx, dir, tmp)
	}
	set, err := manifest.Load(ctx, found, o)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), tmp+string(filepath.Separator), g.Rev+":"))
	}
	relabel(set, tmp, g.Rev+":")
	return set, nil
}

// local runs git in a local repository with the configuration of its user.
func local(host *proc.Host, dir string) *runner {
	return &runner{host: host, dir: dir, config: inert, env: with(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")}
}

// inert is the configuration with which git starts no program of a repository.
var inert = []string{"core.hooksPath=/dev/null", "core.fsmonitor=false", "protocol.ext.allow=never", "submodule.recurse=false"}

// folderOf returns the nearest existing folder.
func folderOf(p string) string {
	for {
		if info, err := os.Stat(p); err == nil && info.IsDir() {
			return p
		}
		up := filepath.Dir(p)
		if up == p {
			return up
		}
		p = up
	}
}

// inTree returns a path of this machine relative to the tree of the repository.
func inTree(top, p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	for _, dir := range []*string{&top, &abs} { // the paths may contain symlinks
		if real, err := filepath.EvalSymlinks(*dir); err == nil {
			*dir = real
		}
	}
	rel, err := filepath.Rel(top, abs)
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("git: %s is not in the repository at %s", p, top)
	}
	return filepath.ToSlash(rel), nil
}

// relabel names positions by a prefix instead of the folder that was read.
func relabel(set *manifest.Set, tmp, prefix string) {
	label := func(s *v1.Source) {
		if rel, err := filepath.Rel(tmp, s.File); err == nil && filepath.IsLocal(rel) {
			s.File = prefix + filepath.ToSlash(rel)
		}
	}
	within := func(v *v1.Violation) {
		label(&v.Source)
		v.Message = strings.NewReplacer(tmp+string(filepath.Separator), prefix, tmp, "the repository").Replace(v.Message)
	}
	for i := range set.Violations {
		within(&set.Violations[i])
	}
	for i, dir := range set.Overlays {
		at := v1.Source{File: dir}
		label(&at)
		set.Overlays[i] = at.File
	}
	for _, o := range set.Objects {
		h := o.Head()
		label(&h.Source)
		for i := range h.Violations {
			within(&h.Violations[i])
		}
		for p, s := range h.Fields {
			label(&s)
			h.Fields[p] = s
		}
	}
}
