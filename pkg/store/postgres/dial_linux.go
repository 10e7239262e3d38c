package postgres

import (
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// limitSilence sets TCP_USER_TIMEOUT (tcp(7)).
func limitSilence(network, _ string, c syscall.RawConn) (err error) {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}
	if broken := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(userTimeout.Milliseconds()))
	}); broken != nil {
		return broken
	}
	return err
}
