//go:build !unix

package proc

import (
	"errors"
	"os"
	"syscall"
)

// Without process groups, stopping a child ends only the child itself.

type guard struct{}

func startGuard() *guard  { return &guard{} }
func (*guard) add(int)    {}
func (*guard) remove(int) {}
func (*guard) close()     {}
func groupLives(int) bool { return false }
func killGroup(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return p.Kill()
}

func terminateGroup(int) error { return errors.New("not supported") }

func ownGroup() *syscall.SysProcAttr { return nil }
