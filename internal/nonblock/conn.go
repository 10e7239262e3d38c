package nonblock

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"syscall"
)

// socket is a connection of package net.
type socket interface {
	net.Conn
	syscall.Conn
	CloseWrite() error
}

type conn struct {
	socket
	calls *calls
}

// ErrNothing is the error of TryRead when nothing has come.
var ErrNothing = errors.New("nothing to read")

// TryReader is a connection whose TryRead is a Read that does not wait.
type TryReader interface {
	TryRead(p []byte) (int, error)
}

func (c *conn) Read(p []byte) (int, error) { return c.read(p, false) }

func (c *conn) TryRead(p []byte) (int, error) { return c.read(p, true) }

func (c *conn) read(p []byte, once bool) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	n, over, err := c.calls.read(p, once)
	switch {
	case over:
		return c.socket.Read(p) // which has the error for a connection that is closed or whose time is over
	case errors.Is(err, errAgain):
		return 0, ErrNothing
	case err != nil:
		return 0, c.failed("read", err)
	case n == 0:
		return 0, io.EOF
	}
	return n, nil
}

func (c *conn) Write(p []byte) (int, error) {
	n, over, err := c.calls.write(p, false)
	switch {
	case over:
		m, err := c.socket.Write(p[n:]) // as for Read
		return n + m, err
	case err != nil:
		return n, c.failed("write", err)
	}
	return n, nil
}

// failed is the error of a system call as package net has it.
func (c *conn) failed(call string, err error) error {
	local := c.LocalAddr()
	return &net.OpError{Op: call, Net: local.Network(), Source: local, Addr: c.RemoteAddr(), Err: os.NewSyscallError(call, err)}
}

// Listener makes the connections of a listener such as [Conn] makes.
func Listener(l net.Listener) net.Listener { return listener{l} }

type listener struct{ net.Listener }

func (l listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return Conn(c), nil
}

// Dial has a function that opens connections return such as [Conn] makes.
func Dial(dial func(ctx context.Context, network, address string) (net.Conn, error)) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return Conn(c), nil
	}
}
