package postgres

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is what all stores of a database notify; the payload says what changed. Who hears of another
// store looks once for nothing.
const channel = "toolctl"

// probe begins the payload of what a listener sends itself.
const probe = "probe "

// listen begins to listen for NOTIFY, once: short commands that watch nothing need no
// connection for it.
func (s *Store) listen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.closed:
		return
	default:
	}
	if s.listening {
		return
	}
	s.listening = true
	s.listener.Go(func() {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		s.listener.Go(func() {
			<-s.closed
			cancel()
		})
		const first, longest = 100 * time.Millisecond, 2 * time.Second
		for pause := first; ctx.Err() == nil; pause = min(2*pause, longest) {
			if s.hear(ctx) {
				pause = first
			}
			select {
			case <-ctx.Done():
			case <-time.After(pause):
			}
		}
	})
}

// hear listens on a connection of its own until that ends, and reports whether it had one.
func (s *Store) hear(ctx context.Context) bool {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return false
	}
	final := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // nothing is left to be lost
	}
	defer final()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return false
	}
	// What changed while nobody listened is found now.
	s.changed.Notify()
	token := probe + rand.Text()
	s.deaf.Store(true) // until something arrives: a pooler may drop LISTEN without a word
	sent := make(chan struct{})
	s.listener.Go(func() {
		defer close(sent)
		_, _ = s.pool.Exec(ctx, "SELECT pg_notify($1, $2)", channel, token) // whether it arrives is what counts
	})
	defer func() { <-sent }()
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return true
		}
		s.deaf.Store(false)
		if !strings.HasPrefix(n.Payload, probe) {
			s.changed.Notify()
		}
	}
}
