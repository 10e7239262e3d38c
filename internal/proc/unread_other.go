//go:build !linux

package proc

// Unread is known on Linux only.
func (c *Child) Unread() (int, bool) { return 0, false }
