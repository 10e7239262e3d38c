//go:build !unix

package tty

import "io/fs"

// OnUserSignal does nothing: there is no such signal.
func OnUserSignal(func()) (stop func()) { return func() {} }

// ours is true: files of the user's folders are closed to other users by what they inherit.
func ours(fs.FileInfo) bool { return true }
