package server

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"
)

// maxTurns bounds the sessions whose turns are remembered. The calls of one more share a turn
// that does not end, so that who opens many sessions gains nothing.
const maxTurns = 16 << 10

// turns names the turns of calls that name none, because MCP knows no turns: those of a
// session that follow each other without a pause of idle are one turn. A session without
// calls for so long is forgotten.
type turns struct {
	idle time.Duration
	most int

	mu       sync.Mutex
	sessions map[string]*currentTurn
	swept    time.Time
}

// currentTurn is the turn that a session is in.
type currentTurn struct {
	name    string
	running int       // calls under way
	last    time.Time // when one began or ended
}

func newTurns(idle time.Duration) *turns {
	return &turns{idle: idle, most: maxTurns, sessions: map[string]*currentTurn{}}
}

// begin returns the name of the turn that a call of a session belongs to. The call is under
// way until end is called.
func (t *turns) begin(session string) (name string, end func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	t.sweep(now)
	c := t.sessions[session]
	switch {
	case c == nil && len(t.sessions) >= t.most:
		return "", func() {}
	case c == nil:
		c = &currentTurn{}
		t.sessions[session] = c
		fallthrough
	case t.over(c, now):
		// A name that does not come again, in a store that outlives the process either.
		c.name = "idle-" + strings.ToLower(rand.Text()[:10])
	}
	c.running++
	c.last = now
	return c.name, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		c.running--
		c.last = time.Now()
	}
}

func (t *turns) over(c *currentTurn, now time.Time) bool {
	return c.running == 0 && now.Sub(c.last) >= t.idle
}

// sweep forgets the sessions whose turns are over, at most once a second.
func (t *turns) sweep(now time.Time) {
	if now.Sub(t.swept) < min(t.idle, time.Second) || now.Sub(t.swept) < t.idle && len(t.sessions) < t.most {
		return
	}
	t.swept = now
	for session, c := range t.sessions {
		if t.over(c, now) {
			delete(t.sessions, session)
		}
	}
}

// forget drops what is remembered of a session that has ended.
func (t *turns) forget(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sessions, session)
}
