//go:build unix

package plainhttp

import (
	"errors"
	"io"
	"syscall"
)

const canPoll = true

// poll reads what has come.
func (c *conn) poll(p []byte) (n int, err error) {
	if broken := c.raw.Read(func(fd uintptr) bool {
		n, err = syscall.Read(int(fd), p)
		return true
	}); broken != nil {
		return 0, broken
	}
	switch {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EINTR):
		return 0, errNothing
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}
