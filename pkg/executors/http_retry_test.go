package executors

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/netaddr"
)

var yes = true

// quick sets minimal waits between retries.
func quick(spec v1.HTTPSpec) v1.HTTPSpec {
	if spec.Retry == nil {
		spec.Retry = &v1.HTTPRetry{}
	}
	spec.Retry.InitialDelayMS, spec.Retry.MaxDelayMS = 1, 2
	return spec
}

// serve starts a server that calls f for its n-th request, from 1.
func serve(t testing.TB, f func(n int, w http.ResponseWriter, r *http.Request)) (*httptest.Server, *atomic.Int32) {
	var n atomic.Int32
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { f(int(n.Add(1)), w, r) }))
	t.Cleanup(srv.Close)
	return srv, &n
}

// reset ends a connection with RST, in the middle of the response.
func reset(t testing.TB, w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Errorf("hijack: %v", err)
		return
	}
	conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}

func TestHTTPRetries(t *testing.T) {
	statuses := func(codes ...int) func(*testing.T, int, http.ResponseWriter, *http.Request) {
		return func(_ *testing.T, n int, w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(codes[min(n, len(codes))-1])
			io.WriteString(w, `{"n":`+fmt.Sprint(n)+`}`)
		}
	}
	tests := []struct {
		name     string
		spec     v1.HTTPSpec
		hints    *v1.Hints
		serve    func(*testing.T, int, http.ResponseWriter, *http.Request)
		attempts int
		want     string // content, or a part of the error
		phase    string // phase of the error
	}{
		{"429, 503 then 200", v1.HTTPSpec{Method: "GET"}, nil, statuses(429, 503, 200), 3, `{"n":3}`, ""},
		{"PUT", v1.HTTPSpec{Method: "PUT"}, nil, statuses(500, 200), 2, `{"n":2}`, ""},
		{"DELETE", v1.HTTPSpec{Method: "DELETE"}, nil, statuses(502, 200), 2, `{"n":2}`, ""},
		{"POST is not tried again", v1.HTTPSpec{}, nil, statuses(503, 200), 1, `HTTP 503 Service Unavailable: {"n":1} (POST http://`, v1.PhaseExecute},
		{"PATCH is not tried again", v1.HTTPSpec{Method: "PATCH"}, nil, statuses(429, 200), 1, `HTTP 429 Too Many Requests`, v1.PhaseExecute},
		{"POST with hints.idempotent", v1.HTTPSpec{}, &v1.Hints{Idempotent: &yes}, statuses(504, 200), 2, `{"n":2}`, ""},
		{"POST with hints.read_only", v1.HTTPSpec{}, &v1.Hints{ReadOnly: &yes}, statuses(429, 200), 2, `{"n":2}`, ""},
		{"404 is final", v1.HTTPSpec{Method: "GET"}, nil, statuses(404, 200), 1, `HTTP 404 Not Found`, v1.PhaseExecute},
		{"all attempts fail", v1.HTTPSpec{Method: "GET"}, nil, statuses(500), 3, `HTTP 500 Internal Server Error: {"n":3} (GET http://`, v1.PhaseExecute},
		{"max_attempts", v1.HTTPSpec{Method: "GET", Retry: &v1.HTTPRetry{MaxAttempts: 5}}, nil, statuses(500, 500, 500, 500, 200), 5, `{"n":5}`, ""},
		{"one attempt", v1.HTTPSpec{Method: "GET", Retry: &v1.HTTPRetry{MaxAttempts: 1}}, nil, statuses(503, 200), 1, `HTTP 503`, v1.PhaseExecute},
		{"retry_on", v1.HTTPSpec{Method: "GET", Retry: &v1.HTTPRetry{RetryOn: []int{418}}}, nil, statuses(418, 503, 200), 2, `HTTP 503`, v1.PhaseExecute},
		{"a reset", v1.HTTPSpec{Method: "GET"}, nil, func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) {
			if n == 1 {
				reset(t, w)
				return
			}
			io.WriteString(w, `[1]`)
		}, 2, `[1]`, ""},
		{"a reset of POST", v1.HTTPSpec{}, nil, func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) { reset(t, w) }, 1, ``, v1.PhaseExecute},
		{"a body that breaks off", v1.HTTPSpec{Method: "GET"}, nil, func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `[1,`)
			if n < 3 {
				http.NewResponseController(w).Flush()
				reset(t, w)
				return
			}
			io.WriteString(w, `2]`)
		}, 3, `[1,2]`, ""},
		{"a chunked body of POST that breaks off", v1.HTTPSpec{}, nil, func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `{"result": "half`)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, 1, `unexpected EOF`, v1.PhaseExecute},
		{"a body that is shorter than it says", v1.HTTPSpec{}, nil, func(t *testing.T, n int, w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000000000")
			io.WriteString(w, `{`)
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, 1, `larger than`, v1.PhaseValidate},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv, n := serve(t, func(n int, w http.ResponseWriter, r *http.Request) { tt.serve(t, n, w, r) })
			spec := quick(tt.spec)
			spec.URL = srv.URL
			tool := httpToolOf(spec)
			tool.Spec.Hints = tt.hints
			res, err := newTestHTTP(t, nil).Execute(t.Context(), tool, nil)
			if res.Attempts != tt.attempts || int(n.Load()) != tt.attempts {
				t.Errorf("got %d attempts and %d requests, want %d", res.Attempts, n.Load(), tt.attempts)
			}
			if tt.phase == "" {
				if err != nil || string(res.Content) != tt.want {
					t.Errorf("got %s, %v, want %s", res.Content, err, tt.want)
				}
				return
			}
			var failed *v1.ExecutionError
			if !errors.As(err, &failed) || failed.Phase != tt.phase || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error of phase %s with %s", err, tt.phase, tt.want)
			}
			if strings.HasPrefix(tt.want, "HTTP") && res.Status != v1.StatusFailed {
				t.Errorf("got the status %q, want failed", res.Status)
			}
			if tt.attempts > 1 && !strings.HasSuffix(err.Error(), fmt.Sprintf("(%d attempts)", tt.attempts)) {
				t.Errorf("the error does not count the attempts: %v", err)
			}
		})
	}
}

