//go:build !linux

package proc

// Unread always returns false, because the number is available only on Linux.
func (c *Child) Unread() (int, bool) { return 0, false }
