package server

import (
	"crypto/rand"
	"strings"
	"sync"
	"time"
)

// maxTurns limits the number of sessions whose turns are remembered. The calls of further sessions share a
// turn that does not end, so that opening many sessions brings no advantage.
const maxTurns = 16 << 10

// turns names the turns of calls without a turn name, which is needed because MCP has no turns. Calls of a
// session belong to one turn while the pauses between them are shorter than idle. A session without calls
// for that long is forgotten.
type turns struct {
	idle time.Duration
	most int

	mu       sync.Mutex
	sessions map[string]*currentTurn
	swept    time.Time
}

// currentTurn is the current turn of a session.
type currentTurn struct {
	name    string
	running int       // number of running calls
	last    time.Time // when a call last began or ended
}

func newTurns(idle time.Duration) *turns {
	return &turns{idle: idle, most: maxTurns, sessions: map[string]*currentTurn{}}
}

// begin returns the name of the turn that a call of a session belongs to. The call counts as running until
// end is called.
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
		// The name must be unique even in a store that outlives the process.
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

// forget removes the turn of a session that has ended.
func (t *turns) forget(session string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.sessions, session)
}
