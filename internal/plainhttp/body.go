package plainhttp

import (
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"sync"
)

// body is the body of a response.
type body struct {
	io.ReadCloser
	conn  *conn
	ctx   context.Context   // of the request
	leave func(usable bool) // gives the connection back

	mu      sync.Mutex
	reading bool
	left    bool // the connection is not this response's any more
	closed  bool
	err     error // of a read that was the last
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	switch {
	case b.closed:
		b.mu.Unlock()
		return 0, http.ErrBodyReadAfterClose
	case b.left:
		b.mu.Unlock()
		return 0, b.err
	}
	b.reading = true
	b.mu.Unlock()
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = false
	if err != nil {
		if err != io.EOF && b.ctx.Err() != nil { //nolint:errorlint // net/http returns io.EOF itself
			err = context.Cause(b.ctx)
		}
		b.err = err
		b.end(err == io.EOF) //nolint:errorlint // as above
	}
	return n, err
}

// end leaves the connection when the response has ended. It is called under mu once others have the body.
func (b *body) end(whole bool) {
	if !b.left {
		b.left = true
		if b.err == nil {
			b.err = io.EOF
		}
		b.leave(whole && b.conn.in.Buffered() == 0)
	}
}

// Close leaves the rest of the response to whoever uses the connection next: mostly it is the
// mark of the end of a stream, which a server sends after what it had to say.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	switch {
	case b.left:
	case b.reading: // which ends by this
		b.left = true
		b.leave(false)
	default:
		b.left = true
		b.conn.rest = b.ReadCloser
		b.leave(true)
	}
	return nil
}

// unzipped is a body that came compressed although nobody but this package asked for that.
type unzipped struct {
	io.ReadCloser
	plain *gzip.Reader
	err   error
}

func (u *unzipped) Read(p []byte) (int, error) {
	if u.plain == nil && u.err == nil {
		u.plain, u.err = gzip.NewReader(u.ReadCloser)
	}
	if u.err != nil {
		return 0, u.err
	}
	return u.plain.Read(p)
}
