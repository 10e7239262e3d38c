//go:build !unix

package plainhttp

const canPoll = false

func (*conn) poll([]byte) (int, error) { return 0, errNothing }
