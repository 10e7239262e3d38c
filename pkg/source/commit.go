package source

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // the names that git gives to content
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/proc"
)

// Dirty is the suffix of a commit if the files differ from it.
const Dirty = "-dirty"

// Commit returns the commit of the work tree that holds the paths of manifests and of all files that objects were read
// from, with the suffix [Dirty] if one of these files differs from the commit. It returns "" if the paths are in no Git
// work tree, or in several. It runs no hooks and filters, and compares files byte by byte except for their line ends.
func Commit(ctx context.Context, paths []string, objects []v1.Object) string {
	if len(paths) == 0 || !insideWorkTree(folderOf(paths[0])) {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, maxGitTime)
	defer cancel()
	host := &proc.Host{}
	defer host.Close()
	g := local(host, folderOf(paths[0]))
	out, err := g.run(ctx, "rev-parse", "--show-toplevel", "HEAD^{commit}")
	if err != nil {
		return ""
	}
	top, commit, ok := strings.Cut(strings.TrimSpace(out), "\n")
	if !ok {
		return ""
	}
	t := &workTree{tree: tree{runner: g, commit: commit, name: "HEAD", links: true}, top: top, same: map[string]bool{}}
	for _, p := range paths {
		in, err := inTree(top, p)
		if err != nil {
			return ""
		}
		if t.read(ctx, in) != nil {
			return ""
		}
	}
	for _, file := range filesOf(objects) {
		in, err := inTree(top, file)
		if err == nil && !t.known(in) {
			err = t.read(ctx, in)
		}
		if err != nil || !t.same[in] {
			return commit + Dirty
		}
	}
	for _, same := range t.same {
		if !same {
			return commit + Dirty
		}
	}
	return commit
}

// insideWorkTree is a cheap check that returns false if a folder is in no work tree.
func insideWorkTree(dir string) bool {
	abs, err := filepath.Abs(dir)
	for ; err == nil; abs = filepath.Dir(abs) {
		if _, err := os.Lstat(filepath.Join(abs, ".git")); err == nil {
			return true
		}
		if abs == filepath.Dir(abs) {
			break
		}
	}
	return false
}

// filesOf returns the files that objects were read from, each once.
func filesOf(objects []v1.Object) []string {
	var files []string
	seen := map[string]bool{}
	add := func(file string) {
		if file != "" && !seen[file] {
			seen[file] = true
			files = append(files, file)
		}
	}
	for _, o := range objects {
		h := o.Head()
		add(h.Source.File)
		for name := range h.Files {
			add(filepath.Join(filepath.Dir(h.Source.File), filepath.FromSlash(name)))
		}
	}
	return files
}

// workTree compares its files with a commit.
type workTree struct {
	tree
	top   string
	under []string        // the paths that were read
	same  map[string]bool // by path in the tree
}

// known reports whether a path was compared, or would have been if it were in the commit.
func (t *workTree) known(in string) bool {
	if _, ok := t.same[in]; ok {
		return true
	}
	for _, dir := range t.under {
		if dir == "." || in == dir || strings.HasPrefix(in, dir+"/") {
			return true
		}
	}
	return false
}

// read compares all files of the commit at a path.
func (t *workTree) read(ctx context.Context, in string) error {
	blobs, _, err := t.list(ctx, in)
	if err != nil {
		return err
	}
	t.under = append(t.under, in)
	for _, b := range blobs {
		t.same[b.path] = b.sameAs(filepath.Join(t.top, filepath.FromSlash(b.path)))
	}
	return nil
}

// sameAs reports whether a file has the content of the blob.
func (b *blob) sameAs(file string) bool {
	info, err := os.Lstat(file)
	switch {
	case err != nil, b.link != (info.Mode()&os.ModeSymlink != 0):
		return false
	case b.link:
		target, err := os.Readlink(file)
		return err == nil && b.is([]byte(filepath.ToSlash(target)))
	case !info.Mode().IsRegular() || info.Size() > maxFileBytes:
		return false
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return false
	}
	return b.is(data) || b.is(bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n")))
}

// is reports whether data has the object name of the blob (git-scm.com/docs/hash-function-transition).
func (b *blob) is(data []byte) bool {
	h := sha1.New() //nolint:gosec // as above
	if len(b.id) == hex.EncodedLen(sha256.Size) {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil)) == b.id
}
