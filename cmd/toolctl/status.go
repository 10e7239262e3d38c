package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

func newStatusCmd(a *app) *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "status [--url URL]",
		Short: "Say which commit runs, and since when",
		Long: `Say which commit runs, and since when.

With --url it asks a gateway ('toolctl serve --http'), at its /readyz: whether it takes calls,
which commit of its --source it serves, and why not the newest. The exit code is 7
when it cannot be reached or takes no calls.

Without, it reads the store: for each set, the commit that was applied last, by
'toolctl reconcile' or apply.

Output formats (-o): table, json.`,
		Annotations: formats("table", "json"),
		Example: `  toolctl status --url http://127.0.0.1:8080
  toolctl status --store /var/lib/toolctl/state.db -o json`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if address != "" {
				return a.gatewayStatus(cmd.Context(), address)
			}
			return a.storeStatus(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&address, "url", "", "address of a gateway, such as http://127.0.0.1:8080")
	return cmd
}

// setStatus is a line of status for a set of the store.
type setStatus struct {
	Set      string    `json:"set"`
	Revision int64     `json:"revision"`
	Source   string    `json:"source,omitempty"`
	Commit   string    `json:"commit,omitempty"`
	Since    time.Time `json:"since"`
	By       string    `json:"by,omitempty"`
	Command  string    `json:"command"`
	Objects  int       `json:"objects"`
}

func (a *app) storeStatus(ctx context.Context) error {
	st, err := a.openKept(ctx)
	if err != nil {
		return err
	}
	defer a.closing(st)
	all, err := st.Revisions(ctx, store.RevisionQuery{})
	if err != nil {
		return err
	}
	sets := []setStatus{}
	for _, r := range all { // by set, the oldest first
		now := setStatus{r.Set, r.Number, r.Source, r.Commit, r.Time, r.By, r.Command, r.Objects}
		if n := len(sets); n == 0 || sets[n-1].Set != r.Set {
			sets = append(sets, now)
		} else {
			if before := sets[n-1]; before.Commit != "" && before.Commit == now.Commit && before.Source == now.Source {
				now.Since = before.Since // it was only put right again
			}
			sets[n-1] = now
		}
	}
	if a.format() == "json" {
		return printJSON(a.out, sets)
	}
	if len(sets) == 0 {
		fmt.Fprintln(a.err, "nothing was applied yet")
		return nil
	}
	t := newTable(a.out, "SET", "REVISION", "COMMIT", "SINCE", "OBJECTS", "SOURCE")
	for _, s := range sets {
		t.row(strings.ReplaceAll(s.Set, "\n", ", "), strconv.FormatInt(s.Revision, 10), cmp.Or(shortCommit(s.Commit), "-"), s.Since.UTC().Format(time.RFC3339), strconv.Itoa(s.Objects), s.Source)
	}
	return t.Flush()
}

// readiness is what /readyz says.
type readiness struct {
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

func (a *app) gatewayStatus(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return usagef("--url %q: expected an address such as http://127.0.0.1:8080", address)
	}
	at := url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/mcp")}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	s, err := readReadiness(ctx, at)
	if err != nil {
		if errors.Is(ctx.Err(), context.Canceled) {
			return ctx.Err()
		}
		return statusError{exitUnavailable, fmt.Sprintf("%s: %s", at.String(), err)}
	}
	if a.format() == "json" {
		err = printJSON(a.out, s)
	} else {
		err = a.printReadiness(s)
	}
	if err == nil && !s.Ready {
		return statusError{exitUnavailable, ""}
	}
	return err
}

func readReadiness(ctx context.Context, at url.URL) (*readiness, error) {
	s := &readiness{}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.JoinPath("readyz").String(), nil)
	if err != nil {
		return nil, err
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // which does not name the address again
	}
	defer res.Body.Close()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxStatus))
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(body, s); err != nil || res.StatusCode != http.StatusOK && res.StatusCode != http.StatusServiceUnavailable {
		return nil, fmt.Errorf("status %d: it is not a gateway, or not one of this version", res.StatusCode)
	}
	s.URL = at.String()
	return s, nil
}

func (a *app) printReadiness(s *readiness) error {
	lines := [][2]string{{"url", s.URL}, {"ready", "yes, " + count(s.Tools, "tool")}}
	if !s.Ready {
		lines[1][1] = "no: " + s.Reason
	}
	if s.Source != nil {
		lines = append(lines, [2]string{"source", s.Source.Source}, [2]string{"commit", sourceLine(s.Source)})
		if s.Source.Checked != nil {
			lines = append(lines, [2]string{"checked", s.Source.Checked.Format(time.RFC3339)})
		}
	}
	if s.Warning != "" {
		lines = append(lines, [2]string{"warning", s.Warning})
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(a.out, "%-10s%s\n", l[0]+":", clip.Line(l[1])); err != nil {
			return err
		}
	}
	return nil
}
