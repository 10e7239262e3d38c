package fileset

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Replace writes a file in one step: readers see the old content or the new one, and after an error the old one stays.
func Replace(file string, data []byte, mode fs.FileMode) error {
	tmp, err := os.CreateTemp(filepath.Dir(file), ".toolctl-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name()) // no effect after the rename
	_, err = tmp.Write(data)
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}
