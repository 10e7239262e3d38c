// Package budget limits the memory for decoding.
//
// A JSON text of a few megabytes may need a hundred times as much memory, so the limit applies to the cost of its
// values by [Weigh] instead of its length. Before decoding a text, a caller takes that amount from a [Budget], and
// releases it afterwards.
package budget

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"toolctl.dev/toolctl/internal/jsontext"
)

// Budget is a number of bytes that many callers share. All methods are safe for concurrent use; a nil Budget has no
// limit.
type Budget struct {
	total  int64
	atOnce int // maximum concurrent large shares of one principal

	mu    sync.Mutex
	used  int64
	kept  int64          // see Keep
	large map[string]int // number of large shares by principal
	freed chan struct{}  // closed when bytes are released
}

// small is the maximum cost of a request that large requests never delay: large requests may use only seven eighths of
// the budget, and a principal may have only a few at once.
const small = 1 << 20

// New returns a budget of total bytes.
func New(total int64) *Budget {
	return &Budget{total: total, atOnce: max(1, runtime.GOMAXPROCS(0)/2), large: map[string]int{}, freed: make(chan struct{})}
}

// Total returns the size of the budget, or 0 without a limit.
func (b *Budget) Total() int64 {
	if b == nil {
		return 0
	}
	return b.total
}

// Used returns the number of bytes in use.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// ErrTooLarge says that a text exceeds the whole budget.
var ErrTooLarge = errors.New("decoding it needs more memory than the budget allows")

// Take takes n bytes for a principal, "" for an anonymous caller. It waits until enough bytes are free or ctx ends,
// whose error it then returns. The number of concurrent large shares of a principal is limited to half of the
// processors. The caller must return the bytes with Release.
func (b *Budget) Take(ctx context.Context, principal string, n int64) (*Share, error) {
	if b == nil {
		return nil, nil //nolint:nilnil // no budget, no share; its methods take nil
	}
	s := &Share{budget: b, principal: principal}
	if err := s.hold(ctx, n); err != nil {
		return nil, err
	}
	return s, nil
}

