//go:build !linux

package postgres

import "syscall"

// limitSilence exists on Linux only; other systems rely on keepalive probes.
var limitSilence func(network, address string, c syscall.RawConn) error
