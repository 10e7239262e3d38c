package plainhttp

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"toolctl.dev/toolctl/internal/nonblock"
)

// conn is a connection to a server. One goroutine at a time uses it, but for Close.
type conn struct {
	net.Conn
	tries   nonblock.TryReader // nil when nobody can say whether anything has come
	address string
	in      *bufio.Reader
	out     *bufio.Writer
	unused  *time.Timer   // closes it; nil before it first waits
	waits   time.Duration // until then

	head  int       // bytes that the head of a response may still have; negative outside of heads
	polls bool      // reads do not wait
	heard bool      // the server said something since the last request
	zips  bool      // the last request asked for compression
	rest  io.Reader // what nobody has read of the last response; nil when that is over
}

func newConn(nc net.Conn, address string) *conn {
	c := &conn{Conn: nc, address: address, head: -1}
	c.tries, _ = nc.(nonblock.TryReader)
	c.in, c.out = bufio.NewReader(c), bufio.NewWriter(nc)
	return c
}

var (
	errHead     = fmt.Errorf("the header of the response has more than %d bytes", maxHead)
	errSwitched = errors.New("the server switched to another protocol, which nobody asked for")
	errInterim  = fmt.Errorf("more than %d responses with a status of 1xx came before the one that counts", maxInterim)
)

// exchange sends a request, and reads the head of the response.
func (c *conn) exchange(req *http.Request) (*http.Response, error) {
	c.heard = false
	if err := c.send(req); err != nil {
		return nil, err
	}
	c.head = maxHead
	defer func() { c.head = -1 }()
	for range maxInterim + 1 {
		resp, err := http.ReadResponse(c.in, req)
		switch {
		case c.head == 0:
			return nil, errHead
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusSwitchingProtocols:
			return nil, errSwitched
		case resp.StatusCode >= 200:
			return resp, nil
		}
	}
	return nil, errInterim
}

// send writes a request. As http.Transport does, it asks for compression where the caller
// says nothing of it.
func (c *conn) send(req *http.Request) error {
	c.zips = req.Header.Get("Accept-Encoding") == "" && req.Header.Get("Range") == "" && req.Method != http.MethodHead
	if c.zips {
		asking := *req
		asking.Header = req.Header.Clone()
		asking.Header.Set("Accept-Encoding", "gzip")
		req = &asking
	}
	if err := req.Write(c.out); err != nil {
		return err
	}
	return c.out.Flush()
}

// Read reads what the server says.
func (c *conn) Read(p []byte) (n int, err error) {
	switch {
	case c.head == 0:
		return 0, errHead
	case c.head > 0:
		p = p[:min(len(p), c.head)]
	}
	if c.polls {
		n, err = c.tries.TryRead(p)
	} else {
		n, err = c.Conn.Read(p)
	}
	c.heard = c.heard || n > 0
	if c.head > 0 {
		c.head -= n
	}
	return n, err
}

// state is what a connection is good for.
type state int

const (
	broken  state = iota // for nothing
	pending              // for nothing yet: the last response has not ended
	ready                // for the next request
)

// maxRest is how much of a response is read that nobody wanted any more.
const maxRest = 64 << 10

// state looks at what has come, without waiting: after the end of the last response that
// must be nothing.
func (c *conn) state() state {
	if c.tries == nil {
		return broken
	}
	c.polls = true
	defer func() { c.polls = false }()
	if c.rest != nil {
		if c.in.Buffered() == 0 {
			if _, err := c.in.Peek(1); errors.Is(err, nonblock.ErrNothing) {
				return pending
			}
		}
		// Only the whole rest will do: half of it cannot be read on.
		if n, err := io.CopyN(io.Discard, c.rest, maxRest); err != io.EOF || n == maxRest { //nolint:errorlint // net/http returns io.EOF itself
			return broken
		}
		c.rest = nil
	}
	if _, err := c.in.Peek(1); errors.Is(err, nonblock.ErrNothing) {
		return ready
	}
	return broken
}
