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

// Kind determines which quota a request counts toward.
type Kind int

const (
	// KindRequest is answered soon and counts toward Limits.MaxRequests.
	KindRequest Kind = iota
	// KindCall counts toward Limits.MaxRequests while it is being read. Its handler then applies
	// [Admission.Calls] or [Admission.Requests].
	KindCall
	// KindStream stays open and counts toward Limits.MaxStreams.
	KindStream
	// KindProbe is a request of a monitoring system that is answered from memory. It has no rate limit.
	KindProbe
)

// Caller identifies the sender toward whose limits a request counts.
type Caller struct {
	// Name is the principal whose part of each quota applies. With "" the whole quota applies.
	Name string
	// Rate is the key for the rate limit. With "" no rate limit applies.
	Rate string
	// Stranger means that the sender of the request is not verified. Strangers get only a few concurrent
	// requests, counted by address, and use no places that others need.
	Stranger bool
}

// Principal returns a caller with a verified name.
func Principal(name string) Caller { return Caller{Name: name, Rate: "principal " + name} }

// Anonymous returns a caller for a server without authentication.
func Anonymous(r *http.Request) Caller { return Caller{Rate: "address " + address(r)} }

// Stranger returns a caller that has not authenticated.
func Stranger(r *http.Request) Caller {
	at := "address " + address(r)
	return Caller{Name: at, Rate: at, Stranger: true}
}

// Entry is a route's decision about a request, made from its headers before its body is read.
type Entry struct {
	Caller
	// Header is set on every response, including refusals.
	Header http.Header
	// Early means that Answer needs no body, for example to reject the request. Such a request counts only
	// toward the rate of its caller.
	Early bool
	// Answer answers the request once it is admitted. It gets the body with [BodyOf].
	Answer http.HandlerFunc
}

// Route is one entrance of a server.
type Route struct {
	// Pattern is a pattern of [http.ServeMux]. Required.
	Pattern string
	// Enter identifies the sender of a request and returns its handler. Required.
	Enter func(*http.Request) Entry
	// Kind returns the kind of a request. Default: [KindRequest].
	Kind func(*http.Request) Kind
	// MaxBody is the maximum size of the body in bytes. Default: Limits.MaxBody, or 0 with the method GET.
	MaxBody int64
	// Unbuffered leaves the body to Answer, which must read it within its size and time limits without keeping
	// it.
	Unbuffered bool
	// Refuse answers a request that is not admitted, after its headers are set. Default: a plain text response.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, text string)
}

// Of returns a function for Route.Kind that gives all requests the same kind.
func Of(k Kind) func(*http.Request) Kind { return func(*http.Request) Kind { return k } }

// TurnAway returns an entry that answers a request with a status and a text.
func TurnAway(c Caller, status int, text string) Entry {
	return Entry{Caller: c, Early: true, Answer: func(w http.ResponseWriter, _ *http.Request) { http.Error(w, text, status) }}
}

// Open returns a function for Route.Enter of a route that anyone may use.
func Open(h http.Handler) func(*http.Request) Entry {
	return func(r *http.Request) Entry { return Entry{Caller: Stranger(r), Answer: h.ServeHTTP} }
}

// Routes is the handler for all entrances of a server. It admits or refuses each request, including
// requests that match no route. Create it with [Admission.Routes].
type Routes struct {
	admission *Admission
	mux       *http.ServeMux
	patterns  []string
}

// Routes returns the handler for the given routes. It panics if two patterns conflict, as [http.ServeMux]
// does.
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
		w.Header().Set("Connection", "close") // so that the client's next request can reach another server
	}
	h, _ := s.mux.Handler(r)
	if _, ours := h.(*admitted); ours {
		s.mux.ServeHTTP(w, r) // sets the path values
		return
	}
	other := &admitted{s.admission, Route{Enter: func(r *http.Request) Entry { // the mux answers: 404, 405, redirect
		return Entry{Caller: Stranger(r), Early: true, Answer: h.ServeHTTP}
	}}}
	other.ServeHTTP(w, r)
}

// admitted is a route that admits requests before it answers them.
type admitted struct {
	*Admission
	Route
}

func (t *admitted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	out := &patientWriter{ResponseWriter: w, control: http.NewResponseController(w)}
	if r.Body != nil && r.Body != http.NoBody {
		_ = out.control.SetReadDeadline(time.Now().Add(bodyTimeout)) // not every connection supports deadlines
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
			t.refuse(out, r, http.StatusTooManyRequests, "too many requests: try again later")
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

// answer admits and answers a request that is within its rate. The error is the reason for a refusal.
func (t *admitted) answer(w *patientWriter, r *http.Request, in Entry, kind Kind) error {
	if kind != KindStream && kind != KindProbe {
		if !t.Calls.Enter() {
			return ErrStopping
		}
		defer t.Calls.Leave()
	}
	var before, after *Quota // quotas to take before and after the body is read
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

// count counts one request toward the rate of its caller and returns how long the caller must wait, or 0.
func (r *rates) count(ctx context.Context, c Caller) (time.Duration, error) {
	switch {
	case c.Rate == "":
		return 0, nil
	case c.Stranger:
		return r.take(c.Rate), nil
	}
	return r.takeShared(ctx, c.Rate)
}

// address returns the address of a request's sender. It returns the network of an IPv6 address, because one
// sender usually has a whole network.
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

// writeTimeout is how long a client may take to accept one piece of a response.
const writeTimeout = 30 * time.Second

// patientWriter limits the time that a client may take to accept each piece of a response. A stream without
// data has no limit.
type patientWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (w *patientWriter) Write(p []byte) (int, error) {
	defer w.within()()
	return w.ResponseWriter.Write(p)
}

// FlushError implements the interface that http.ResponseController uses.
func (w *patientWriter) FlushError() error {
	defer w.within()()
	return w.control.Flush()
}

// Flush implements http.Flusher.
func (w *patientWriter) Flush() { _ = w.FlushError() }

func (w *patientWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *patientWriter) within() func() {
	_ = w.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every connection supports deadlines
	return func() { _ = w.control.SetWriteDeadline(time.Time{}) }
}
