package source

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// Git names files of a revision.
type Git struct {
	// Dir is a folder of the repository. Default: that of the first path, or the current one.
	Dir string
	// Rev is a revision as git reads it, such as HEAD~1, main or a commit.
	Rev string
	// Paths are the files and folders to read, by their paths on this machine; they need not
	// be there now. One that the revision does not have is left out.
	Paths []string
	// InTree are paths within the tree of the revision, which has to have them.
	InTree []string
}

// The bounds of what is read of a revision.
const (
	maxGitTime  = 2 * time.Minute
	maxGitFiles = 100_000
	maxGitBytes = 512 << 20
	maxGitFile  = 10 << 20 // larger files are left out: no manifest may be so large
)

// LoadGit reads the manifests of a revision. Places in it are named REV:PATH.
func LoadGit(ctx context.Context, g Git, o manifest.Options) (*manifest.Set, error) {
	ctx, cancel := context.WithTimeout(ctx, maxGitTime)
	defer cancel()
	if g.Dir == "" && len(g.Paths) > 0 {
		g.Dir = folderOf(g.Paths[0])
	}
	top, err := g.run(ctx, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	commit, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", g.Rev+"^{commit}")
	if err != nil {
		return nil, fmt.Errorf("git: the repository has no revision %q", g.Rev)
	}
	tmp, err := os.MkdirTemp("", "toolctl-git-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(tmp)
	var found []string
	for _, p := range g.Paths {
		in, err := inTree(strings.TrimSuffix(top, "\n"), p)
		if err != nil {
			return nil, err
		}
		switch err := g.extract(ctx, strings.TrimSpace(commit), in, tmp); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		default:
			found = append(found, filepath.Join(tmp, filepath.FromSlash(in)))
		}
	}
	for _, in := range g.InTree {
		in = path.Clean(in)
		if !fs.ValidPath(in) {
			return nil, fmt.Errorf("git: %q is not a path within the repository", in)
		}
		if err := g.extract(ctx, strings.TrimSpace(commit), in, tmp); err != nil {
			return nil, err
		}
		found = append(found, filepath.Join(tmp, filepath.FromSlash(in)))
	}
	if len(found) == 0 {
		return &manifest.Set{}, nil
	}
	set, err := manifest.Load(ctx, found, o)
	if err != nil {
		return nil, errors.New(strings.ReplaceAll(err.Error(), tmp+string(filepath.Separator), g.Rev+":"))
	}
	relabel(set, tmp, g.Rev)
	return set, nil
}

// folderOf is the nearest folder that is there.
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

// inTree is a path of this machine as the tree of the repository has it.
func inTree(top, p string) (string, error) {
	abs, err := filepath.Abs(p)
	if err != nil {
		return "", err
	}
	for _, dir := range []*string{&top, &abs} { // what is there may be reached by symlinks
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

// blob is a file of the tree.
type blob struct {
	id, path string
	link     bool
}

// extract writes what the tree has at a path below the folder into. Of a single file it is
// the folder around it, for the files that manifests name.
func (g *Git) extract(ctx context.Context, commit, at, into string) error {
	blobs, err := g.list(ctx, commit, at)
	if err != nil {
		return err
	}
	if len(blobs) == 0 {
		return fmt.Errorf("git: %s has no %s: %w", g.Rev, at, fs.ErrNotExist)
	}
	if len(blobs) == 1 && blobs[0].path == at {
		if blobs[0].link { // it may lead out of what is read
			return fmt.Errorf("git: %s is a symlink at %s: name what it leads to", at, g.Rev)
		}
		if blobs, err = g.list(ctx, commit, path.Dir(at)); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(into) // what leaves it, by whatever symlink, is refused
	if err != nil {
		return err
	}
	defer root.Close()
	return g.contents(ctx, blobs, func(b blob, data []byte) error {
		name := filepath.FromSlash(b.path)
		if err := root.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		if b.link {
			if err := root.Symlink(string(data), name); !errors.Is(err, fs.ErrExist) {
				return err
			}
			return nil
		}
		return root.WriteFile(name, data, 0o600)
	})
}

// list returns the files at and below a path of the tree.
func (g *Git) list(ctx context.Context, commit, at string) ([]blob, error) {
	args := []string{"ls-tree", "-r", "-l", "-z", "--full-tree", commit}
	if at != "." {
		args = append(args, "--", at)
	}
	out, err := g.run(ctx, args...)
	if err != nil {
		return nil, err
	}
	var blobs []blob
	var total int64
	for entry := range strings.SplitSeq(out, "\x00") {
		// MODE blob ID SIZE<TAB>PATH
		info, name, ok := strings.Cut(entry, "\t")
		f := strings.Fields(info)
		if !ok || len(f) != 4 || f[1] != "blob" {
			continue // a submodule
		}
		size, err := strconv.ParseInt(f[3], 10, 64)
		if err != nil || size > maxGitFile || !fs.ValidPath(name) {
			continue
		}
		if total += size; len(blobs) == maxGitFiles || total > maxGitBytes {
			return nil, fmt.Errorf("git: %s has more than %d files or %d bytes at %s: name a smaller folder", g.Rev, maxGitFiles, maxGitBytes, at)
		}
		blobs = append(blobs, blob{f[2], name, f[0] == "120000"})
	}
	return blobs, nil
}

// contents calls fn with each file, in order.
func (g *Git) contents(ctx context.Context, blobs []blob, fn func(blob, []byte) error) error {
	var ids strings.Builder
	for _, b := range blobs {
		ids.WriteString(b.id + "\n")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends git when fn fails
	cmd := g.command(ctx, "cat-file", "--batch")
	cmd.Stdin = strings.NewReader(ids.String())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return notInstalled(err)
	}
	err = readBatch(bufio.NewReader(pipe), blobs, fn)
	if err != nil {
		cancel()
	}
	if failed := cmd.Wait(); err == nil && failed != nil {
		err = fmt.Errorf("git cat-file: %w: %s", failed, firstLine(stderr.String()))
	}
	return err
}

// readBatch reads "ID blob SIZE\n", the content and "\n" for each file.
func readBatch(r *bufio.Reader, blobs []blob, fn func(blob, []byte) error) error {
	for _, b := range blobs {
		head, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("git cat-file: %s: %w", b.path, err)
		}
		f := strings.Fields(head)
		if len(f) != 3 {
			return fmt.Errorf("git cat-file: %s: %s", b.path, strings.TrimSpace(head))
		}
		size, err := strconv.Atoi(f[2])
		if err != nil || size < 0 || size > maxGitFile {
			return fmt.Errorf("git cat-file: %s: unexpected size %q", b.path, f[2])
		}
		data := make([]byte, size+1)
		if _, err := io.ReadFull(r, data); err != nil {
			return fmt.Errorf("git cat-file: %s: %w", b.path, err)
		}
		if err := fn(b, data[:size]); err != nil {
			return err
		}
	}
	return nil
}

// command is git as it is run here: it starts no program of the repository, fetches nothing
// and asks nobody.
func (g *Git) command(ctx context.Context, args ...string) *exec.Cmd {
	safe := []string{"--no-pager", "--literal-pathspecs", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "protocol.ext.allow=never", "-c", "submodule.recurse=false"}
	cmd := exec.CommandContext(ctx, "git", append(safe, args...)...)
	cmd.Dir = g.Dir
	cmd.Env = append(os.Environ(), "GIT_TERMINAL_PROMPT=0", "GIT_NO_LAZY_FETCH=1", "GIT_OPTIONAL_LOCKS=0", "LC_ALL=C")
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

func (g *Git) run(ctx context.Context, args ...string) (string, error) {
	cmd := g.command(ctx, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if text := firstLine(stderr.String()); text != "" {
			err = errors.New(text)
		}
		return "", fmt.Errorf("git %s: %w", args[0], notInstalled(err))
	}
	return stdout.String(), nil
}

func notInstalled(err error) error {
	if errors.Is(err, exec.ErrNotFound) {
		return errors.New("git is not installed, or not in PATH")
	}
	return err
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimPrefix(line, "fatal: ")
}

// relabel names places by the revision instead of by the folder that was read.
func relabel(set *manifest.Set, tmp, rev string) {
	label := func(s *v1.Source) {
		if rel, err := filepath.Rel(tmp, s.File); err == nil && filepath.IsLocal(rel) {
			s.File = rev + ":" + filepath.ToSlash(rel)
		}
	}
	for i := range set.Violations {
		label(&set.Violations[i].Source)
	}
	for _, o := range set.Objects {
		h := o.Head()
		label(&h.Source)
		for i := range h.Violations {
			label(&h.Violations[i].Source)
		}
		for p, s := range h.Fields {
			label(&s)
			h.Fields[p] = s
		}
	}
}
