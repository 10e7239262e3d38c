package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/admission"
)

// httpSessions are the sessions of clients of 2025-11-25 and older, for calls, which the SDK
// does not see. It makes the sessions, decides whose they are, and ends those that are idle:
// it is asked about a session by a ping in the client's place, when the session was not seen
// for a part of the time after which it ends.
type httpSessions struct {
	sdk   http.Handler
	fresh time.Duration    // how long a session that was seen may be used without asking the SDK
	room  *admission.Quota // of the events that are kept
	log   *slog.Logger

	mu      sync.Mutex
	all     map[string]*httpSession // by id
	evicted int                     // sessions that made room for others since told
	told    time.Time               // when the log was told of those
}

// httpSession is one session.
type httpSession struct {
	sdk     *sdk.ServerSession
	user    string
	version string    // the Mcp-Protocol-Version header that the SDK took
	seen    time.Time // under mu of httpSessions, as the two before it and the three after it
	used    time.Time // when its last request ended
	open    int       // requests and streams of its client that are under way
	leaving bool      // it makes room for another

	mu      sync.Mutex
	running map[string]context.CancelFunc // calls, by the id of the request
	asked   map[string]chan<- clientAnswer
	asks    int // that were made
	kept    *keptStreamsOf
}

const (
	methodCancelled = "notifications/cancelled"
	// headerTouch marks our pings. What a client sends by this name is dropped.
	headerTouch = "Toolctl-Touch"
	// askPrefix begins the ids of our requests to clients; the SDK's are numbers.
	askPrefix = "toolctl-"
)

// see notes a session that the SDK let a request into.
func (k *httpSessions) see(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		ss, ok := req.GetSession().(*sdk.ServerSession)
		extra := req.GetExtra()
		if ok && ss.ID() != "" && extra != nil && method != "initialize" {
			k.note(ss, extra)
		}
		return next(ctx, method, req)
	}
}

func (k *httpSessions) note(ss *sdk.ServerSession, extra *sdk.RequestExtra) {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.enter(ss, userOf(extra.TokenInfo))
	s.seen, s.version, s.user = time.Now(), extra.Header.Get(headerVersion), userOf(extra.TokenInfo)
}

// begin notes a session that a principal has just begun.
func (k *httpSessions) begin(ss *sdk.ServerSession, who string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.enter(ss, who)
}

// enter returns what is kept of a session. It is called under mu.
func (k *httpSessions) enter(ss *sdk.ServerSession, who string) *httpSession {
	s := k.all[ss.ID()]
	if s == nil {
		s = &httpSession{sdk: ss, user: who, used: time.Now(), running: map[string]context.CancelFunc{}, asked: map[string]chan<- clientAnswer{}, kept: &keptStreamsOf{room: k.room, who: who}}
		k.all[ss.ID()] = s
	}
	return s
}

// use says that a request of a session is under way until done is called.
func (k *httpSessions) use(r *http.Request) (done func()) {
	id := r.Header.Get(headerSession)
	if id == "" {
		return func() {}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.all[id]
	if s == nil || s.user != userOf(auth.TokenInfoFromContext(r.Context())) {
		return func() {}
	}
	s.open++
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		s.open--
		s.used = time.Now()
	}
}

// evict ends the session that was idle longest, of a principal unless the name is empty. False says that
// each has a request or a stream under way.
func (k *httpSessions) evict(who string) bool {
	k.mu.Lock()
	var oldest *httpSession
	for _, s := range k.all {
		if s.open == 0 && !s.leaving && (who == "" || s.user == who) && (oldest == nil || s.used.Before(oldest.used)) {
			oldest = s
		}
	}
	if oldest == nil {
		k.mu.Unlock()
		return false
	}
	oldest.leaving = true
	k.evicted++
	count, now := k.evicted, time.Now()
	tell := now.Sub(k.told) >= time.Minute
	if tell {
		k.evicted, k.told = 0, now
	}
	k.mu.Unlock()
	_ = oldest.sdk.Close() // how it ended does not matter
	if tell {
		k.log.Warn("sessions that were idle longest made room for new ones: their clients begin again; see --max-sessions",
			slog.Int("sessions", count), slog.String("principal", oldest.user), slog.String("idle", clip.Duration(now.Sub(oldest.used).Round(time.Second))))
	}
	return true
}

// drop forgets a session that has ended, and cancels its calls.
func (k *httpSessions) drop(id string) {
	k.mu.Lock()
	s := k.all[id]
	delete(k.all, id)
	k.mu.Unlock()
	if s == nil {
		return
	}
	s.kept.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.running {
		cancel()
	}
}

