// Package regular opens and reads files that users name. It refuses everything but regular files and folders, because
// opening a named pipe, for example, could block forever.
package regular

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// Open opens a file for reading. A folder opens too, and cannot be read.
func Open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, info); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // it may be another by now
	if err != nil {
		return nil, err
	}
	if info, err = f.Stat(); err == nil {
		err = check(path, info)
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, err
	}
	return f, nil
}

// Check refuses a path that is neither a regular file nor a folder. It accepts missing and unreadable files, which are
// errors when they are opened.
func Check(path string) error {
	if info, err := os.Stat(path); err == nil {
		return check(path, info)
	}
	return nil
}

// ReadFile reads a file that [Open] opens.
func ReadFile(path string) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(f)
}

// ReadUpTo reads at most limit bytes of a file that [Open] opens, and one more of a larger file, by which the caller
// recognizes it. It does not rely on the size of the file, which is 0 for a device.
func ReadUpTo(path string, limit int) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(limit)+1))
}

// ErrTooLarge is within the error of what has more bytes than may be read.
var ErrTooLarge = errors.New("it is larger")

// ReadAll reads all that a reader has, which may be limit bytes.
func ReadAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%w than %d bytes", ErrTooLarge, limit)
	}
	return data, err
}

// ReadFS reads a regular file of a folder, which may have limit bytes. Only then is it opened: to open a pipe
// would wait for a writer.
func ReadFS(folder fs.FS, name string, limit int64) ([]byte, error) {
	info, err := fs.Stat(folder, name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: errors.New("it is not a regular file")}
	}
	f, err := folder.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadAll(f, limit)
}

// Reason returns the error of a file without the operation and the path, for messages that name the file.
func Reason(err error) error {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		return p.Err
	}
	return err
}

func check(path string, info fs.FileInfo) error {
	what := ""
	switch mode := info.Mode(); {
	case mode.IsRegular() || mode.IsDir():
		return nil
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	default:
		what = "not a regular file"
	}
	return &fs.PathError{Op: "open", Path: path, Err: fmt.Errorf("it is %s: expected a regular file, or - for stdin where a command takes it", what)}
}
