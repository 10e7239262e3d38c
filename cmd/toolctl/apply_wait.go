package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/store"
)

// waitServers waits until every MCP server of a set, and every one that was applied, is
// ready, and says of each that is not why.
func (o *applyOptions) waitServers(ctx context.Context, s store.Store, set string, changes []store.Change) error {
	list, err := s.List(ctx, store.ListOptions{Kind: v1.KindMCPServer})
	if err != nil {
		return err
	}
	mine := map[v1.Key]bool{}
	for _, c := range changes {
		mine[c.Key] = c.After != nil
	}
	var servers []*v1.MCPServer
	for _, r := range list.Records {
		if m, ok := r.Object.(*v1.MCPServer); ok && (mine[r.Key()] || r.Set == set) {
			servers = append(servers, m)
		}
	}
	if _, err := o.network(); err != nil {
		return err
	}
	within, stop := context.WithTimeout(ctx, o.patience)
	defer stop()
	reasons, waiting := map[*v1.MCPServer]string{}, slices.Clone(servers)
	for len(waiting) > 0 && within.Err() == nil { // each is asked in turn: one that hangs holds none up for good
		var still []*v1.MCPServer
		for _, m := range waiting {
			state, err := o.askServer(within, m)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case err != nil:
				return err
			case state.Ready:
				fmt.Fprintf(o.err, "%s ready\n", objectName(m.Key()))
				continue
			case reasons[m] == "" || within.Err() == nil:
				reasons[m] = reasonText(state) // the last one may only say that time ran out
			}
			still = append(still, m)
		}
		if waiting = still; len(waiting) > 0 {
			pause(within, askAgain)
		}
	}
	var texts []string
	for _, m := range waiting {
		texts = append(texts, fmt.Sprintf("%s is not ready after %s: %s", objectName(m.Key()), clip.Duration(o.patience), reasons[m]))
	}
	if texts != nil {
		return statusError{exitUnavailable, strings.Join(texts, "\n")}
	}
	return nil
}

const askAgain = 500 * time.Millisecond

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
