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

// Head is a record of an [Anchor]: the head of the audit log at a time.
type Head struct {
	Time  time.Time `json:"time"`
	Lines int64     `json:"lines"`
	Head  string    `json:"head"`
}

// Anchor records the heads of an audit log outside of its store. It is not safe for concurrent use.
type Anchor struct {
	// To is a file, to which each head is appended as a line, or an HTTP or HTTPS address, to which each head is sent
	// by POST.
	To string
	// Noted is called with each recorded head. Default: nil.
	Noted func(store.AuditHead) error

	last *store.AuditHead
}

// UnreachableError says that an address cannot be reached. Its text does not contain a password.
type UnreachableError struct {
	At  string
	Err error
}

func (e *UnreachableError) Error() string { return e.At + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// Check returns an error if To is neither a file nor an address.
func (a *Anchor) Check() error {
	if scheme, _, ok := strings.Cut(a.To, "://"); ok {
		if u, err := url.Parse(a.To); err != nil || u.Host == "" || scheme != "http" && scheme != "https" {
			return errors.New("expected a file, or a URL such as https://log.example.com/heads")
		}
	}
	return nil
}

// Note records the head of the audit log unless it equals the last recorded one. The error is an *[UnreachableError]
// for an address that did not answer.
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

// Follow checks the head at each interval and records it if it changed, until ctx ends. On an error it calls failed and
// tries again.
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

// BehindError says that an audit log has fewer records than an earlier head.
type BehindError struct{ Noted, Found store.AuditHead }

func (e *BehindError) Error() string {
	return fmt.Sprintf("the audit has %s, and %d were noted before: the store was restored from an older backup, or records at its end were removed; find out which, then anchor to a new place", clip.Count(int(e.Found.Lines), "line"), e.Noted.Lines)
}

// noted returns the last head in a file, or nil without one.
func (a *Anchor) noted() (*store.AuditHead, error) {
	const most = 4 << 10 // more than the length of a line
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
		return nil, nil // a line of another program
	}
	return &store.AuditHead{Hash: head.Head, Lines: head.Lines}, nil
}

// appendLine appends a line to a file and syncs it to the disk.
func appendLine(path string, line []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(line)
	return errors.Join(err, f.Sync(), f.Close())
}

// send posts a line. Any 2xx status means success; redirects are not followed.
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
		if wrapped, ok := errors.AsType[*url.Error](err); ok { // its text contains the address
			err = wrapped.Err
		}
		return &UnreachableError{shown, err}
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, enough)) // so that the connection can be reused
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return fmt.Errorf("%s: the head was not accepted: %s", shown, res.Status)
	}
	return nil
}
