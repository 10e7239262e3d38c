package proc

import "golang.org/x/sys/unix"

// Unread returns how much of what was written to Stdin the child has not read; false
// when that cannot be told. After the child ended it says what never reached it.
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
