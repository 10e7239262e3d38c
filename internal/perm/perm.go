// Package perm holds files with secrets to their owner: what others can write is refused,
// and what others can read is made readable by its owner only.
package perm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
)

// Error is a file or folder that others can write or read, with the command that changes it.
type Error struct {
	Path string
	What string // "can be written by others"
	Fix  string // "chmod go-w PATH"
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: run: %s", e.Path, e.What, e.Fix) }

const others, write = 0o077, 0o022

// Folder refuses a folder that others can write. One with the sticky bit, such as /tmp, is
// fine: there nobody can replace a file of another. A folder that is not there is fine, too.
func Folder(path string) error {
	info, err := stat(path)
	if info == nil || info.Mode()&fs.ModeSticky != 0 || info.Mode()&write == 0 {
		return err
	}
	return &Error{Path: path, What: "other users can write the folder", Fix: command("go-w", path)}
}

// Kept refuses a file that others can write. Who may read it does not matter, and a file that
// is not there is fine.
func Kept(path string) error {
	_, err := kept(path)
	return err
}

// kept is [Kept], and what the file is; nil for one that is not there.
func kept(path string) (fs.FileInfo, error) {
	info, err := stat(path)
	if info == nil || info.Mode()&write == 0 {
		return info, err
	}
	return nil, &Error{Path: path, What: "other users can write the file", Fix: command("go-w", path)}
}

// File refuses a file that others can write, and takes away from others to read it. A file
// that is not there is fine.
func File(path string) error {
	info, err := kept(path)
	if info == nil || info.Mode()&others == 0 {
		return err
	}
	if err := os.Chmod(path, info.Mode().Perm()&^others); errors.Is(err, fs.ErrPermission) {
		return &Error{Path: path, What: "other users can read the file, and it belongs to another user", Fix: command("go-rwx", path)}
	} else if err != nil {
		return fmt.Errorf("make the file readable by its owner only: %w", err)
	}
	return nil
}

// Secret refuses a file that others than its owner and its group can read, or others than its owner can
// write. It changes nothing: what could be read may have been.
func Secret(path string) error {
	const read = 0o007
	info, err := stat(path)
	switch {
	case info == nil || info.Mode()&(read|write) == 0:
		return err
	case info.Mode()&write != 0:
		return &Error{Path: path, What: "other users can write the file", Fix: command("g-w,o-rwx", path)}
	}
	return &Error{Path: path, What: "other users can read the file", Fix: command("g-w,o-rwx", path)}
}

// stat returns nil for what is not there, and where the mode of a file says nothing.
func stat(path string) (fs.FileInfo, error) {
	if runtime.GOOS == "windows" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return nil, err
	}
	return info, nil
}

// command is a command line for a shell.
func command(change, path string) string {
	for _, r := range path {
		if r != '/' && r != '.' && r != '-' && r != '_' && (r < '0' || r > '9' && r < 'A' || r > 'Z' && r < 'a' || r > 'z') {
			path = "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
			break
		}
	}
	if strings.HasPrefix(path, "-") {
		path = "./" + path
	}
	return "chmod " + change + " " + path
}
