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
	err     error // of reads from now on; nil while the connection is this response's
}

func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	if b.err != nil {
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
		b.end(err)
	}
	return n, err
}

// end leaves the connection, whose response has ended with err; io.EOF is its whole end. It is called under mu
// once others have the body.
func (b *body) end(err error) {
	if b.err == nil {
		b.err = err
		b.leave(err == io.EOF && b.conn.in.Buffered() == 0) //nolint:errorlint // as above
	}
}

// Close leaves the rest of the response to whoever uses the connection next: mostly it is the
// mark of the end of a stream, which a server sends after what it had to say.
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := b.err != nil
	b.err = http.ErrBodyReadAfterClose
	if !ended {
		if !b.reading { // else the read ends by this
			b.conn.rest = b.ReadCloser
		}
		b.leave(!b.reading)
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
