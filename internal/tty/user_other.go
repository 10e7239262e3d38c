//go:build !unix

package tty

import "io/fs"

// OnUserSignal does nothing, because this system has no such signal.
func OnUserSignal(func()) (stop func()) { return func() {} }

// ours returns true, because folders of the user inherit permissions that exclude other users.
func ours(fs.FileInfo) bool { return true }
