//go:build !unix

package proc

import (
	"errors"
	"os"
	"os/exec"
)

var errNoLimits = errors.New("processes cannot be limited on this system")

func helperPath() (string, error) { return "", errNoLimits }

func isolated(*exec.Cmd) error { return ErrNoSandbox }

func (p *plan) isolate(*os.File) (int, error) { return 0, ErrNoSandbox }

func (p *plan) become(*os.File) error { return errNoLimits }
