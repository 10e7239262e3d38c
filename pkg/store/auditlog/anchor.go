package auditlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/store"
)

// Head is a line that an [Anchor] notes: the head of the audit at a time.
type Head struct {
	Time  time.Time `json:"time"`
	Lines int64     `json:"lines"`
	Head  string    `json:"head"`
}

// Anchor notes the heads of an audit outside of its store. One goroutine may use it.
type Anchor struct {
	// To is a file, which gets one line more for each head, or an address of http or https, which gets a POST.
	To string
	// Noted is told of each head that was noted. Default: nobody is.
	Noted func(store.AuditHead) error

	last *store.AuditHead
}

// UnreachableError says that an address cannot be reached. Its text has no password.
type UnreachableError struct {
	At  string
	Err error
}

func (e *UnreachableError) Error() string { return e.At + ": " + e.Err.Error() }

// Unwrap returns why.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Check refuses a place that is neither a file nor an address.
func (a *Anchor) Check() error {
	if scheme, _, ok := strings.Cut(a.To, "://"); ok {
		if u, err := url.Parse(a.To); err != nil || u.Host == "" || scheme != "http" && scheme != "https" {
			return errors.New("expected a file, or a URL such as https://log.example.com/heads")
		}
	}
	return nil
}

// Note notes the head of the audit, unless it is the last one that was noted. The error is an
// *[UnreachableError] for an address that did not answer.
func (a *Anchor) Note(ctx context.Context, audit store.Audit) error {
	head, err := audit.AuditHead(ctx)
	if err != nil {
		return err
	}
	if a.last == nil {
		if a.last, err = a.noted(); err != nil {
			return err
		}
	}
	switch {
	case a.last == nil:
	case *a.last == head:
		return nil
	case head.Lines < a.last.Lines:
		return &BehindError{Noted: *a.last, Found: head}
	}
	line, err := json.Marshal(Head{time.Now().UTC(), head.Lines, head.Hash})
	if err != nil {
		return err
	}
	line = append(line, '\n')
	if strings.Contains(a.To, "://") {
		err = a.send(ctx, line)
	} else {
		err = appendLine(a.To, line)
	}
	if err != nil {
		return err
	}
	a.last = &head
	if a.Noted == nil {
		return nil
	}
	return a.Noted(head)
}

// Follow notes the head whenever it changed, and looks for that at each interval, until ctx ends.
// What cannot be noted is told to failed, and tried again.
func (a *Anchor) Follow(ctx context.Context, audit store.Audit, interval time.Duration, failed func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := a.Note(ctx, audit); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}

// BehindError says that an audit has fewer lines than were noted.
type BehindError struct{ Noted, Found store.AuditHead }

func (e *BehindError) Error() string {
	return fmt.Sprintf("the audit has %s, and %d were noted before: the store was restored from an older backup, or records at its end were removed; find out which, and go on with a new place to note heads in", clip.Count(int(e.Found.Lines), "line"), e.Noted.Lines)
}

// noted reads the last head of a file; nil when there is none.
func (a *Anchor) noted() (*store.AuditHead, error) {
	const most = 4 << 10 // more than a line has
	if strings.Contains(a.To, "://") {
		return nil, nil
	}
	f, err := os.Open(a.To)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil, err
	}
	end, err := io.ReadAll(io.NewSectionReader(f, max(0, info.Size()-most), most))
	if err != nil {
		return nil, err
	}
	end = bytes.TrimSpace(end)
	var head Head
	if json.Unmarshal(end[bytes.LastIndexByte(end, '\n')+1:], &head) != nil {
		return nil, nil // of another program
	}
	return &store.AuditHead{Hash: head.Head, Lines: head.Lines}, nil
}

// appendLine adds a line to a file, on the disk.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Sync(), f.Close())
}

// send posts a line. Any status of 2xx says that it was taken; a redirection is not followed.
func (a *Anchor) send(ctx context.Context, line []byte) error {
	const patience, enough = 30 * time.Second, 4 << 10
	shown, _ := store.Shown(a.To)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.To, bytes.NewReader(line))
	if err != nil {
		return fmt.Errorf("%s: it is not a URL", shown)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // its text has the address
			err = wrapped.Err
		}
		return &UnreachableError{shown, err}
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, enough)) // so that the connection is used again
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("%s: the head was not accepted: %s", shown, res.Status)
	}
	return nil
}