// TestHTTPConnectErrorsAreTriedAgain dials a port on which nobody listens. Nothing was sent, so even POST may be
// retried.
func TestHTTPConnectErrorsAreTriedAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	res, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(quick(v1.HTTPSpec{URL: "http://" + l.Addr().String() + "/x"})), nil)
	var failed *v1.ExecutionError
	if !errors.As(err, &failed) || failed.Phase != v1.PhaseConnect || res.Attempts != 3 {
		t.Fatalf("got %v after %d attempts, want an error of phase connect after 3", err, res.Attempts)
	}
	want := fmt.Sprintf(`tool "api": cannot connect for POST http://%s/x: dial tcp %[1]s: connect: connection refused (3 attempts)`, l.Addr())
	if err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestHTTPObeysRetryAfter(t *testing.T) {
	var first, second time.Time
	srv, _ := serve(t, func(n int, w http.ResponseWriter, _ *http.Request) {
		if n == 1 {
			first = time.Now()
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			return
		}
		second = time.Now()
	})
	spec := quick(v1.HTTPSpec{URL: srv.URL, Method: "GET"}) // its own waits are at most 2 ms
	if _, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(spec), nil); err != nil {
		t.Fatal(err)
	}
	if wait := second.Sub(first); wait < 900*time.Millisecond {
		t.Errorf("the second attempt came after %s, want 1s", wait)
	}
}

func TestHTTPDoesNotWaitPastTheDeadline(t *testing.T) {
	srv, n := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3600")
		http.Error(w, "come later", http.StatusTooManyRequests)
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	start := time.Now()
	res, err := newTestHTTP(t, nil).Execute(ctx, httpToolOf(v1.HTTPSpec{URL: srv.URL, Method: "GET"}), nil)
	if err == nil || !strings.Contains(err.Error(), "HTTP 429 Too Many Requests: come later") || !strings.Contains(err.Error(), "the next attempt would start in 1h, after the deadline of the call") {
		t.Errorf("got %v", err)
	}
	if time.Since(start) > 30*time.Second || n.Load() != 1 || res.Attempts != 1 || res.Status != v1.StatusFailed {
		t.Errorf("took %s, %d requests, %+v", time.Since(start), n.Load(), res)
	}
}

