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
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Limits of reading a revision.
const (
	maxFiles     = 100_000
	maxBytes     = 512 << 20
	maxFileBytes = 10 << 20 // larger files are skipped: no manifest may be so large
	maxPath      = 4096
)

// tree is the files of one commit.
type tree struct {
	*runner
	commit string
	name   string // for messages
	links  bool   // symlinks are written as such; otherwise they are skipped
}

// blob is a file of the tree.
type blob struct {
	id, path string
	link     bool
}

// leftOut is a file of the tree that is skipped.
type leftOut struct{ path, why string }

// extract writes the files of the tree at a path below the folder into. For a single file it writes the surrounding
// folder, because manifests may refer to other files there.
func (t *tree) extract(ctx context.Context, at, into string) ([]leftOut, error) {
	blobs, left, err := t.list(ctx, at)
	if err != nil {
		return nil, err
	}
	if len(blobs)+len(left) == 0 && at != "." {
		return nil, fmt.Errorf("git: %s has no %s: %w", t.name, at, fs.ErrNotExist)
	}
	if len(blobs) == 1 && blobs[0].path == at && blobs[0].link || len(left) == 1 && left[0].path == at { // a link may lead out of the path
		if len(left) == 1 {
			return nil, fmt.Errorf("git: %s at %s %s", at, t.name, left[0].why)
		}
		return nil, fmt.Errorf("git: %s is a symlink at %s: use its target", at, t.name)
	}
	if len(blobs) == 1 && blobs[0].path == at {
		if blobs, left, err = t.list(ctx, path.Dir(at)); err != nil {
			return nil, err
		}
	}
	root, err := os.OpenRoot(into) // refuses paths that leave the folder through symlinks
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = t.contents(ctx, blobs, func(b blob, data []byte) error {
		if bytes.HasPrefix(data, pointer) {
			left = append(left, leftOut{b.path, "is a Git LFS pointer, and LFS content is not fetched: commit the file itself"})
			return nil
		}
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
	return left, err
}

// pointer is the prefix of a file that Git LFS commits in place of the content
// (github.com/git-lfs/git-lfs/blob/main/docs/spec.md).
var pointer = []byte("version https://git-lfs.github.com/spec/v1\n")

// list returns the files at and below a path of the tree.
func (t *tree) list(ctx context.Context, at string) ([]blob, []leftOut, error) {
	args := []string{"ls-tree", "-r", "-l", "-z", "--full-tree", t.commit}
	if at != "." {
		args = append(args, "--", at)
	}
	out, err := t.run(ctx, args...)
	if err != nil {
		return nil, nil, err
	}
	var blobs []blob
	var left []leftOut
	var total int64
	for entry := range strings.SplitSeq(out, "\x00") {
		// The format is MODE blob ID SIZE<TAB>PATH.
		info, name, ok := strings.Cut(entry, "\t")
		f := strings.Fields(info)
		if !ok || len(f) != 4 || !fs.ValidPath(name) || len(name) > maxPath {
			continue
		}
		if f[1] != "blob" {
			left = append(left, leftOut{name, "is a submodule, and submodules are not fetched"})
			continue
		}
		size, err := strconv.ParseInt(f[3], 10, 64)
		link := f[0] == "120000"
		switch {
		case err != nil:
			continue
		case size > maxFileBytes:
			left = append(left, leftOut{name, fmt.Sprintf("is larger than %d bytes", maxFileBytes)})
			continue
		case link && !t.links:
			left = append(left, leftOut{name, "is a symlink, and symlinks in repositories are not followed: commit the file itself"})
			continue
		}
		if total += size; len(blobs) == maxFiles || total > maxBytes {
			return nil, nil, fmt.Errorf("git: %s has more than %d files or %d bytes at %s: use a smaller folder", t.name, maxFiles, maxBytes, at)
		}
		blobs = append(blobs, blob{f[2], name, link})
	}
	return blobs, left, nil
}

// contents calls fn with each file, in order.
func (t *tree) contents(ctx context.Context, blobs []blob, fn func(blob, []byte) error) error {
	var ids strings.Builder
	for _, b := range blobs {
		ids.WriteString(b.id + "\n")
	}
	return t.pipe(ctx, ids.String(), func(in io.Reader) error { return readBatch(bufio.NewReader(in), blobs, fn) }, "cat-file", "--batch")
}

// readBatch reads "ID blob SIZE\n", the content and "\n" for each file.
func readBatch(r *bufio.Reader, blobs []blob, fn func(blob, []byte) error) error {
	for _, b := range blobs {
		head, err := r.ReadString('\n')
		if err != nil {
			return fmt.Errorf("%s: %w", b.path, err)
		}
		f := strings.Fields(head)
		if len(f) != 3 {
			return fmt.Errorf("%s: %s", b.path, strings.TrimSpace(head))
		}
		size, err := strconv.Atoi(f[2])
		if err != nil || size < 0 || size > maxFileBytes {
			return fmt.Errorf("%s: unexpected size %q", b.path, f[2])
		}
		data := make([]byte, size+1)
		if _, err := io.ReadFull(r, data); err != nil {
			return fmt.Errorf("%s: %w", b.path, err)
		}
		if err := fn(b, data[:size]); err != nil {
			return err
		}
	}
	return nil
}
