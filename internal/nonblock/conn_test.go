package nonblock_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"toolctl.dev/toolctl/internal/nonblock"
)

// dialled are the two ends of a connection: one of a listener of this package, one dialled.
func dialled(t *testing.T, network string) (served, dialled net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	ln, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	c, err := net.Dial(network, ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if served, err = nonblock.Listener(ln).Accept(); err != nil {
		t.Fatal(err)
	}
	dialled = nonblock.Conn(c)
	t.Cleanup(func() { served.Close(); dialled.Close() })
	return served, dialled
}

// TestConn has a connection do what one of package net does.
func TestConn(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			a, b := dialled(t, network)
			text := bytes.Repeat([]byte("0123456789abcdef"), 1<<20) // more than a socket holds
			var all sync.WaitGroup
			all.Go(func() {
				if n, err := a.Write(text); n != len(text) || err != nil {
					t.Errorf("%d %v", n, err)
				}
				if err := a.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
					t.Error(err)
				}
			})
			got, err := io.ReadAll(b)
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes of %d, %v", len(got), len(text), err)
			}
			all.Wait()

			if err := a.SetReadDeadline(time.Now().Add(-time.Second)); err != nil {
				t.Fatal(err)
			}
			var op *net.OpError
			if n, err := a.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) || !errors.As(err, &op) {
				t.Errorf("after the deadline: %d %v", n, err)
			}
			if err := a.SetReadDeadline(time.Time{}); err != nil {
				t.Fatal(err)
			}
			if n, err := a.Read(nil); n != 0 || err != nil {
				t.Errorf("nothing is read: %d %v", n, err)
			}
			reading := make(chan struct{})
			all.Go(func() {
				close(reading)
				if _, err := a.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
					t.Errorf("closed while it was read: %v", err)
				}
			})
			<-reading
			a.Close()
			all.Wait()
			if _, err := a.Write(text[:1]); !errors.Is(err, net.ErrClosed) || !errors.As(err, &op) {
				t.Errorf("a write after Close: %v", err)
			}
			for err = nil; err == nil; {
				_, err = b.Write(text)
			}
			if !errors.As(err, &op) || op.Op != "write" || op.Net != network || !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
				t.Errorf("a write to one that is gone: %v", err)
			}
		})
	}
}

func TestTryRead(t *testing.T) {
	a, b := dialled(t, "tcp")
	try, ok := a.(nonblock.TryReader)
	if !ok {
		if nonblock.Known {
			t.Error("it cannot be asked whether anything has come")
		}
		return
	}
	p := make([]byte, 8)
	if n, err := try.TryRead(p); n != 0 || !errors.Is(err, nonblock.ErrNothing) {
		t.Errorf("%d %v", n, err)
	}
	if _, err := b.Write([]byte("abc")); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Read(p[:1]); n != 1 || err != nil { // it has come
		t.Fatal(err)
	}
	if n, err := try.TryRead(p); string(p[:n]) != "bc" || err != nil {
		t.Errorf("%q %v", p[:n], err)
	}
	b.Close()
	if n, err := a.Read(p); n != 0 || err != io.EOF { //nolint:errorlint // as package net returns it
		t.Errorf("%d %v", n, err)
	}
	if n, err := try.TryRead(p); n != 0 || err != io.EOF { //nolint:errorlint // as package net returns it
		t.Errorf("%d %v", n, err)
	}
}
