package console

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// Limits for sessions.
const (
	maxSessions    = 1000
	maxOwnSessions = 32 // limit for one principal
	sessionIdle    = 12 * time.Hour
	linkTime       = time.Hour
)

// person is a user of the console.
type person struct {
	// principal is for policies; empty for the person at this machine.
	principal string
	// name is recorded with decisions.
	name   string
	groups []string
	id     string // session of the person's calls
	// expires is the time at which the token expires; zero for never.
	expires time.Time
	// onEnd calls a function when the session ends or the token is revoked, unless stop is called
	// before.
	onEnd func(func()) (stop func())
}

// lasting returns a context that ends with the session or the token of the person.
func (p *person) lasting(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	timed := func() {}
	if !p.expires.IsZero() {
		ctx, timed = context.WithDeadline(ctx, p.expires)
	}
	stop := p.onEnd(cancel)
	return ctx, func() { stop(); timed(); cancel() }
}

// session is a person who signed in.
type session struct {
	person
	used   time.Time
	close  func() // ends the streams of the session
	forget func() // stops watching the token
}

// sessions holds the people who are signed in, by the hash of the secret in their cookie.
type sessions struct {
	now func() time.Time

	mu        sync.Mutex
	all       map[[sha256.Size]byte]*session
	newest    [sha256.Size]byte // hash of the only valid one-time link
	newestEnd time.Time         // expiry of that link
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, all: map[[sha256.Size]byte]*session{}}
}

// begin signs a person in and returns the secret for the cookie. The session ends when the token is
// revoked.
func (s *sessions) begin(p person, token server.Caller) string {
	secret := rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(secret))
	p.id = "console-" + rand.Text()[:10]
	now := s.now()
	lives, end := context.WithCancel(context.Background())
	p.expires, p.onEnd = token.Expires, func(f func()) func() {
		stop := context.AfterFunc(lives, f)
		return func() { stop() }
	}
	one := &session{person: p, used: now, close: end, forget: func() {}}
	s.mu.Lock()
	s.makeRoom(p.principal)
	s.all[sum] = one
	s.mu.Unlock()
	forget := token.OnDrop(func() { s.end(secret) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[sum] == nil { // the token was revoked in the meantime
		forget()
		return secret
	}
	one.forget = forget
	return secret
}

// makeRoom ends expired sessions. If a principal then has too many sessions, it ends the least recently used of these;
// if there are too many in total, it ends the least recently used session of the principal with the most.
func (s *sessions) makeRoom(principal string) {
	now, each := s.now(), map[string]int{}
	for sum, one := range s.all {
		if one.over(now) {
			s.remove(sum)
			continue
		}
		each[one.principal]++
	}
	from := principal
	if each[principal] < maxOwnSessions {
		if len(s.all) < maxSessions {
			return
		}
		for name, n := range each {
			if n > each[from] {
				from = name
			}
		}
	}
	var oldest [sha256.Size]byte
	for sum, one := range s.all {
		if one.principal == from && (s.all[oldest] == nil || one.used.Before(s.all[oldest].used)) {
			oldest = sum
		}
	}
	s.remove(oldest)
}

// remove ends a session; the caller holds mu.
func (s *sessions) remove(sum [sha256.Size]byte) {
	if one := s.all[sum]; one != nil {
		delete(s.all, sum)
		one.forget()
		one.close()
	}
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.used) > sessionIdle || !s.expires.IsZero() && !now.Before(s.expires)
}

// of returns the person whose cookie has a secret.
func (s *sessions) of(secret string) (person, bool) {
	sum, now := sha256.Sum256([]byte(secret)), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[sum]
	if one == nil {
		return person{}, false
	}
	if one.over(now) {
		s.remove(sum)
		return person{}, false
	}
	one.used = now
	return one.person, true
}

// count returns the number of people who are signed in.
func (s *sessions) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// end signs a person out.
func (s *sessions) end(secret string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.remove(sha256.Sum256([]byte(secret)))
}

// link returns the secret of a new one-time link, which replaces earlier links.
func (s *sessions) link() string {
	secret := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.newest, s.newestEnd = sha256.Sum256([]byte(secret)), s.now().Add(linkTime)
	return secret
}

// redeem reports whether a secret belongs to the newest link, and then invalidates the link.
func (s *sessions) redeem(secret string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sha256.Sum256([]byte(secret)) != s.newest || !s.now().Before(s.newestEnd) {
		return false
	}
	s.newestEnd = time.Time{}
	return true
}
