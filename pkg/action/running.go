package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

// AppliedSets returns the last applied commit of each set in the store.
type AppliedSets struct{ *Config }

// AppliedSet is a set of the store and its last revision.
type AppliedSet struct {
	Set      string    `json:"set"`
	Revision int64     `json:"revision"`
	Source   string    `json:"source,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Since    time.Time `json:"since"`
	By       string    `json:"by,omitempty"`
	Command  string    `json:"command"`
	Objects  int       `json:"objects"`
}

// Run reads the store.
func (a *AppliedSets) Run(ctx context.Context) (sets []AppliedSet, err error) {
	sets = []AppliedSet{}
	err = a.withKept(ctx, aboutStore, func(s store.Store) error {
		all, err := s.Revisions(ctx, store.RevisionQuery{})
		for _, r := range all { // by set, the oldest first
			now := AppliedSet{r.Set, r.Number, r.Source, r.Commit, r.Time, r.By, r.Command, r.Objects}
			if n := len(sets); n == 0 || sets[n-1].Set != r.Set {
				sets = append(sets, now)
			} else {
				if before := sets[n-1]; before.Commit != "" && before.Commit == now.Commit && before.Source == now.Source {
					now.Since = before.Since // the commit was only restored
				}
				sets[n-1] = now
			}
		}
		return err
	})
	return sets, err
}

// AskGateway asks a gateway whether it accepts calls and which commit it serves.
type AskGateway struct {
	// URL is its address, such as http://127.0.0.1:8080.
	URL string
}

// Readiness is the answer of /readyz.
type Readiness struct {
	URL     string         `json:"url"`
	Ready   bool           `json:"ready"`
	Reason  string         `json:"reason,omitempty"`
	Tools   int            `json:"tools"`
	Warning string         `json:"warning,omitempty"`
	Source  *source.Status `json:"source,omitempty"`
}

const (
	statusTimeout = 10 * time.Second
	maxStatus     = 1 << 20
)

// Run queries /readyz. The error is an [UnavailableError] if the gateway cannot be reached.
func (a *AskGateway) Run(ctx context.Context) (*Readiness, error) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return nil, usagef("--url %q: expected an address such as http://127.0.0.1:8080", a.URL)
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/mcp")}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	s, err := readReadiness(ctx, at)
	if err != nil && errors.Is(ctx.Err(), context.Canceled) {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, &UnavailableError{fmt.Errorf("%s: %w", at.String(), err)}
	}
	return s, nil
}

func readReadiness(ctx context.Context, at url.URL) (*Readiness, error) {
	s := &Readiness{}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("readyz").String(), nil)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // the caller adds the address
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxStatus))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, s); err != nil || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable {
		return nil, fmt.Errorf("status %d: not a gateway, or a gateway of another version", res.StatusCode)
	}
	s.URL = at.String()
	return s, nil
}
