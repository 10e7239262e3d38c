package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

func newWaitCmd(a *app) *cobra.Command {
	var (
		condition string
		timeout   time.Duration
		all       bool
	)
	cmd := &cobra.Command{
		Use:   "wait (mcpserver/NAME... | -l LABELS | --all) --for=ready",
		Short: "Wait until MCP servers are ready",
		Long: `Wait until MCP servers are ready: until each has answered and listed its tools.
The exit code is 7 when time runs out first.`,
		Example: `  toolctl wait mcpserver/files --for=ready --timeout 30s
  toolctl wait -f servers.yaml mcpserver files web`,
		ValidArgsFunction: a.completeResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			kind, names, err := resource(args)
			some := all || cmd.Flags().Changed("selector")
			switch {
			case err != nil:
				return err
			case kind != v1.KindMCPServer && (kind != "" || !some):
				return usagef("expected mcpserver/NAME: MCP servers can be waited for")
			case len(names) == 0 && !some:
				return usagef("expected mcpserver/NAME or mcpserver NAME, -l or --all")
			case len(names) > 0 && some:
				return usagef("names exclude -l and --all")
			case !strings.EqualFold(strings.TrimPrefix(condition, "condition="), "ready"):
				return usagef("--for %q: expected ready, or condition=Ready", condition)
			case timeout <= 0:
				return usagef("--timeout %s: expected a time above 0", timeout)
			}
			return a.waitReady(cmd.Context(), names, timeout)
		},
	}
	f := cmd.Flags()
	f.StringVar(&condition, "for", "ready", "what to wait for: ready, or condition=Ready")
	f.BoolVar(&all, "all", false, "wait for all MCP servers")
	a.bindSelector(f, "MCP servers")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait")
	a.bindNetwork(f, "")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"ready"}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) waitReady(ctx context.Context, names []string, timeout time.Duration) error {
	w, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	if len(names) == 0 {
		has, err := a.selected()
		if err != nil {
			return err
		}
		if names, err = namesOf(w.reg, registry.Query{Kind: v1.KindMCPServer, Namespace: a.namespace}, has); err != nil {
			return err
		}
		if len(names) == 0 {
			return &v1.NotFoundError{Kind: v1.KindMCPServer, Name: cmp.Or(a.selector, "any")}
		}
	}
	var servers []*v1.MCPServer
	for _, name := range names {
		it, err := w.reg.Get(v1.KindMCPServer, a.namespace, name)
		if err != nil {
			return err
		}
		if len(it.Reasons) > 0 {
			return v1.NewValidationError(v1.ManifestInvalid, "", it.Reasons)
		}
		servers = append(servers, it.Object.(*v1.MCPServer))
	}
	within, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	for _, s := range servers {
		reason, err := a.waitFor(within, s)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return statusError{exitUnavailable, fmt.Sprintf("%s is not ready after %s: %s", objectName(s.Key()), timeout, reason)}
		}
		fmt.Fprintf(a.out, "%s ready\n", objectName(s.Key()))
	}
	return nil
}

// waitFor asks a server until it is ready or ctx ends, and returns the last reason
// why it was not. Each time it asks with new sessions, which know of no back-off.
func (a *app) waitFor(ctx context.Context, s *v1.MCPServer) (reason string, err error) {
	const shortest, longest = 200 * time.Millisecond, 2 * time.Second
	for pause := shortest; ; pause = min(2*pause, longest) {
		state, err := a.askServer(ctx, s)
		if err != nil {
			return "", err
		}
		if state.Ready {
			return "", nil
		}
		if reason == "" || ctx.Err() == nil {
			reason = reasonText(state) // the last one may only say that time ran out
		}
		t := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			t.Stop()
			return reason, ctx.Err()
		case <-t.C:
		}
	}
}
