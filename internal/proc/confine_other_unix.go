//go:build unix && !linux

package proc

import (
	"os"
	"os/exec"
)

func helperPath() (string, error) { return os.Executable() }

func isolated(*exec.Cmd) error { return ErrNoSandbox }

func (p *plan) isolate(*os.File) (int, error) { return 0, ErrNoSandbox }

func (p *plan) harden() error { return nil }
