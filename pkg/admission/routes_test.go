package admission_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"toolctl.dev/toolctl/pkg/admission"
)

// onePipe is a listener with one connection, which has no buffer.
type onePipe struct {
	conn  chan net.Conn
	ended chan struct{}
}

func (l *onePipe) Accept() (net.Conn, error) {
	select {
	case c := <-l.conn:
		return c, nil
	case <-l.ended:
		return nil, net.ErrClosed
	}
}

func (l *onePipe) Close() error   { close(l.ended); return nil }
func (l *onePipe) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

// A body must arrive within 30 seconds, whether the handler waits for it, reads it itself, or has already
// responded.
func TestBodiesEnd(t *testing.T) {
	const timeout = 30 * time.Second
	read := func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.ReadAll(r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
		}
	}
	for path, tt := range map[string]struct {
		route  admission.Route
		status int
	}{
		"/kept": {admission.Route{Enter: func(r *http.Request) admission.Entry {
			return admission.Entry{Caller: admission.Anonymous(r), Answer: read}
		}}, http.StatusRequestTimeout},
		"/passed": {admission.Route{Unbuffered: true, Enter: admission.Open(http.HandlerFunc(read))}, http.StatusTeapot},
		"/early": {admission.Route{Enter: func(r *http.Request) admission.Entry {
			return admission.TurnAway(admission.Stranger(r), http.StatusForbidden, "no")
		}}, http.StatusForbidden},
	} {
		t.Run(path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := admission.New(admission.Limits{})
				tt.route.Pattern = path
				ours, theirs := net.Pipe()
				l := &onePipe{make(chan net.Conn, 1), make(chan struct{})}
				l.conn <- theirs
				srv := &http.Server{Handler: a.Routes(tt.route)}
				ended := make(chan error, 1)
				go func() { ended <- srv.Serve(l) }()
				began := time.Now()
				fmt.Fprintf(ours, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n", path)
				go func() { _, _ = ours.Write([]byte("{")) }() // and nothing more
				res, err := http.ReadResponse(bufio.NewReader(ours), nil)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); res.StatusCode != tt.status || took > timeout {
					t.Errorf("status %d after %s", res.StatusCode, took)
				}
				_, _ = io.Copy(io.Discard, ours) // until the server closes the connection
				if took := time.Since(began); took > timeout+time.Second {
					t.Errorf("the connection lasted %s", took)
				}
				if s := a.Snapshot(); s.Memory.InUse != 0 || s.Quotas["unread requests"].InUse != 0 || s.Quotas["requests without a token"].InUse != 0 {
					t.Errorf("%+v", s)
				}
				_ = ours.Close()
				_ = srv.Close()
				<-ended
			})
		})
	}
}
