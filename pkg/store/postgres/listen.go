package postgres

import (
	"context"
	"crypto/rand"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// channel is the NOTIFY channel of all stores of a database; the payload says what changed. A notification from another
// store only costs one query.
const channel = "toolctl"

// probe is the prefix of the payloads that a listener sends to itself.
const probe = "probe "

// listen starts to listen for NOTIFY, once. Short commands without watches need no connection for it.
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

// hear listens on its own connection until that ends, and reports whether it could connect.
func (s *Store) hear(ctx context.Context) bool {
	conn, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return false
	}
	final := func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // there is nothing to lose
	}
	defer final()
	if _, err := conn.Exec(ctx, "LISTEN "+channel); err != nil {
		return false
	}
	// This finds the changes before LISTEN.
	s.changed.Notify()
	token := probe + rand.Text()
	s.deaf.Store(true) // until something arrives: a pooler may silently drop LISTEN
	sent := make(chan struct{})
	s.listener.Go(func() {
		defer close(sent)
		_, _ = s.pool.Exec(ctx, "SELECT pg_notify($1, $2)", channel, token) // only the arrival counts
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