func TestHTTPBackoff(t *testing.T) {
	c := &httpCall{p: &httpTool{delay: 100 * time.Millisecond, maxDelay: time.Second}}
	for attempt, most := range []time.Duration{100, 200, 400, 800, 1000, 1000, 1000} {
		c.attempts = attempt + 1
		most *= time.Millisecond
		for range 100 {
			if d := c.backoff(); d > most || d < most/2 {
				t.Fatalf("attempt %d waits %s, want %s to %s", c.attempts, d, most/2, most)
			}
		}
	}
	c.attempts, c.p.delay, c.p.maxDelay = 100, time.Hour, 100*365*24*time.Hour
	if d := c.backoff(); d <= 0 {
		t.Errorf("the wait overflows: %s", d)
	}
}

func TestHTTPTimeouts(t *testing.T) {
	release := make(chan struct{})
	srv, n := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" { // the headers come at once, the body never ends
			io.WriteString(w, `{"half":`)
			http.NewResponseController(w).Flush()
		}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	tests := []struct {
		name     string
		spec     v1.HTTPSpec
		ctx      time.Duration
		attempts int
		want     string
	}{
		{"of an attempt, waiting for headers", v1.HTTPSpec{URL: "/x", TimeoutMS: 30}, 0, 1, "no complete response within 30ms (spec.http.timeout_ms)"},
		{"of an attempt, waiting for the body", v1.HTTPSpec{URL: "/body", TimeoutMS: 30}, 0, 1, "no complete response within 30ms (spec.http.timeout_ms)"},
		{"of an attempt that is tried again", v1.HTTPSpec{URL: "/body", Method: "GET", TimeoutMS: 30}, 0, 3, "no complete response within 30ms (spec.http.timeout_ms) (3 attempts)"},
		{"of the call", v1.HTTPSpec{URL: "/x"}, 30 * time.Millisecond, 1, "/x: timed out"},
		{"of the call, waiting for the body", v1.HTTPSpec{URL: "/body", Method: "GET"}, 30 * time.Millisecond, 1, "/body: timed out"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			n.Store(0)
			ctx := t.Context()
			if tt.ctx > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tt.ctx)
				defer cancel()
			}
			spec := quick(tt.spec)
			spec.URL = srv.URL + spec.URL
			res, err := newTestHTTP(t, nil).Execute(ctx, httpToolOf(spec), nil)
			var failed *v1.ExecutionError
			if !errors.As(err, &failed) || failed.Phase != v1.PhaseTimeout || !errors.Is(err, context.DeadlineExceeded) || !strings.HasSuffix(err.Error(), tt.want) {
				t.Errorf("got %v, want an error of phase timeout that ends in %s", err, tt.want)
			}
			if res.Attempts != tt.attempts {
				t.Errorf("got %d attempts, want %d", res.Attempts, tt.attempts)
			}
		})
	}
}

func TestHTTPCancel(t *testing.T) {
	for _, path := range []string{"/headers", "/body", "/wait"} {
		t.Run(path, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan struct{})
			srv, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/wait": // the call ends between two attempts
					w.WriteHeader(503)
					context.AfterFunc(r.Context(), cancel)
					return
				case "/body":
					io.WriteString(w, `{"half":`)
					http.NewResponseController(w).Flush()
				}
				cancel()
				<-r.Context().Done() // the server notices that the client has gone
				close(gone)
			})
			spec := v1.HTTPSpec{URL: srv.URL + path, Method: "GET", Retry: &v1.HTTPRetry{InitialDelayMS: 3600_000, MaxDelayMS: 3600_000}}
			_, err := newTestHTTP(t, nil).Execute(ctx, httpToolOf(spec), nil)
			var failed *v1.ExecutionError
			if !errors.As(err, &failed) || !errors.Is(err, context.Canceled) || v1.NewResultError(err).Type != v1.TypeCancelled {
				t.Errorf("got %v, want the error of the context in an ExecutionError", err)
			}
			if path != "/wait" {
				<-gone
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newTestHTTP(t, nil).Execute(ctx, httpToolOf(v1.HTTPSpec{URL: "http://127.0.0.1:1"}), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a call that was cancelled before it began: %v", err)
	}
}

