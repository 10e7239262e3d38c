// Package budget bounds the memory of what is decoded at once.
//
// A JSON text of a few megabytes may become a hundred times as much in memory, so what
// counts is not its length but what [Weigh] says that its values cost. Whoever is about
// to decode a text takes that much of a [Budget] first, and gives it back afterwards.
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

// Budget is a number of bytes that many share. All methods may be called by many
// goroutines at once; a nil Budget has no bound.
type Budget struct {
	total  int64
	atOnce int // large ones of one principal

	mu    sync.Mutex
	used  int64
	kept  int64          // see Keep
	large map[string]int // shares of what is large that are being decoded, by principal
	freed chan struct{}  // closed when some is given back
}

// small is what a request costs that is never held up by large ones: these may use but
// seven eighths of the budget, and a principal has but a few at once.
const small = 1 << 20

// New returns a budget of so many bytes.
func New(total int64) *Budget {
	return &Budget{total: total, atOnce: max(1, runtime.GOMAXPROCS(0)/2), large: map[string]int{}, freed: make(chan struct{})}
}

// Total returns the whole budget; 0 when there is no bound.
func (b *Budget) Total() int64 {
	if b == nil {
		return 0
	}
	return b.total
}

// Used returns how many bytes are taken.
func (b *Budget) Used() int64 {
	if b == nil {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// ErrTooLarge says that a text would never fit.
var ErrTooLarge = errors.New("decoding it needs more memory than the budget allows")

// Take takes n bytes for a principal, "" for a caller without a name. When there are not so
// many now it waits until there are or ctx ends, whose error it then returns. Of what is
// large a principal decodes no more at once than half of the processors can. What is taken
// must be given back by Release.
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

// TakeSoon is Take that waits for [Patience] at most. It starts no timer when there is enough.
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

// hold has the share be n bytes at least, as soon as there are so many.
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

// try is hold that does not wait. What it returns is closed when it may be tried again; nil
// when the share has so many bytes.
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

// Patience is how long a request waits for others to give back.
const Patience = 2 * time.Second

// ErrFull says that there was not enough in time.
var ErrFull = errors.New("too much is being decoded at once: try again later")

// Share is a part of a budget that was taken. A nil Share is none.
type Share struct {
	budget    *Budget
	principal string
	n         int64
	kept      int64
	large     bool // it is one of those that its principal has at once
}

// Shrink gives back all but n bytes, and the turn of what is large; it never takes more.
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

// Release gives back all. It may be called more than once.
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

// What the parts of a text cost once it is decoded into map[string]any and []any, with
// what comes of it until the arguments are checked. A map of up to eight members takes
// 336 bytes, each member its name and value; a value that breaks its schema has a violation.
const (
	perByte   = 4 // the text, the message, the arguments, and what is encoded again
	perObject = 336
	perValue  = 160
	// unscanned is the length up to which a text is not looked at: it counts as the worst.
	unscanned = 2 << 10
	worst     = 80 // bytes for each byte
)

// Weigh returns about how many bytes it takes to decode a JSON text. It need not be valid.
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

// WeighForm returns about how many bytes it takes to decode a form that was sent URL-encoded, and to draw
// the form again.
func WeighForm(text []byte) int64 {
	const perPair = 1 << 10
	return int64(len(text))*4*perByte + int64(1+bytes.Count(text, []byte("&")))*perPair
}

type shareKey struct{}

// With returns a context whose work was taken out of a budget before.
func With(ctx context.Context, s *Share) context.Context {
	return context.WithValue(ctx, shareKey{}, s)
}

// Bounds reports whether the work of ctx has a share.
func Bounds(ctx context.Context) bool {
	s, _ := ctx.Value(shareKey{}).(*Share)
	return s != nil
}

// OfText is what n bytes of text cost that are not decoded.
func OfText(n int) int64 { return int64(n) * perByte }

// Hold takes what the share of ctx lacks of n bytes, as soon as there are so many; it
// is given back with the share, or by [Decoded]. Without a share there is no bound. The error
// is [ErrFull] when the time of ctx runs out before, [ErrTooLarge], or that of ctx.
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

// ErrKept says that too much text came at once for what [Keep] allows.
var ErrKept = errors.New("too much data is being received at once: try again later")

// Keep counts n bytes of text that came for the work of ctx, until its share is released.
// All that is kept may be as much as the whole budget, beside what is decoded; the error is
// [ErrKept], at once. Without a share there is no bound.
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

// Decoded says that what was decoded for the work of ctx is decoded no longer: but its
// text remains, of n bytes.
func Decoded(ctx context.Context, n int) {
	s, _ := ctx.Value(shareKey{}).(*Share)
	s.Shrink(int64(n) * perByte)
}
