package tty

import (
	"os/exec"
	"runtime"
)

// OpenBrowser opens an address in the browser if there is a desktop. It does not wait for the browser.
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
		go func() { _ = cmd.Wait() }() // the browser may outlive this process
	}
}
