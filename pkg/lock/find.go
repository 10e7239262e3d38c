package lock

import (
	"os"
	"path/filepath"
)

// Find returns the path of the lock: named if that is set, otherwise the lock in the current folder or the nearest
// parent, otherwise that of a new lock in the current folder.
func Find(named string) (string, error) {
	if named != "" {
		return named, nil
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, Name)
		if _, err := os.Stat(path); err == nil {
			if rel, err := filepath.Rel(cwd, path); err == nil {
				return rel, nil
			}
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return Name, nil
		}
	}
}
