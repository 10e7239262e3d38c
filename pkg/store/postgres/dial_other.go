//go:build !linux

package postgres

import "syscall"

// limitSilence is for Linux; elsewhere the probes of a silent connection have to do.
var limitSilence func(network, address string, c syscall.RawConn) error
