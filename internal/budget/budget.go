// Package budget bounds the memory of what is decoded at once.
//
// A JSON text of a few megabytes may become a hundred times as much in memory, so what
// counts is not its length but what [Weigh] says that its values cost. Whoever is about
// to decode a text takes that much of a [Budget] first, and gives it back afterwards.
package budget

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"toolctl.dev/toolctl/internal/jsontext"
)

// Budget is a number of bytes that many share. All methods may be called by many
// goroutines at once; a nil Budget has no bound.
type Budget struct {
	total int64

	mu    sync.Mutex
	used  int64
	freed chan struct{} // closed when some is given back
}

// small is what a request costs that is never held up by large ones: these may use but
// seven eighths of the budget.
const small = 1 << 20

// New returns a budget of so many bytes.
func New(total int64) *Budget { return &Budget{total: total, freed: make(chan struct{})} }

// Total returns the whole budget; 0 when there is no bound.
func (b *Budget) Total() int64 {
	if b == nil {
		return 0
	}
	return b.total
}

// ErrTooLarge says that a text would never fit.
var ErrTooLarge = errors.New("it takes more memory to decode than the budget has")

// Take takes n bytes. When there are not so many now it waits until there are or ctx
// ends, whose error it then returns. What is taken must be given back by Release.
func (b *Budget) Take(ctx context.Context, n int64) (*Share, error) {
	if b == nil {
		return nil, nil //nolint:nilnil // no budget, no share; its methods take nil
	}
	most := b.total
	if n > small {
		most -= most / 8
	}
	if n > most {
		return nil, fmt.Errorf("%w: %d MiB of %d MiB", ErrTooLarge, n>>20, most>>20)
	}
	for {
		b.mu.Lock()
		if b.used+n <= most {
			b.used += n
			b.mu.Unlock()
			return &Share{budget: b, n: n}, nil
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Share is a part of a budget that was taken. A nil Share is none.
type Share struct {
	budget *Budget
	n      int64
}

// Shrink gives back all but n bytes; it never takes more.
func (s *Share) Shrink(n int64) {
	if s == nil {
		return
	}
	b := s.budget
	b.mu.Lock()
	defer b.mu.Unlock()
	if n >= s.n {
		return
	}
	b.used -= s.n - n
	s.n = n
	close(b.freed)
	b.freed = make(chan struct{})
}

// Release gives back all. It may be called more than once.
func (s *Share) Release() { s.Shrink(0) }

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

type shareKey struct{}

// With returns a context whose work was taken out of a budget before.
func With(ctx context.Context, s *Share) context.Context {
	return context.WithValue(ctx, shareKey{}, s)
}

// Decoded says that what was decoded for the work of ctx is decoded no longer: but its
// text remains, of n bytes.
func Decoded(ctx context.Context, n int) {
	s, _ := ctx.Value(shareKey{}).(*Share)
	s.Shrink(int64(n) * perByte)
}
