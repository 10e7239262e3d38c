package admission

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"toolctl.dev/toolctl/internal/budget"
)

// Kind is which limits on their number requests are held to.
type Kind int

const (
	// KindRequest is answered soon: it is one of Limits.MaxRequests.
	KindRequest Kind = iota
	// KindCall is one of Limits.MaxRequests while it is being read. What it does then is held to
	// [Admission.Calls] or [Admission.Requests] by its handler.
	KindCall
	// KindStream lasts: it is one of Limits.MaxStreams.
	KindStream
	// KindProbe is answered from memory, to machines that watch the server; no rate bounds it.
	KindProbe
)

// Caller is whom a request is counted for.
type Caller struct {
	// Name is the principal that has a part of each quota; "" has all of it.
	Name string
	// Rate is the key whose rate counts the request; "" is not counted.
	Rate string
	// Stranger says that nobody has verified who sends the request. Strangers have few requests at once, by
	// their addresses, and take nothing that others need.
	Stranger bool
}

// Principal is a caller whose name was verified.
func Principal(name string) Caller { return Caller{Name: name, Rate: "principal " + name} }

// Anonymous is a caller of a server that authenticates nobody.
func Anonymous(r *http.Request) Caller { return Caller{Rate: "address " + address(r)} }

// Stranger is a caller that has not shown who it is.
func Stranger(r *http.Request) Caller {
	at := "address " + address(r)
	return Caller{Name: at, Rate: at, Stranger: true}
}

// Entry is what a route makes of the headers of a request, before anything of its body is read.
type Entry struct {
	Caller
	// Header is set on every answer, a refusal too.
	Header http.Header
	// Early says that Answer needs no body, such as one that turns the request away: the request only counts
	// in the rate of its caller.
	Early bool
	// Answer answers the request once it is admitted. It finds the body with [BodyOf].
	Answer http.HandlerFunc
}

// Route is one entrance of a server.
type Route struct {
	// Pattern is one of [http.ServeMux]. Required.
	Pattern string
	// Enter says who sends a request, and what answers it. Required.
	Enter func(*http.Request) Entry
	// Kind is the kind of a request. Default: each is a [KindRequest].
	Kind func(*http.Request) Kind
	// MaxBody is the largest body in bytes. Default: Limits.MaxBody, and none with the method GET.
	MaxBody int64
	// Unbuffered leaves the body to Answer, which reads it within its size and time and keeps nothing of it.
	Unbuffered bool
	// Refuse answers a request that is not admitted; its headers are set. Default: the text.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, text string)
}

// Of is for Route.Kind of a route whose requests are all of one kind.
func Of(k Kind) func(*http.Request) Kind { return func(*http.Request) Kind { return k } }

// TurnAway is an entry that answers a request with a text.
func TurnAway(c Caller, status int, text string) Entry {
	return Entry{Caller: c, Early: true, Answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, status) }}
}

// Open is for Route.Enter of a route that anyone may use.
func Open(h http.Handler) func(*http.Request) Entry {
	return func(r *http.Request) Entry { return Entry{Caller: Stranger(r), Answer: h.ServeHTTP} }
}

// Routes is a handler of all entrances of a server: it admits each request or refuses it, those that no
// route has too. Make it with [Admission.Routes].
type Routes struct {
	admission *Admission
	mux       *http.ServeMux
	patterns  []string
}

// Routes returns the handler of these routes. It panics when two patterns contradict each other, as
// [http.ServeMux] does.
func (a *Admission) Routes(all ...Route) *Routes {
	s := &Routes{admission: a, mux: http.NewServeMux()}
	for _, route := range all {
		s.mux.Handle(route.Pattern, &admitted{a, route})
		s.patterns = append(s.patterns, route.Pattern)
	}
	return s
}

// Patterns returns the patterns of all routes.
func (s *Routes) Patterns() []string { return s.patterns }

func (s *Routes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.admission.Calls.Leaving() {
		w.Header().Set("Connection", "close") // its next request finds another server, or none
	}
	h, _ := s.mux.Handler(r)
	if _, ours := h.(*admitted); ours {
		s.mux.ServeHTTP(w, r) // which sets the values of the path
		return
	}
	other := &admitted{s.admission, Route{Enter: func(r *http.Request) Entry { // an answer of the mux: 404, 405 or another path
		return Entry{Caller: Stranger(r), Early: true, Answer: h.ServeHTTP}
	}}}
	other.ServeHTTP(w, r)
}

// admitted is a route whose requests are admitted first.
type admitted struct {
	*Admission
	Route
}

