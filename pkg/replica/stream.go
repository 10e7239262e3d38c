package replica

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

const upgrade = "toolctl-stream"

// ErrMoved says that a replica does not have the server of a stream, or is handing it over.
var ErrMoved = errors.New("the replica no longer has it")

// Open opens a byte stream to the owner of a name on another replica. The stream ends with that replica, at the latest
// with its lease.
func (m *Member) Open(ctx context.Context, to, name string) (io.ReadWriteCloser, error) {
	n, err := m.find(ctx, to)
	if n.Draining {
		return nil, ErrMoved
	}
	if err != nil {
		return nil, err
	}
	life, done := m.follow(context.WithoutCancel(ctx), to)
	first, cancel := context.WithCancelCause(life)
	defer context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })()
	req, err := http.NewRequestWithContext(first, http.MethodGet, n.Address+StreamPath+"?name="+url.QueryEscape(name), nil)
	if err == nil {
		var text string
		if text, err = m.sign(to, StreamPath, req.Method, req.Header, []byte(name), Caller{}); err == nil {
			req.Header.Set(header, text)
			req.Header.Set("User-Agent", "toolctl-replica")
			req.Header.Set("Connection", "Upgrade")
			req.Header.Set("Upgrade", upgrade)
		}
	}
	if err != nil {
		done()
		return nil, err
	}
	res, err := m.http.RoundTrip(req)
	if err != nil {
		err = m.failed(first, n, err)
		done()
		return nil, err
	}
	conn, ok := res.Body.(io.ReadWriteCloser)
	if res.StatusCode != http.StatusSwitchingProtocols || !ok {
		err := notOpened(res)
		done()
		return nil, err
	}
	s := &opened{ReadWriteCloser: conn, life: life, done: done}
	s.cut = context.AfterFunc(life, func() { _ = conn.Close() })
	return s, nil
}

// notOpened returns why a replica refused to open a stream.
func notOpened(res *http.Response) error {
	defer res.Body.Close()
	why, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	switch res.StatusCode {
	case http.StatusMisdirectedRequest:
		return ErrGone
	case http.StatusConflict:
		return ErrMoved
	case http.StatusRequestTimeout:
		return ErrLate
	case http.StatusUnauthorized:
		return fmt.Errorf("%w: it rejects the credential of this replica: check that --replica-key-file is the same", ErrAway)
	}
	return fmt.Errorf("the replica that runs it: %s", cmp.Or(string(why), res.Status))
}

// opened is the local end of a stream.
type opened struct {
	io.ReadWriteCloser
	life context.Context
	done func()
	cut  func() bool
}

func (s *opened) Read(p []byte) (int, error) {
	n, err := s.ReadWriteCloser.Read(p)
	if cause := context.Cause(s.life); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return n, err
}

func (s *opened) Close() error {
	s.cut()
	s.done()
	return s.ReadWriteCloser.Close()
}

// AcceptStream reads the credential of a request by another replica's Open, and returns the name that the stream is
// for. [StatusOf] returns the HTTP status for an error.
func (m *Member) AcceptStream(r *http.Request) (name string, err error) {
	name = r.URL.Query().Get("name")
	f, err := m.Accept(r)
	if err == nil && !f.Matches(r.Header, []byte(name)) {
		err = ErrCredential
	}
	return name, err
}

// StatusOf returns the HTTP status for a request that is not accepted.
func StatusOf(err error) int {
	switch {
	case errors.Is(err, ErrMisdirected):
		return http.StatusMisdirectedRequest
	case errors.Is(err, ErrLate):
		return http.StatusRequestTimeout
	}
	return http.StatusUnauthorized
}

// TakeStream answers a request of AcceptStream. start returns the function that serves the stream for a name until it
// returns, or an error: ErrMoved if this replica does not have the name.
func TakeStream(w http.ResponseWriter, r *http.Request, name string, start func(ctx context.Context, name string) (serve func(io.ReadWriteCloser), err error)) {
	if r.Header.Get("Upgrade") != upgrade {
		http.Error(w, "expected Upgrade: "+upgrade, http.StatusBadRequest)
		return
	}
	serve, err := start(r.Context(), name)
	if err != nil {
		status := http.StatusServiceUnavailable
		if errors.Is(err, ErrMoved) {
			status = http.StatusConflict
		}
		http.Error(w, err.Error(), status)
		return
	}
	conn, buf, err := http.NewResponseController(w).Hijack()
	if err != nil {
		serve(nothing{}) // releases its resources
		return
	}
	if _, err := io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+upgrade+"\r\n\r\n"); err != nil {
		_ = conn.Close()
	}
	serve(&taken{conn, buf.Reader})
}

// taken is the remote end of a stream: data that came with the request are read first.
type taken struct {
	net.Conn
	in *bufio.Reader
}

func (t *taken) Read(p []byte) (int, error) { return t.in.Read(p) }

// nothing is a closed stream.
type nothing struct{}

func (nothing) Read([]byte) (int, error)  { return 0, io.EOF }
func (nothing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
func (nothing) Close() error              { return nil }
