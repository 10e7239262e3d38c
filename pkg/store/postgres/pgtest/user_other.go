//go:build !unix

package pgtest

import "syscall"

func credentials(string) (*syscall.SysProcAttr, error) { return nil, nil }
