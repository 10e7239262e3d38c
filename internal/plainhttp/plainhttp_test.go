package plainhttp_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"toolctl.dev/toolctl/internal/nonblock"
	"toolctl.dev/toolctl/internal/plainhttp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// transport is a Transport whose connections are counted.
func transport(t testing.TB) (tr *plainhttp.Transport, dials *atomic.Int32) {
	t.Helper()
	dials = new(atomic.Int32)
	tr = &plainhttp.Transport{Other: &http.Transport{}, Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
		dials.Add(1)
		return nonblock.Dial(new(net.Dialer).DialContext)(ctx, network, address)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return tr, dials
}

func listen(t testing.TB, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

// raw is a server that answers the requests of its connections with these texts, one each,
// and then closes them.
func raw(t *testing.T, answers ...string) (url string, requests *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	requests = new(atomic.Int32)
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				in := bufio.NewReader(c)
				for _, a := range answers {
					req, err := http.ReadRequest(in)
					if err != nil {
						return
					}
					_, _ = io.Copy(io.Discard, req.Body)
					requests.Add(1)
					if _, err := io.WriteString(c, a); err != nil {
						return
					}
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return "http://" + l.Addr().String(), requests
}

func request(t testing.TB, method, url, body string) *http.Request {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

func do(t testing.TB, tr http.RoundTripper, req *http.Request) (*http.Response, string) {
	t.Helper()
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return resp, string(data)
}

// TestLikeNetHTTP has the same requests sent by both transports.
func TestLikeNetHTTP(t *testing.T) {
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	fmt.Fprint(z, "compressed")
	z.Close()
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		names := slices.Sorted(maps.Keys(r.Header))
		w.Header().Set("Saw", fmt.Sprint(r.Method, r.Host, r.ContentLength, names, r.Header["Accept-Encoding"], r.UserAgent(), string(body)))
		switch r.URL.Path {
		case "/length":
			w.Header().Set("Content-Length", "3")
			fmt.Fprint(w, "abc")
		case "/chunks":
			for range 3 {
				fmt.Fprint(w, strings.Repeat("x", 10_000))
				_ = http.NewResponseController(w).Flush()
			}
			w.Header().Set(http.TrailerPrefix+"Sum", "3")
		case "/large":
			fmt.Fprint(w, strings.Repeat("y", 3<<20))
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/same":
			w.WriteHeader(http.StatusNotModified)
		case "/zipped":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(zipped.Bytes())
		case "/empty":
			w.Header().Set("Content-Length", "0")
		case "/hints":
			w.WriteHeader(http.StatusEarlyHints)
			fmt.Fprint(w, "after")
		case "/last":
			w.Header().Set("Connection", "close")
			fmt.Fprint(w, "bye")
		case "/error":
			http.Error(w, "no", http.StatusTeapot)
		}
	})
	theirs := &http.Transport{}
	t.Cleanup(theirs.CloseIdleConnections)
	ours, _ := transport(t)
	for _, path := range []string{"/length", "/chunks", "/large", "/none", "/same", "/zipped", "/empty", "/hints", "/last", "/error"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodHead, http.MethodDelete} {
			for _, encoding := range []string{"", "gzip", "identity"} {
				for _, body := range []string{"", `{"a":1}`, strings.Repeat("z", 100<<10)} {
					type outcome struct {
						status, length     int64
						saw, typ, kind, at string
						proto              string
						unzipped, closes   bool
						trailer            string
					}
					var got [2]outcome
					for i, tr := range []http.RoundTripper{theirs, ours} {
						req := request(t, method, s.URL+path, body)
						if encoding != "" {
							req.Header.Set("Accept-Encoding", encoding)
						}
						resp, text := do(t, tr, req)
						got[i] = outcome{int64(resp.StatusCode), resp.ContentLength, resp.Header.Get("Saw"), resp.Header.Get("Content-Type"), resp.Header.Get("Content-Encoding"), text, resp.Proto, resp.Uncompressed, resp.Close, resp.Trailer.Get("Sum")}
					}
					if got[0] != got[1] {
						t.Errorf("%s %s %q, %d bytes:\nhttp.Transport %.300v\nplainhttp      %.300v", method, path, encoding, len(body), got[0], got[1])
					}
				}
			}
		}
	}
}

// TestReuse has calls follow each other, whose responses are read, or closed early.
func TestReuse(t *testing.T) {
	s := listen(t, func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "data: 1\n\n")
		_ = http.NewResponseController(w).Flush()
	})
	tr, dials := transport(t)
	for range 100 {
		do(t, tr, request(t, http.MethodPost, s.URL, "{}"))
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connections for 100 calls one after the other", n)
	}
	for range 100 {
		resp, err := tr.RoundTrip(request(t, http.MethodPost, s.URL, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReaderSize(resp.Body, 16).ReadString('\n')
		if line != "data: 1\n" || err != nil {
			t.Fatalf("%q %v", line, err)
		}
		resp.Body.Close()
		if _, err := resp.Body.Read(make([]byte, 1)); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Fatalf("a read after Close: %v", err)
		}
	}
	if n := dials.Load(); n > 50 { // how many depends on how soon the ends of the streams come
		t.Errorf("%d connections for 100 calls whose streams were closed early", n)
	}
}

// TestStreamThatGoesOn closes a response that does not end: the server sees that soon.
func TestStreamThatGoesOn(t *testing.T) {
	gone := make(chan struct{})
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "x")
		_ = http.NewResponseController(w).Flush()
		if r.URL.Path == "/on" {
			<-r.Context().Done()
			close(gone)
		}
	})
	tr, dials := transport(t)
	resp, err := tr.RoundTrip(request(t, http.MethodGet, s.URL+"/on", ""))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	do(t, tr, request(t, http.MethodGet, s.URL, ""))
	if dials.Load() != 2 {
		t.Error("a request went over a connection whose response had not ended")
	}
	<-gone
}

