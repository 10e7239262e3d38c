package console

import (
	"crypto/rand"
	"crypto/sha256"
	"sync"
	"time"

	"toolctl.dev/toolctl/pkg/gateway"
)

// Bounds of signing in.
const (
	maxSessions = 1000
	sessionIdle = 12 * time.Hour
	maxLinks    = 16
	linkTime    = time.Hour
)

// person is who uses the console.
type person struct {
	// principal is for policies; empty for the person at this machine.
	principal string
	// name is what decisions are made by.
	name   string
	groups []string
	id     string // of the session of calls
}

// session is a person who signed in.
type session struct {
	person
	used    time.Time
	expires time.Time // zero when the token does not end by itself
	forget  func()    // stops the watch of the token
}

// sessions are the people who signed in, by the hash of their cookie's secret.
type sessions struct {
	now func() time.Time

	mu    sync.Mutex
	all   map[[sha256.Size]byte]*session
	links map[[sha256.Size]byte]time.Time // one-time links, and until when they can be used
}

func newSessions(now func() time.Time) *sessions {
	return &sessions{now: now, all: map[[sha256.Size]byte]*session{}, links: map[[sha256.Size]byte]time.Time{}}
}

// begin signs a person in, and returns the secret for the cookie. The session ends when the
// token is taken no longer.
func (s *sessions) begin(p person, token gateway.Caller) string {
	secret := rand.Text() + rand.Text()
	sum := sha256.Sum256([]byte(secret))
	p.id = "console-" + rand.Text()[:10]
	now := s.now()
	s.mu.Lock()
	if len(s.all) >= maxSessions {
		s.drop()
	}
	one := &session{person: p, used: now, expires: token.Expires, forget: func() {}}
	s.all[sum] = one
	s.mu.Unlock()
	forget := token.OnDrop(func() { s.end(secret) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all[sum] == nil { // the token went meanwhile
		forget()
		return secret
	}
	one.forget = forget
	return secret
}

// drop makes room: what is over goes, and else the session that was not used for the longest.
func (s *sessions) drop() {
	now := s.now()
	var oldest [sha256.Size]byte
	var at time.Time
	for sum, one := range s.all {
		if one.over(now) {
			one.forget()
			delete(s.all, sum)
		} else if at.IsZero() || one.used.Before(at) {
			oldest, at = sum, one.used
		}
	}
	if one := s.all[oldest]; one != nil && len(s.all) >= maxSessions {
		one.forget()
		delete(s.all, oldest)
	}
}

func (s *session) over(now time.Time) bool {
	return now.Sub(s.used) > sessionIdle || !s.expires.IsZero() && !now.Before(s.expires)
}

// of returns who has the secret of a cookie.
func (s *sessions) of(secret string) (person, bool) {
	sum, now := sha256.Sum256([]byte(secret)), s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.all[sum]
	if one == nil {
		return person{}, false
	}
	if one.over(now) {
		one.forget()
		delete(s.all, sum)
		return person{}, false
	}
	one.used = now
	return one.person, true
}

// end signs a person out.
func (s *sessions) end(secret string) {
	sum := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	one := s.all[sum]
	delete(s.all, sum)
	s.mu.Unlock()
	if one != nil {
		one.forget()
	}
}

// link returns the secret of a link that works once.
func (s *sessions) link() string {
	secret := rand.Text()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.links) >= maxLinks {
		clear(s.links)
	}
	s.links[sha256.Sum256([]byte(secret))] = s.now().Add(linkTime)
	return secret
}

// redeem reports whether a secret is that of a link, which works no more then.
func (s *sessions) redeem(secret string) bool {
	sum := sha256.Sum256([]byte(secret))
	s.mu.Lock()
	defer s.mu.Unlock()
	until, ok := s.links[sum]
	delete(s.links, sum)
	return ok && s.now().Before(until)
}
