package tty

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const linkWait = 2 * time.Second

// Answer sends the text of say to each program that connects to a socket, until stop is called. It creates the folder of
// the socket, which other users cannot open, so that only this user reaches the socket.
func Answer(socket string, say func() string) (stop func(), err error) {
	if err := ownFolder(filepath.Dir(socket)); err != nil {
		return nil, err
	}
	_ = os.Remove(socket) // a killed process leaves its socket behind
	ln, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(context.Background())
	var answers sync.WaitGroup
	answers.Go(func() {
		for {
			conn, err := ln.Accept()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // for example, too many files are open
				select {
				case <-time.After(time.Second):
				case <-running.Done():
				}
				continue
			}
			_ = conn.SetDeadline(time.Now().Add(linkWait))
			_, _ = io.WriteString(conn, say()) // the write fails only if the other program has ended
			_ = conn.Close()
		}
	})
	return func() { _ = ln.Close(); cancel(); answers.Wait() }, nil
}

// Ask returns the text of the process that serves a socket with [Answer]; "" if that process has ended.
func Ask(socket string) (string, error) {
	if err := ownFolder(filepath.Dir(socket)); err != nil {
		return "", err
	}
	conn, err := net.DialTimeout("unix", socket, linkWait)
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "", os.Remove(socket)
	}
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(linkWait))
	said, err := io.ReadAll(io.LimitReader(conn, 4096))
	return strings.TrimSpace(string(said)), err
}

// ownFolder creates a folder that only this user can open.
func ownFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() || !ours(info) {
		return fmt.Errorf("%s: expected a folder that this user owns", dir)
	}
	return os.Chmod(dir, 0o700)
}