func TestHTTPRedirects(t *testing.T) {
	var other seen
	foreign := echo(t, &other, `{"at":"other"}`)
	foreignHost := strings.TrimPrefix(foreign.URL, "http://")
	var home *httptest.Server
	var last seen
	home, _ = serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		to := map[string]string{
			"/same": "/end", "/same307": "/end", "/foreign": foreign.URL + "/f", "/foreign307": foreign.URL + "/f", "/there-and-back": foreign.URL + "/back",
			"/loop": "/loop", "/ftp": "ftp://x/", "/private": "http://169.254.169.254/latest/meta-data", "/nowhere": "",
		}
		if target, ok := to[r.URL.Path]; ok {
			code := 302
			if strings.HasSuffix(r.URL.Path, "307") {
				code = 307
			}
			w.Header().Set("Location", target)
			w.WriteHeader(code)
			return
		}
		b, _ := io.ReadAll(r.Body)
		last = seen{r.Method, r.URL.Path, r.URL.RawQuery, string(b), r.Header.Clone()}
		io.WriteString(w, `{"at":"home"}`)
	})
	allow := []string{foreignHost}
	tests := []struct {
		name, path string
		allow      []string
		static     map[string]json.RawMessage
		private    bool // private addresses are refused
		want       string
		wantErr    string
		wantBody   string
	}{
		{name: "on the same host", path: "/same", want: `{"at":"home"}`},
		{name: "307 on the same host", path: "/same307", want: `{"at":"home"}`, wantBody: `{"a":1}`},
		{name: "to another host", path: "/foreign", wantErr: "a redirect to another host, " + foreignHost + ", is refused: list it in spec.http.allow_redirect_hosts"},
		{name: "to a host that is listed", path: "/foreign", allow: allow, want: `{"at":"other"}`},
		{name: "to a host that is listed without its port", path: "/foreign", allow: []string{"127.0.0.1"}, want: `{"at":"other"}`},
		{name: "307 to a host that is listed", path: "/foreign307", allow: allow, want: `{"at":"other"}`, wantBody: `{"a":1}`},
		{name: "307 with a variable in the body", path: "/foreign307", allow: allow, static: raws("k", `"${KEY}"`), wantErr: "a redirect of the body to another host"},
		{name: "for ever", path: "/loop", wantErr: "stopped after 10 redirects"},
		{name: "to another scheme", path: "/ftp", wantErr: `a redirect to the scheme "ftp" is refused`},
		{name: "to metadata", path: "/private", wantErr: "a redirect to another host, 169.254.169.254, is refused"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			other, last = seen{}, seen{}
			spec := quick(v1.HTTPSpec{URL: home.URL + tt.path + "?q=${KEY}", AllowRedirectHosts: tt.allow,
				Headers: map[string]string{"Authorization": "Bearer ${KEY}", "Cookie": "c=1", "X-Api-Key": "${KEY}", "X-Plain": "plain-key", "Accept-Language": "en"},
				Request: &v1.HTTPRequest{StaticBody: tt.static}})
			res, err := newTestHTTP(t, map[string]string{"KEY": "topsecret"}).Execute(t.Context(), httpToolOf(spec), json.RawMessage(`{"a":1}`))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) || res.Attempts != 1 || other.Method != "" {
					t.Fatalf("got %v after %d attempts, want %s after 1", err, res.Attempts, tt.wantErr)
				}
				if strings.Contains(err.Error(), "topsecret") {
					t.Errorf("the error holds a secret: %v", err)
				}
				return
			}
			if err != nil || string(res.Content) != tt.want {
				t.Fatalf("got %s, %v, want %s", res.Content, err, tt.want)
			}
			got, isForeign := last, strings.Contains(tt.want, "other")
			if isForeign {
				got = other
			}
			if got.Body != tt.wantBody {
				t.Errorf("body: got %q, want %q", got.Body, tt.wantBody)
			}
			for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Plain"} {
				if has := got.Header.Get(name) != ""; has == isForeign {
					t.Errorf("the header %s on the other host: %v, on another host: %v", name, has, isForeign)
				}
			}
			if got.Header.Get("Accept-Language") != "en" || got.Header.Get("Referer") != "" {
				t.Errorf("got the headers %v", got.Header)
			}
		})
	}
}

