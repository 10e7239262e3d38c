package source_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/source"
)

// sshStandIn makes git run a script instead of ssh, which records its arguments and then runs the given commands. It
// returns a function that reads the records.
func sshStandIn(t *testing.T, then string) (asked func(*testing.T) string) {
	t.Helper()
	dir := t.TempDir()
	script, notes := filepath.Join(dir, "ssh"), filepath.Join(dir, "asked")
	write(t, script, fmt.Sprintf("#!/bin/sh\necho \"$*\" >> %s\n%s\n", notes, then))
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GIT_SSH_COMMAND", script)
	t.Setenv("GIT_SSH_VARIANT", "ssh")
	return func(t *testing.T) string {
		t.Helper()
		text, err := os.ReadFile(notes)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return string(text)
	}
}

// follow pulls from an address, before and after a push.
func follow(t *testing.T, r *pushed, address string) {
	t.Helper()
	r.write(t, "prod/a.yaml", tool("a"))
	r.push(t)
	remote := open(t, address, source.RepositoryOptions{}, source.RemoteOptions{})
	if set, err := remote.Load(t.Context()); err != nil || names(set) != "a" {
		t.Fatalf("got %v, %v", set, err)
	}
	r.write(t, "prod/b.yaml", tool("b"))
	commit := r.push(t)
	if set, err := remote.Load(t.Context()); err != nil || names(set) != "a b" || remote.Status().Revision != commit {
		t.Fatalf("got %v, %v, %+v", set, err, remote.Status())
	}
}

// git+ssh runs ssh with the user, the port and only the program that reads.
func TestSSHByStandIn(t *testing.T) {
	r := newRepository(t)
	asked := sshStandIn(t, `for last; do :; done; eval "$last"`)
	follow(t, r, "git+ssh://deploy@git.example.com:2222"+r.bare+"//prod?ref=main")
	for line := range strings.Lines(asked(t)) {
		if !strings.Contains(line, "-p 2222 deploy@git.example.com git-upload-pack '"+r.bare+"'") {
			t.Errorf("ssh was started with %s", line)
		}
	}
	if asked(t) == "" {
		t.Error("ssh was not started")
	}
}

// TestSSH pulls from a real OpenSSH server with a key, and refuses a server with an unknown key.
func TestSSH(t *testing.T) {
	program := os.Getenv("TOOLCTL_SSHD")
	if program == "" {
		program = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(program); err != nil {
		t.Skipf("there is no OpenSSH server at %s: install one, or name it with TOOLCTL_SSHD", program)
	}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	r := newRepository(t)
	host, public := sshKey(t, "host")
	key, mine := sshKey(t, "me")
	port := serveSSH(t, program, host, strings.TrimPrefix(mine, "me "))
	_, hostKey, _ := strings.Cut(public, " ")
	known := filepath.Join(t.TempDir(), "known_hosts")
	write(t, known, fmt.Sprintf("[127.0.0.1]:%s %s", port, hostKey))
	ssh := "ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes -o StrictHostKeyChecking=yes -i " + key + " -o UserKnownHostsFile="
	address := fmt.Sprintf("git+ssh://%s@127.0.0.1:%s%s//prod?ref=main", who.Username, port, r.bare)
	t.Setenv("GIT_SSH_COMMAND", ssh+known)
	follow(t, r, address)

	t.Setenv("GIT_SSH_COMMAND", ssh+os.DevNull)
	_, err = open(t, address, source.RepositoryOptions{}, source.RemoteOptions{}).Load(t.Context())
	if err == nil || !strings.Contains(err.Error(), "git ls-remote") {
		t.Errorf("a server whose key is not known: got %v", err)
	}
}

// serveSSH starts an OpenSSH server for one key, until the test ends, and returns its port.
func serveSSH(t *testing.T, program, hostKey, allowed string) (port string) {
	t.Helper()
	dir := t.TempDir()
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(ln.Addr().String())
	if err := ln.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "authorized_keys"), allowed)
	write(t, filepath.Join(dir, "sshd_config"), strings.Join([]string{
		"ListenAddress 127.0.0.1:" + port, "HostKey " + hostKey, "AuthorizedKeysFile " + filepath.Join(dir, "authorized_keys"),
		"StrictModes no", "UsePAM no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "PidFile none", "PermitRootLogin prohibit-password", "",
	}, "\n"))
	_ = os.MkdirAll("/run/sshd", 0o755) //nolint:gosec // where sshd separates privileges, when it runs as root
	cmd := exec.CommandContext(t.Context(), program, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
	})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+port)
		if err == nil {
			_ = conn.Close()
			return port
		}
		select {
		case <-ended:
			t.Skipf("the OpenSSH server does not run here: %s", said.String())
		case <-ctx.Done():
			t.Fatal(err)
		default:
		}
	}
}
