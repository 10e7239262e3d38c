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
	// readPiece is what the reading of large requests is counted in; the first is free.
	readPiece = 64 << 10
)

// Body is the body of a request that was admitted, read to its end.
type Body struct {
	*bytes.Reader
	text []byte

	mu    sync.Mutex
	share *budget.Share
}

// BodyOf returns the body of an admitted request; empty for one without.
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

// Memory hands over what was taken of the memory budget for the body, which the caller then releases. It
// returns nil when that was handed over before.
func (b *Body) Memory() *budget.Share {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.share
	b.share = nil
	return s
}

// receive reads the body of a request and takes of the memory budget what it costs to decode.
func (a *Admission) receive(w http.ResponseWriter, r *http.Request, c Caller, most int64) (*Body, error) {
	who := c.Name
	if !c.Stranger { // who has a quota of its own
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
	if len(text) >= smallRequest { // as the next of its principal, which waits for what is taken here
		a.throttle.wait(r.Context(), who, len(text), false)
	}
	return &Body{Reader: bytes.NewReader(text), text: text, share: share}, nil
}

// weigh returns about how many bytes it takes to decode a body.
func weigh(r *http.Request, text []byte) int64 {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && kind == "application/x-www-form-urlencoded" {
		return budget.WeighForm(text)
	}
	return budget.Weigh(text)
}

// read takes the whole body within its time and size. It calls more for each piece but the first.
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

// explained returns the status that says why a request was not admitted, the text that does, and the
// reason for the count, empty when a quota or the budget counted it.
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