// TestHTTPRedirectToPrivateAddress has a public host that redirects to a private one. The manifest allows that host,
// but its address is refused at the dial.
func TestHTTPRedirectToPrivateAddress(t *testing.T) {
	var got seen
	inner := echo(t, &got, `{}`)
	outer, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(inner.URL, "127.0.0.1", "localhost", 1), http.StatusFound)
	})
	h := newTestHTTP(t, nil)
	// The first server stands for one on the public internet, so only its address is allowed.
	public := outer.Listener.Addr().String()
	h.transports[connection{}] = &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		if address == public {
			return new(net.Dialer).DialContext(ctx, network, address)
		}
		return netaddr.Allowed{}.DialContext(net.Dialer{})(ctx, network, address)
	}}
	tool := httpToolOf(quick(v1.HTTPSpec{URL: outer.URL, Method: "GET", AllowRedirectHosts: []string{"localhost"}}))
	tool.Spec.HTTP.AllowPrivateNetwork = false
	res, err := h.Execute(t.Context(), tool, nil)
	if err == nil || !strings.Contains(err.Error(), "(loopback) is refused") || got.Method != "" || res.Attempts != 1 {
		t.Errorf("got %v after %d attempts and the request %+v", err, res.Attempts, got)
	}
}

func TestHTTPTLS(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/down" {
			http.Redirect(w, r, "http://"+r.Host+"/", http.StatusFound)
			return
		}
		fmt.Fprintf(w, `{"proto":%q,"client":%d}`, r.Proto, len(r.TLS.PeerCertificates))
	}))
	srv.EnableHTTP2 = true
	srv.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	srv.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	srv.StartTLS()
	defer srv.Close()
	dir := t.TempDir()
	write := func(name, kind string, der []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cert := srv.TLS.Certificates[0]
	write("ca.pem", "CERTIFICATE", srv.Certificate().Raw)
	write("cert.pem", "CERTIFICATE", cert.Certificate[0])
	key := privateKey(t, cert.PrivateKey)
	write("key.pem", "PRIVATE KEY", key)
	write("not.pem", "NOTHING", nil)

	tests := []struct {
		name, path string
		tls        *v1.TLS
		want       string
		wantErr    string
	}{
		{"an authority that is not trusted", "/", nil, "", "failed to verify certificate"},
		{"ca_file", "/", &v1.TLS{CAFile: "ca.pem"}, `{"proto":"HTTP/2.0","client":0}`, ""},
		{"a client certificate", "/", &v1.TLS{CAFile: "ca.pem", CertFile: "cert.pem", KeyFile: "key.pem"}, `{"proto":"HTTP/2.0","client":1}`, ""},
		{"a redirect to http", "/down", &v1.TLS{CAFile: "ca.pem"}, "", "a redirect from https to http://"},
		{"no certificate in the file", "/", &v1.TLS{CAFile: "not.pem"}, "", `spec.http.tls.ca_file: "not.pem" contains no PEM certificate`},
		{"a key that does not fit", "/", &v1.TLS{CertFile: "cert.pem", KeyFile: "ca.pem"}, "", `spec.http.tls.cert_file: "cert.pem" and "ca.pem" are not a certificate and its key`},
	}
	h := newTestHTTP(t, nil)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool := httpToolOf(quick(v1.HTTPSpec{URL: srv.URL + tt.path, TLS: tt.tls}))
			tool.Source.File = filepath.Join(dir, "tool.yaml")
			res, err := h.Execute(t.Context(), tool, nil)
			if tt.wantErr == "" {
				if err != nil || string(res.Content) != tt.want {
					t.Errorf("got %s, %v, want %s", res.Content, err, tt.want)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.wantErr) || res.Attempts > 1 {
				t.Errorf("got %v after %d attempts, want %s", err, res.Attempts, tt.wantErr)
			}
		})
	}
	if n := len(h.transports); n != 3 {
		t.Errorf("%d transports, want one for each distinct connection: 3", n)
	}
}

// TestHTTPLogsNoSecrets checks the log of attempts.
func TestHTTPLogsNoSecrets(t *testing.T) {
	srv, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
		http.Error(w, r.Header.Get("Authorization"), http.StatusServiceUnavailable)
	})
	var log bytes.Buffer
	h := newTestHTTP(t, map[string]string{"KEY": "topsecret"}, func(o *Options) {
		o.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	spec := quick(v1.HTTPSpec{URL: srv.URL + "/?k=${KEY}", Method: "GET", Headers: map[string]string{"Authorization": "Bearer ${KEY}"}})
	_, err := h.Execute(t.Context(), httpToolOf(spec), nil)
	if n := strings.Count(log.String(), "http attempt failed"); n != 2 {
		t.Errorf("%d lines, want 2:\n%s", n, log.String())
	}
	if all := log.String() + err.Error(); strings.Contains(all, "topsecret") {
		t.Errorf("a secret shows:\n%s", all)
	}
}
