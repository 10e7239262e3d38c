package proc

import "golang.org/x/sys/unix"

// Unread returns the number of bytes written to Stdin that the child has not read. It returns false if the
// number is unknown. After the child has ended, it is the number of bytes that never reached the child.
func (c *Child) Unread() (int, bool) {
	raw, err := c.Stdin.SyscallConn()
	if err != nil {
		return 0, false
	}
	n, nerr := 0, error(nil)
	if err := raw.Control(func(fd uintptr) { n, nerr = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil || nerr != nil {
		return 0, false
	}
	return n, true
}
