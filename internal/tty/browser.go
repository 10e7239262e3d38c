package tty

import (
	"os/exec"
	"runtime"
)

// OpenBrowser shows an address where there is a desktop. It waits for nothing.
func OpenBrowser(address string) {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	cmd := exec.Command(name, args...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // it outlives us when the person keeps it open
	}
}
