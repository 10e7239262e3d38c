package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/store"
)

func newAuditAnchorCmd(a *app) *cobra.Command {
	o := &anchorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "anchor --to FILE|URL",
		Short: "Note the head of the audit in another place",
		Long: `Write the head of the audit, as it is now, to a file or an HTTP address outside of the store:
who can write the store can rewrite the whole chain, but not what is noted elsewhere.
Later 'toolctl audit verify --head HASH' tells whether the line of that hash is still there.

Each note is a line of JSON with the time, the number of lines and the head. A file gets one
line more, an address a POST. With --interval it goes on until it is stopped, and notes
the head when it has changed; what cannot be written then is logged and tried again.`,
		Example: `  toolctl audit anchor --to /mnt/worm/heads.jsonl
  toolctl audit anchor --to https://log.example.com/heads --interval 5m`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			s, err := a.openAudit(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(s)
			return o.run(cmd.Context(), s)
		},
	}
	cmd.Flags().StringVar(&o.to, "to", "", "file to add a line to, or http or https address to send it to")
	cmd.Flags().DurationVar(&o.interval, "interval", 0, "repeat at this interval, such as 5m (default: once)")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

type anchorOptions struct {
	*app
	to       string
	interval time.Duration
}

// anchor is the head of the audit at a time.
type anchor struct {
	Time  time.Time `json:"time"`
	Lines int64     `json:"lines"`
	Head  string    `json:"head"`
}

func (o *anchorOptions) check() error {
	if o.interval < 0 || o.interval > 0 && o.interval < time.Second {
		return usagef("--interval %s: expected 1s or more, or 0 for once", o.interval)
	}
	if scheme, _, ok := strings.Cut(o.to, "://"); ok {
		if u, err := url.Parse(o.to); err != nil || u.Host == "" || scheme != "http" && scheme != "https" {
			return usagef("--to: expected a file, or an address such as https://log.example.com/heads")
		}
	}
	return nil
}

func (o *anchorOptions) run(ctx context.Context, s store.Audit) error {
	last, err := o.write(ctx, s, store.AuditHead{Lines: -1})
	if err != nil || o.interval == 0 {
		return err
	}
	o.lasting = true // until it is stopped
	tick := time.NewTicker(o.interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if next, err := o.write(ctx, s, last); err == nil {
			last = next
		} else if ctx.Err() == nil {
			o.logger().Warn("the head of the audit was not noted", slog.Any("error", err))
		}
	}
}

// write notes the head unless it is the last one that was noted, and returns it.
func (o *anchorOptions) write(ctx context.Context, s store.Audit, last store.AuditHead) (store.AuditHead, error) {
	head, err := s.AuditHead(ctx)
	if err != nil || head == last {
		return head, err
	}
	line, err := json.Marshal(anchor{time.Now().UTC(), head.Lines, head.Hash})
	if err != nil {
		return head, err
	}
	line = append(line, '\n')
	if strings.Contains(o.to, "://") {
		err = o.send(ctx, line)
	} else {
		err = appendLine(o.to, line)
	}
	if err != nil {
		return head, err
	}
	shown, _ := store.Shown(o.to)
	_, err = fmt.Fprintf(o.out, "head %s after %s noted at %s\n", head.Hash, count(int(head.Lines), "line"), shown)
	return head, err
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
func (o *anchorOptions) send(ctx context.Context, line []byte) error {
	const patience, enough = 30 * time.Second, 4 << 10
	shown, _ := store.Shown(o.to)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, o.to, bytes.NewReader(line))
	if err != nil {
		return usagef("--to %s: it is not an address", shown)
	}
	req.Header.Set("Content-Type", "application/json")
	client := http.Client{Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		var wrapped *url.Error
		if errors.As(err, &wrapped) { // its text has the address
			err = wrapped.Err
		}
		return statusError{exitUnavailable, fmt.Sprintf("%s: %s", shown, err)}
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(res.Body, enough)) // so that the connection is used again
	if res.StatusCode < 200 || res.StatusCode > 299 {
		return statusError{exitFailed, fmt.Sprintf("%s: the head was not accepted: %s", shown, res.Status)}
	}
	return nil
}
