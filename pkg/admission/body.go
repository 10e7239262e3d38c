package admission

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"sync"
	"time"

	"toolctl.dev/toolctl/internal/budget"
)

const (
	// bodyTimeout is how long a client may take to send the body of a request.
	bodyTimeout = 30 * time.Second
	// readPiece is the unit in which the bytes of large requests are counted. The first piece is not counted.
	readPiece = 64 << 10
)

// Body is the complete body of an admitted request.
type Body struct {
	*bytes.Reader
	text []byte

	mu    sync.Mutex
	share *budget.Share
}

// BodyOf returns the body of an admitted request. It is empty for a request without a body.
func BodyOf(r *http.Request) *Body {
	if b, ok := r.Body.(*Body); ok {
		return b
	}
	return &Body{Reader: bytes.NewReader(nil)}
}

// Bytes returns the whole body.
func (b *Body) Bytes() []byte { return b.text }

// Close implements [io.Closer].
func (b *Body) Close() error { return nil }

// Memory hands over the memory that was reserved for the body; the caller must release it. It returns nil
// if the memory was handed over before.
func (b *Body) Memory() *budget.Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.share
	b.share = nil
	return s
}

// receive reads the body of a request and reserves the memory to decode it.
func (a *Admission) receive(w http.ResponseWriter, r *http.Request, c Caller, most int64) (*Body, error) {
	who := c.Name
	if !c.Stranger { // strangers have a quota of their own
		if err := a.reading.Take(who); err != nil {
			return nil, err
		}
		defer a.reading.Give(who)
	}
	pieces := 0
	defer func() {
		for range pieces {
			a.pieces.Give(who)
		}
	}()
	ctx, cancel := context.WithTimeout(r.Context(), bodyTimeout)
	defer cancel()
	text, err := read(w, r, most, func() error {
		if err := a.pieces.Wait(ctx, who, budget.Patience); err != nil {
			return err
		}
		pieces++
		return nil
	})
	if err != nil {
		return nil, err
	}
	share, err := a.takeMemory(r.Context(), who, weigh(r, text))
	if err != nil {
		return nil, err
	}
	if len(text) >= smallRequest { // counts for the next request of the principal, which waits for this one
		a.throttle.wait(r.Context(), who, len(text), false)
	}
	return &Body{Reader: bytes.NewReader(text), text: text, share: share}, nil
}

// weigh returns the approximate number of bytes needed to decode a body.
func weigh(r *http.Request, text []byte) int64 {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "application/x-www-form-urlencoded" {
		return budget.WeighForm(text)
	}
	return budget.Weigh(text)
}

// read reads the whole body within its size limit. It calls more after each complete piece.
func read(w http.ResponseWriter, r *http.Request, most int64, more func() error) ([]byte, error) {
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	in := http.MaxBytesReader(w, r.Body, most)
	var body bytes.Buffer
	for {
		if n := min(r.ContentLength, readPiece); body.Len() == 0 && n > 0 {
			body.Grow(int(n) + bytes.MinRead)
		}
		n, err := io.CopyN(&body, in, readPiece)
		switch {
		case errors.Is(err, io.EOF):
			return body.Bytes(), nil
		case err != nil:
			return nil, err
		case n == readPiece:
			if err := more(); err != nil {
				return nil, err
			}
		}
	}
}

// explained returns the HTTP status and text for a request that was not admitted, and the reason to count.
// The reason is empty if a quota or the budget has counted the refusal.
func explained(err error) (status int, text, reason string) {
	var large *http.MaxBytesError
	var full *QuotaError
	switch {
	case errors.As(err, &large):
		return http.StatusRequestEntityTooLarge, "the request is too large", reasonSize
	case errors.Is(err, ErrStopping):
		return http.StatusServiceUnavailable, err.Error(), reasonStopping
	case errors.Is(err, budget.ErrTooLarge):
		return http.StatusServiceUnavailable, "the request is too large to decode: " + err.Error(), ""
	case errors.As(err, &full), errors.Is(err, budget.ErrFull):
		return http.StatusServiceUnavailable, err.Error(), ""
	case errors.Is(err, os.ErrDeadlineExceeded):
		return http.StatusRequestTimeout, "the request took too long to arrive", reasonTimeout
	}
	return http.StatusBadRequest, "the request could not be read", ""
}
