package action

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Init writes a starter repository to a folder.
type Init struct {
	Dir string
	// Files is the repository. Its file gitignore becomes .gitignore, a name that would take effect where Files are kept.
	Files fs.FS
}

// Run writes the files and returns their paths. If one of them exists, it writes nothing.
func (i *Init) Run() (written []string, err error) {
	files := map[string][]byte{}
	var clash []string
	err = fs.WalkDir(i.Files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		path := filepath.Join(i.Dir, filepath.FromSlash(name))
		if name == "gitignore" {
			path = filepath.Join(i.Dir, ".gitignore")
		}
		if _, err := os.Lstat(path); err == nil {
			clash = append(clash, path)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		files[path], err = fs.ReadFile(i.Files, name)
		return err
	})
	if err == nil && len(clash) > 0 {
		err = usagef("nothing written: %s exist already", strings.Join(clash, ", "))
	}
	if err != nil {
		return nil, err
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return written, err
		}
		if err := os.WriteFile(path, files[path], 0o644); err != nil {
			return written, err
		}
		written = append(written, path)
	}
	return written, nil
}
