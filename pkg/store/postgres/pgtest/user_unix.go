//go:build unix

package pgtest

import (
	"os"
	"syscall"
)

// credentials returns those of the server's process, and makes its user the owner of the folder.
func credentials(dir string) (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	uid, gid, err := other()
	if err != nil {
		return nil, err
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, os.Chown(dir, uid, gid)
}