// find returns the session of a request; nil when the SDK would not let the request into it.
func (k *httpSessions) find(r *http.Request) *httpSession {
	if s := k.get(r, true); s != nil {
		return s
	}
	if !k.touch(r) {
		return nil
	}
	return k.get(r, true)
}

// get returns the session of a request as far as it is known, and of its user; with current
// only one that the SDK need not be asked about.
func (k *httpSessions) get(r *http.Request, current bool) *httpSession {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.all[r.Header.Get(headerSession)]
	if s == nil || s.leaving || s.user != userOf(auth.TokenInfoFromContext(r.Context())) {
		return nil
	}
	if current && (s.version != r.Header.Get(headerVersion) || time.Since(s.seen) > k.fresh) {
		return nil
	}
	return s
}

// touch pings in the place of a request's client, which keeps the session alive.
func (k *httpSessions) touch(r *http.Request) bool {
	ping := r.Clone(context.WithoutCancel(r.Context()))
	ping.Method = http.MethodPost
	ping.Header.Del(headerEvent)
	ping.Header.Set("Content-Type", "application/json")
	ping.Header.Set("Accept", "application/json, text/event-stream")
	ping.Header.Set(headerTouch, "1")
	body := `{"jsonrpc":"2.0","id":"` + askPrefix + `ping","method":"` + methodPing + `"}`
	ping.Body, ping.ContentLength = io.NopCloser(strings.NewReader(body)), int64(len(body))
	answer := &unread{header: http.Header{}, status: http.StatusOK}
	k.sdk.ServeHTTP(answer, ping)
	return answer.status == http.StatusOK
}

// isTouch reports whether a request is one of touch.
func isTouch(method string, req sdk.Request) bool {
	extra := req.GetExtra()
	return method == methodPing && extra != nil && extra.Header.Get(headerTouch) != ""
}

// unread is where an answer goes of which the status alone matters.
type unread struct {
	header http.Header
	status int
}

func (u *unread) Header() http.Header         { return u.header }
func (u *unread) Write(p []byte) (int, error) { return len(p), nil }
func (u *unread) WriteHeader(status int)      { u.status = status }
func (u *unread) Flush()                      {}

// keep keeps the session of a call alive until stop is called.
func (k *httpSessions) keep(r *http.Request) (stop func()) {
	var mu sync.Mutex
	off := false
	var t *time.Timer
	mu.Lock()
	defer mu.Unlock()
	t = time.AfterFunc(k.fresh, func() {
		mu.Lock()
		defer mu.Unlock()
		if !off {
			k.touch(r)
			t.Reset(k.fresh)
		}
	})
	return func() {
		t.Stop()
		mu.Lock() // until a touch has ended
		defer mu.Unlock()
		off = true
	}
}

// begin enters a call until end; false when one of this id runs.
func (s *httpSession) begin(id json.RawMessage, cancel context.CancelFunc) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running[string(id)] != nil {
		return false
	}
	s.running[string(id)] = cancel
	return true
}

func (s *httpSession) end(id json.RawMessage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.running, string(id))
}

// expect returns the id for a request to the client and where its answer comes, until forget
// is called.
func (s *httpSession) expect() (id string, answer <-chan clientAnswer, forget func()) {
	c := make(chan clientAnswer, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	id = askPrefix + strconv.Itoa(s.asks)
	s.asked[id] = c
	return id, c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.asked, id)
	}
}

// take looks at a message that is not a call: it hands over what a client answers, and cancels
// the call that a client cancels. True says that nobody else needs the message.
func (k *httpSessions) take(r *http.Request, body []byte) bool {
	if !bytes.Contains(body, []byte(askPrefix)) && !bytes.Contains(body, []byte(methodCancelled)) {
		return false
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
		Error  *jsonrpc.Error  `json:"error"`
		Params struct {
			ID json.RawMessage `json:"requestId"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil {
		return false
	}
	s := k.get(r, false)
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case m.Method == methodCancelled:
		if cancel := s.running[string(m.Params.ID)]; cancel != nil {
			cancel()
		}
	case m.Method == "" && (m.Result != nil) != (m.Error != nil):
		var id string
		if json.Unmarshal(m.ID, &id) == nil && s.asked[id] != nil {
			s.asked[id] <- clientAnswer{m.Result, m.Error}
			delete(s.asked, id)
			return true
		}
	}
	return false
}