// TakeSoon is Take with a maximum wait of [Patience]. It starts no timer if enough bytes are free.
func (b *Budget) TakeSoon(ctx context.Context, principal string, n int64) (*Share, error) {
	if b == nil {
		return nil, nil //nolint:nilnil // as in Take
	}
	s := &Share{budget: b, principal: principal}
	freed, err := s.try(n)
	switch {
	case err != nil:
		return nil, err
	case freed == nil:
		return s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return b.Take(ctx, principal, n)
}

// hold increases the share to at least n bytes, and waits until so many are free.
func (s *Share) hold(ctx context.Context, n int64) error {
	for {
		freed, err := s.try(n)
		if err != nil || freed == nil {
			return err
		}
		select {
		case <-freed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try is hold without waiting. It returns a channel that is closed when the caller may try again, or nil if the share
// has so many bytes.
func (s *Share) try(n int64) (freed <-chan struct{}, err error) {
	b, large := s.budget, n > small
	most := b.total
	if large {
		most -= most / 8
	}
	if n > most {
		return nil, fmt.Errorf("%w: %d MiB of %d MiB", ErrTooLarge, n>>20, most>>20)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	more := max(0, n-s.n)
	turn := large && !s.large && s.principal != ""
	if b.used+more > most || turn && b.large[s.principal] >= b.atOnce {
		return b.freed, nil
	}
	b.used, s.n = b.used+more, s.n+more
	if turn {
		b.large[s.principal]++
		s.large = true
	}
	return nil, nil
}

// Patience is how long a request waits for other requests to release bytes.
const Patience = 2 * time.Second

// ErrFull says that not enough bytes became free in time.
var ErrFull = errors.New("too much is being decoded at once: try again later")

// Share is a part of a budget that is in use. A nil Share is empty.
type Share struct {
	budget    *Budget
	principal string
	n         int64
	kept      int64
	large     bool // it counts as a large share of its principal
}

// Shrink reduces the share to n bytes, which then no longer counts as large; it never increases the share.
func (s *Share) Shrink(n int64) {
	if s == nil {
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if n >= s.n && !s.large {
		return
	}
	if s.large {
		s.large = false
		if b.large[s.principal]--; b.large[s.principal] == 0 {
			delete(b.large, s.principal)
		}
	}
	if n < s.n {
		b.used -= s.n - n
		s.n = n
	}
	close(b.freed)
	b.freed = make(chan struct{})
}

// Release returns the whole share. It may be called more than once.
func (s *Share) Release() {
	if s == nil {
		return
	}
	s.Shrink(0)
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.budget.kept -= s.kept
	s.kept = 0
}

// Estimated costs of the parts of a text when decoded into map[string]any and []any, including later values up to the
// check of the arguments. A map of up to eight members takes 336 bytes, each member its name and value; a value that
// violates its schema also costs a violation.
const (
	perByte   = 4 // the text, the message, the arguments, and the text encoded again
	perObject = 336
	perValue  = 160
	// unscanned is the length up to which a text is not scanned but has the worst cost.
	unscanned = 2 << 10
	worst     = 80 // bytes for each byte
)

// Weigh returns the approximate memory for decoding a JSON text. The text may be invalid.
func Weigh(text []byte) int64 {
	if len(text) <= unscanned {
		return int64(len(text)) * worst
	}
	n := int64(len(text)) * perByte
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			n += perObject
		case ',', '[':
			n += perValue
		case '"':
			i = jsontext.SkipString(text, i) - 1
		}
	}
	return n
}

// WeighForm returns the approximate memory for decoding a URL-encoded form and rendering it again.
func WeighForm(text []byte) int64 {
	const perPair = 1 << 10
	return int64(len(text))*4*perByte + int64(1+bytes.Count(text, []byte("&")))*perPair
}

type shareKey struct{}

// With returns a context whose work has a share of a budget.
func With(ctx context.Context, s *Share) context.Context {
	return context.WithValue(ctx, shareKey{}, s)
}

// Bounds reports whether the work of ctx has a share.
func Bounds(ctx context.Context) bool {
	s, _ := ctx.Value(shareKey{}).(*Share)
	return s != nil
}

// OfText returns the cost of n bytes of text that are not decoded.
func OfText(n int) int64 { return int64(n) * perByte }

// Hold increases the share of ctx to at least n bytes, and waits until so many are free. The share or [Decoded]
// releases them. Without a share there is no limit. The error is [ErrFull] if ctx reaches its deadline first,
// [ErrTooLarge], or the error of ctx.
func Hold(ctx context.Context, n int64) error {
	s, _ := ctx.Value(shareKey{}).(*Share)
	if s == nil {
		return nil
	}
	err := s.hold(ctx, n)
	if errors.Is(err, context.DeadlineExceeded) {
		return ErrFull
	}
	return err
}

// ErrKept says that too much text arrived at once for the limit of [Keep].
var ErrKept = errors.New("too much data is being received at once: try again later")

// Keep counts n bytes of received text for the work of ctx, until its share is released. The sum of kept texts may be
// as large as the whole budget, in addition to decoded values; beyond that Keep returns [ErrKept] at once. Without a
// share there is no limit.
func Keep(ctx context.Context, n int) error {
	s, _ := ctx.Value(shareKey{}).(*Share)
	if s == nil {
		return nil
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.kept+int64(n) > b.total {
		return ErrKept
	}
	b.kept += int64(n)
	s.kept += int64(n)
	return nil
}

// Decoded releases the decoded values of the work of ctx, but keeps the cost of its text of n bytes.
func Decoded(ctx context.Context, n int) {
	s, _ := ctx.Value(shareKey{}).(*Share)
	s.Shrink(int64(n) * perByte)
}
