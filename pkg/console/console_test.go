package console

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestHTMX checks that the file is the unchanged htmx 4.0.1 from the npm registry.
func TestHTMX(t *testing.T) {
	raw, err := os.ReadFile("static/htmx.min.js")
	if err != nil {
		t.Fatal(err)
	}
	const want = "a0abb04f2f45a1f89d1d4844023245537e5e6014c87b144553e0607b4cc32130"
	if sum := sha256.Sum256(raw); hex.EncodeToString(sum[:]) != want {
		t.Errorf("static/htmx.min.js has the SHA-256 %x, want %s", sum, want)
	}
}

func TestOpenAPIIsComplete(t *testing.T) {
	raw, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct{ Paths map[string]map[string]any }
	if err := json.Unmarshal(raw, &doc); err != nil {
		t.Fatal(err)
	}
	routes := 0
	for _, route := range New(Options{}).apiTable() {
		method, path, found := strings.Cut(route.pattern, " /api")
		if !found {
			continue
		}
		routes++
		if doc.Paths[path][strings.ToLower(method)] == nil {
			t.Errorf("openapi.json has no %s %s", method, path)
		}
	}
	if routes < 10 {
		t.Errorf("%d routes", routes)
	}
}

func TestSessions(t *testing.T) {
	now := time.Now()
	s := newSessions(func() time.Time { return now })
	link := s.link()
	if !s.redeem(link) || s.redeem(link) || s.redeem("") {
		t.Error("a link works once")
	}
	late := s.link()
	now = now.Add(linkTime)
	if s.redeem(late) {
		t.Error("a link works for an hour")
	}
	secret := s.begin(person{name: "ann"}, server.Caller{Expires: now.Add(time.Hour)})
	if p, ok := s.of(secret); !ok || p.name != "ann" {
		t.Errorf("%+v %t", p, ok)
	}
	now = now.Add(time.Hour)
	if _, ok := s.of(secret); ok {
		t.Error("the session outlives its token")
	}
	idle := s.begin(person{name: "ann"}, server.Caller{})
	now = now.Add(sessionIdle + 1)
	if _, ok := s.of(idle); ok {
		t.Error("the session outlives its idleness")
	}
	first := s.begin(person{name: "first"}, server.Caller{})
	now = now.Add(time.Second)
	for range maxSessions {
		s.begin(person{}, server.Caller{})
	}
	if _, ok := s.of(first); ok || len(s.all) > maxSessions {
		t.Errorf("%d sessions", len(s.all))
	}
}

func TestSafeNext(t *testing.T) {
	for next, want := range map[string]bool{
		"approvals": true, "tools/default/pay/try": true, "": false, "//evil.example": false, "https:evil": false, "../x": false, `\evil`: false, "a\nb": false,
	} {
		if safeNext(next) != want {
			t.Errorf("%q: %t", next, !want)
		}
	}
}

// TestFeedNeverWaits checks that no call waits for a page, and that excess events are dropped.
func TestFeedNeverWaits(t *testing.T) {
	f := newFeed(time.Now)
	for i := range maxInbox + 10 {
		f.called(registry.CallEvent{AuditRecord: v1.AuditRecord{CallID: fmt.Sprint(i), Tool: "t", Namespace: "default", Status: v1.StatusComplete, Time: time.Now()}})
	}
	if n := f.dropped.Load(); n != 10 {
		t.Errorf("%d dropped", n)
	}
	w, stop, err := f.watch("")
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); f.run(ctx) }()
	for { // until the last event arrives; meanwhile the page reads nothing
		if last, _ := f.last(1, func(*event) bool { return true }); len(last) == 1 && last[0].CallID == fmt.Sprint(maxInbox-1) {
			break
		}
	}
	cancel()
	<-done
	if shown, all := f.last(10, func(*event) bool { return true }); len(shown) != 10 || all != maxEvents {
		t.Errorf("%d of %d events are remembered", len(shown), all)
	}
	if len(w.events) != maxBehind {
		t.Errorf("%d events wait for the page", len(w.events))
	}
	if hour, day := f.charts("default", "t"); hour == nil || day == nil || day.Calls != maxInbox {
		t.Errorf("charts %+v %+v", hour, day)
	}
}

func pendingCall() v1.PendingCall {
	now := time.Now()
	return v1.PendingCall{ID: "abc", State: v1.ApprovalPending, Tool: "pay", Namespace: "default", Policy: "careful", Rule: "require_approval", Principal: "<bob>", Args: json.RawMessage(`{"amount":5,"card":"[REDACTED]"}`), Created: now, Expires: now.Add(time.Hour)}
}

func TestWebhook(t *testing.T) {
	type got struct {
		header http.Header
		body   string
	}
	for _, format := range []string{FormatJSON, FormatSlack} {
		t.Run(format, func(t *testing.T) {
			posts := make(chan got, 4)
			tries := 0
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if tries++; tries == 1 {
					w.WriteHeader(http.StatusServiceUnavailable)
					return
				}
				posts <- got{r.Header, string(body)}
			}))
			defer server.Close()
			secret := []byte("0123456789abcdef")
			s := newSender(Webhook{URL: server.URL, Secret: secret, Format: format}, func(page string) string { return "https://tools.example.com/ui/" + page }, slog.New(slog.DiscardHandler))
			s.client.RetryWaitMin = time.Millisecond
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); s.run(ctx) }()
			s.send(pendingCall())
			p := <-posts
			cancel()
			<-done
			mac := hmac.New(sha256.New, secret)
			fmt.Fprintf(mac, "%s.%s.%s", p.header.Get("webhook-id"), p.header.Get("webhook-timestamp"), p.body)
			if want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil)); p.header.Get("webhook-signature") != want || p.header.Get("webhook-id") != "approval_abc" {
				t.Errorf("headers %v", p.header)
			}
			if !json.Valid([]byte(p.body)) || !strings.Contains(p.body, "https://tools.example.com/ui/approvals/abc") || !strings.Contains(p.body, "amount") {
				t.Errorf("body %s", p.body)
			}
			if format == FormatSlack && (strings.Contains(p.body, "<bob>") || !strings.Contains(p.body, `"blocks"`)) {
				t.Errorf("body %s", p.body)
			}
		})
	}
}

// TestSessionsOfOnePrincipal checks that repeated sign-ins end only sessions of the same principal.
func TestSessionsOfOnePrincipal(t *testing.T) {
	now := time.Now()
	s := newSessions(func() time.Time { now = now.Add(time.Millisecond); return now })
	other := s.begin(person{principal: "ann"}, server.Caller{})
	var own []string
	for range maxSessions + 5 {
		own = append(own, s.begin(person{principal: "bob"}, server.Caller{}))
	}
	if _, ok := s.of(other); !ok {
		t.Error("the session of another principal has ended")
	}
	if _, ok := s.of(own[len(own)-maxOwnSessions]); !ok || len(s.all) != maxOwnSessions+1 {
		t.Errorf("%d sessions, of which the newest of its principal are %t", len(s.all), ok)
	}
	if _, ok := s.of(own[len(own)-maxOwnSessions-1]); ok {
		t.Error("the oldest session of its principal goes on")
	}
	// If there are too many sessions in total, the principal with the most sessions loses one.
	for i := len(s.all); i < maxSessions+5; i++ {
		s.begin(person{principal: fmt.Sprint("p", i)}, server.Caller{})
	}
	if _, ok := s.of(other); !ok || len(s.all) != maxSessions {
		t.Errorf("%d sessions; the one of another principal is there: %t", len(s.all), ok)
	}
}