// TestCancel ends requests while they wait for their response, and for the rest of it.
func TestCancel(t *testing.T) {
	came, gone := make(chan struct{}), make(chan struct{})
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			fmt.Fprint(w, "x")
			_ = http.NewResponseController(w).Flush()
		}
		came <- struct{}{}
		<-r.Context().Done()
		gone <- struct{}{}
	})
	tr, _ := transport(t)
	why := errors.New("enough")
	for _, path := range []string{"/head", "/body"} {
		ctx, cancel := context.WithCancelCause(t.Context())
		var all sync.WaitGroup
		all.Go(func() { <-came; cancel(why) })
		resp, err := tr.RoundTrip(request(t, http.MethodGet, s.URL+path, "").WithContext(ctx))
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		if !errors.Is(err, why) {
			t.Errorf("%s: %v", path, err)
		}
		<-gone
		all.Wait()
	}
}

// TestCloseWhileRead closes a response from another goroutine.
func TestCloseWhileRead(t *testing.T) {
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "x")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	tr, _ := transport(t)
	resp, err := tr.RoundTrip(request(t, http.MethodGet, s.URL, ""))
	if err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_, _ = resp.Body.Read(make([]byte, 1))
		close(read)
		if _, err := resp.Body.Read(make([]byte, 1)); err == nil {
			t.Error("a read of a closed body came back with something")
		}
	})
	<-read
	resp.Body.Close()
	all.Wait()
}

// TestClosedByServer has a server close connections that wait, and that have a request.
func TestClosedByServer(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
	for _, c := range []struct {
		name, method string
		answers      []string // of each connection
		requests     int32    // that the server has seen after two
		fails        bool     // the second
	}{
		{"while it waits", http.MethodPost, []string{ok}, 2, false},
		{"with the request, which may have done something", http.MethodPost, []string{ok, ""}, 2, true},
		{"with a request that does nothing", http.MethodGet, []string{ok, ""}, 3, false},
		{"within the answer", http.MethodGet, []string{ok, ok[:20]}, 2, true},
		{"with more than the answer", http.MethodPost, []string{ok + "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbad", ok}, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, requests := raw(t, c.answers...)
			tr, _ := transport(t)
			if _, text := do(t, tr, request(t, c.method, url, "")); text != "ok" {
				t.Fatalf("%q", text)
			}
			resp, err := tr.RoundTrip(request(t, c.method, url, ""))
			if err == nil {
				text, rerr := io.ReadAll(resp.Body)
				if resp.Body.Close(); rerr != nil || string(text) != "ok" {
					t.Errorf("%q %v", text, rerr)
				}
			}
			if (err != nil) != c.fails {
				t.Errorf("the second request: %v", err)
			}
			if n := requests.Load(); n != c.requests {
				t.Errorf("the server saw %d requests, not %d", n, c.requests)
			}
		})
	}
}

// TestHostile has servers whose answers are none.
func TestHostile(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"endless header":     {"HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", 300_000), "more than 1048576 bytes"},
		"endless line":       {"HTTP/1.1 200 OK\r\nA: " + strings.Repeat("b", 2<<20), "more than 1048576 bytes"},
		"interim responses":  {strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 100), "status of 1xx"},
		"another protocol":   {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "switched to another protocol"},
		"no HTTP":            {"SSH-2.0-OpenSSH_9.2\r\n", "malformed HTTP"},
		"nothing":            {"", "EOF"},
		"two lengths":        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok", "Content-Length"},
		"a negative length":  {"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nok", "Content-Length"},
		"an unknown framing": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: rot13\r\n\r\nok", "transfer encoding"},
	} {
		t.Run(name, func(t *testing.T) {
			url, _ := raw(t, c.answer)
			tr, _ := transport(t)
			resp, err := tr.RoundTrip(request(t, http.MethodPost, url, "{}"))
			if err == nil {
				resp.Body.Close()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, not %q", err, c.want)
			}
		})
	}
}

// TestManyAtOnce has callers share the connections.
func TestManyAtOnce(t *testing.T) {
	s := listen(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPut {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		_, _ = w.Write(body)
		_ = http.NewResponseController(w).Flush()
	})
	tr, _ := transport(t)
	var all sync.WaitGroup
	for id := range 16 {
		all.Go(func() {
			for i := range 200 {
				want := fmt.Sprintf("%d of %d", i, id)
				if i%4 == 0 { // whose response is over with its head
					if _, text := do(t, tr, request(t, http.MethodPut, s.URL, want)); text != "" {
						t.Errorf("%q", text)
					}
				}
				resp, err := tr.RoundTrip(request(t, http.MethodPost, s.URL, want))
				if err != nil {
					t.Error(err)
					return
				}
				got := make([]byte, len(want))
				_, err = io.ReadFull(resp.Body, got)
				if i%3 == 0 {
					_, _ = io.Copy(io.Discard, resp.Body)
				}
				resp.Body.Close()
				if string(got) != want || err != nil {
					t.Errorf("%q %v, not %q", got, err, want)
					return
				}
			}
		})
	}
	all.Wait()
}

// BenchmarkRoundTrip compares a small request with the same of http.Transport.
func BenchmarkRoundTrip(b *testing.B) {
	s := listen(b, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, `{"ok":true}`)
	})
	theirs := &http.Transport{}
	b.Cleanup(theirs.CloseIdleConnections)
	ours, _ := transport(b)
	for name, tr := range map[string]http.RoundTripper{"floor": theirs, "plainhttp": ours} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				do(b, tr, request(b, http.MethodPost, s.URL, "{}"))
			}
		})
	}
}
