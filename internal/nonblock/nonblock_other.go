//go:build !linux

package nonblock

import (
	"errors"
	"net"
	"os"
)

// Known says whether there are such system calls on this system.
const Known = false

var errAgain = errors.New("not now")

// Of makes a File of a pipe of this process. It stands for f: Close closes that.
func Of(f *os.File) *File { return &File{File: f} }

// Reopen makes a File of a pipe or a socket on Linux only.
func Reopen(*os.File) *File { return nil }

// Conn leaves a connection as it is.
func Conn(c net.Conn) net.Conn { return c }

func receive(uintptr, []byte, bool) (int, error) { return 0, errors.ErrUnsupported }

func send(uintptr, []byte, bool) (int, error) { return 0, errors.ErrUnsupported }