func (t *admitted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	if r.Body != nil && r.Body != http.NoBody {
		_ = out.control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every connection has deadlines
	}
	in := t.Enter(r)
	maps.Copy(out.Header(), in.Header)
	kind := KindRequest
	if t.Kind != nil {
		kind = t.Kind(r)
	}
	if kind != KindProbe {
		wait, err := t.rates.count(r.Context(), in.Caller)
		if err != nil {
			out.Header().Set("Retry-After", "1")
			t.refuse(out, r, http.StatusServiceUnavailable, "requests cannot be counted toward the rate limit: "+err.Error())
			return
		}
		if wait > 0 {
			t.count(reasonRate)
			out.Header().Set("Retry-After", fmt.Sprint(int((wait+time.Second-1)/time.Second)))
			t.refuse(out, r, http.StatusTooManyRequests, "too many requests: come back later")
			return
		}
	}
	if in.Early {
		in.Answer(out, r)
		return
	}
	if err := t.answer(out, r, in, kind); err != nil {
		status, text, reason := explained(err)
		if reason != "" {
			t.count(reason)
		}
		if status == http.StatusServiceUnavailable {
			out.Header().Set("Retry-After", "1")
		}
		t.refuse(out, r, status, text)
	}
}

// answer admits a request whose rate allows it. An error says why it did not.
func (t *admitted) answer(w *patientWriter, r *http.Request, in Entry, kind Kind) error {
	if kind != KindStream && kind != KindProbe {
		if !t.Calls.Enter() {
			return ErrStopping
		}
		defer t.Calls.Leave()
	}
	var before, after *Quota // the body was read
	switch {
	case kind == KindProbe:
		before = t.probes
	case in.Stranger:
		before = t.strangers
	case kind == KindStream:
		before = t.Streams
	case kind == KindRequest:
		after = t.Requests
	}
	if before != nil {
		if err := before.Take(in.Name); err != nil {
			return err
		}
		defer before.Give(in.Name)
	}
	if kind != KindStream && kind != KindProbe {
		t.throttle.wait(r.Context(), in.Name, 0, t.Calls.Running.Full(in.Name))
	}
	if r.Body != nil && r.Body != http.NoBody {
		most := t.MaxBody
		if most == 0 && !strings.HasPrefix(t.Pattern, http.MethodGet+" ") {
			most = t.limits.MaxBody
		}
		if t.Unbuffered {
			r.Body = http.MaxBytesReader(w, r.Body, most)
		} else {
			body, err := t.receive(w, r, in.Caller, most)
			if err != nil {
				return err
			}
			defer func() { body.Memory().Release() }()
			_ = w.control.SetReadDeadline(time.Time{})
			r = r.WithContext(budget.With(r.Context(), body.share))
			r.Body = body
		}
	}
	if after != nil {
		if err := after.Take(in.Name); err != nil {
			return err
		}
		defer after.Give(in.Name)
	}
	in.Answer(w, r)
	return nil
}

func (t *admitted) refuse(w http.ResponseWriter, r *http.Request, status int, text string) {
	if t.Refuse != nil {
		t.Refuse(w, r, status, text)
		return
	}
	http.Error(w, text, status)
}

// count counts one request in the rate of its caller and returns how long it must wait; 0 when it may go on.
func (r *rates) count(ctx context.Context, c Caller) (time.Duration, error) {
	switch {
	case c.Rate == "":
		return 0, nil
	case c.Stranger:
		return r.take(c.Rate), nil
	}
	return r.takeShared(ctx, c.Rate)
}

// address is where a request came from. Of an IPv6 address one party has a whole
// network, so these count as one.
func address(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	const network = 64
	if ip = ip.Unmap(); ip.Is6() {
		if p, err := ip.WithZone("").Prefix(network); err == nil {
			return p.String()
		}
	}
	return ip.String()
}

// writeTimeout is how long a client may take to accept one piece of an answer.
const writeTimeout = 30 * time.Second

// patientWriter gives a client a bounded time to take each piece of an answer. A
// stream may be silent for as long as it likes.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *patientWriter) Write(p []byte) (int, error) {
	defer w.within()()
	return w.ResponseWriter.Write(p)
}

// FlushError is what http.ResponseController calls.
func (w *patientWriter) FlushError() error {
	defer w.within()()
	return w.control.Flush()
}

// Flush is for writers that ask for an http.Flusher.
func (w *patientWriter) Flush() { _ = w.FlushError() }

func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) within() func() {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every connection has deadlines
	return func() { _ = w.control.SetWriteDeadline(time.Time{}) }
}
