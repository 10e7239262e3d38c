package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/mcp"
)

type lockOptions struct {
	*app
	update, check bool
	names         []string
}

func newLockCmd(a *app) *cobra.Command {
	o := &lockOptions{app: a}
	cmd := &cobra.Command{
		Use:   "lock [NAME]...",
		Short: "Pin the tool definitions of MCP servers and detect drift",
		Long: `Write toolctl.lock: for each MCP server who it is, the protocol version, and for
each tool the text and the hashes of its definition. With --locked, or spec.locked
of the server, a tool that differs from the lock is refused, and the others go on.

Servers that the lock does not have are added. One that differs is left as it is
and said so with exit code 1: look at it, then accept it with --update. The lock is
the nearest toolctl.lock upwards, else one in the current folder.

Output formats (-o) of --check: table, json.`,
		Annotations: formats("table", "json"),
		Example: `  toolctl lock
  toolctl lock --check
  toolctl lock --update files`,
		ValidArgsFunction: a.completeNames(v1.KindMCPServer),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.update && o.check {
				return usagef("--update and --check cannot be used together")
			}
			if len(args) > 0 && o.selector != "" {
				return usagef("names cannot be used together with -l")
			}
			o.names = args
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.update, "update", false, "accept what the servers say now; with NAME, of those servers only")
	cmd.Flags().BoolVar(&o.check, "check", false, "change nothing; exit code 1 when a server differs from the lock")
	a.bindSelector(cmd.Flags(), "MCP servers")
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

func (o *lockOptions) run(ctx context.Context) error {
	format := o.format()
	path, err := lock.Find(o.lockFile)
	if err != nil {
		return err
	}
	old, err := lock.Read(path)
	fresh := errors.Is(err, fs.ErrNotExist)
	if err != nil && (!fresh || o.check) && !o.repairs(err) {
		if fresh {
			return usagef("there is no %s: make it with 'toolctl lock'", path)
		}
		return v1.NewValidationError(v1.ManifestInvalid, "", []v1.Violation{{Message: err.Error(), Expected: "a lock file", Got: "something else"}})
	}
	w, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	o.warnViolations(w)
	keys, gone, err := o.servers(w, &old)
	if err != nil {
		return err
	}
	var now []lock.Server
	var down []mcp.ServerState
	if len(keys) > 0 {
		states := w.Discover(ctx, keys...)
		o.warnStates(states)
		now, down = gateway.LockServers(states)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if o.check {
		return o.report(format, path, old, now, down)
	}
	next, drift, added := old.Merge(now, gone, o.update)
	if len(added) > 0 || len(gone) > 0 || fresh || o.update {
		if err := lock.Write(path, next); err != nil {
			return err
		}
	}
	for _, k := range added {
		fmt.Fprintf(o.out, "%s locked: %s\n", objectName(k), count(len(next.Server(k).Tools), "tool"))
	}
	for _, k := range gone {
		fmt.Fprintf(o.out, "%s removed from the lock\n", objectName(k))
	}
	if len(added)+len(gone) == 0 && len(drift) == 0 && len(down) == 0 {
		fmt.Fprintf(o.out, "%s is up to date: %s\n", path, count(len(next.Servers), "server"))
	}
	switch {
	case len(drift) > 0:
		o.printDrift(drift)
		return statusError{exitFailed, fmt.Sprintf("%s: look at it, then accept it with 'toolctl lock --update'", count(len(drift), "difference"))}
	case len(down) > 0:
		return unavailable(down)
	}
	return nil
}

// repairs reports whether --update of everything may replace a lock that cannot be read.
func (o *lockOptions) repairs(err error) bool {
	return err != nil && o.update && len(o.names) == 0
}

// servers returns the servers that the arguments name, all without any, and those
// that are named and are in the lock alone.
func (o *lockOptions) servers(w *workspace, old *lock.File) (keys, gone []v1.Key, err error) {
	if len(o.names) == 0 {
		has, err := o.selected()
		if err != nil {
			return nil, nil, err
		}
		for _, k := range w.Servers(o.namespace) {
			if it, err := w.reg.Get(k.Kind, k.Namespace, k.Name); err == nil && has(it.Object) {
				keys = append(keys, k)
			}
		}
		if len(keys) == 0 && o.selector != "" {
			return nil, nil, usagef("no MCPServer with the labels %s", o.selector)
		}
		if len(keys) == 0 {
			return nil, nil, usagef("there is no MCPServer manifest to lock")
		}
		return keys, nil, nil
	}
	for _, name := range o.names {
		it, err := w.reg.Get(v1.KindMCPServer, o.namespace, strings.TrimPrefix(name, "mcpserver/"))
		if err == nil {
			if it.Object.Head().Broken() {
				return nil, nil, v1.NewValidationError(v1.ManifestInvalid, "", it.Reasons)
			}
			keys = append(keys, it.Object.Head().Key())
			continue
		}
		k := v1.Key{Kind: v1.KindMCPServer, Namespace: v1.DefaultNamespace, Name: name}
		if ns, local, ok := strings.Cut(name, "/"); ok {
			k.Namespace, k.Name = ns, local
		} else if o.namespace != "" {
			k.Namespace = o.namespace
		}
		if !o.update || old.Server(k) == nil {
			return nil, nil, err
		}
		gone = append(gone, k)
	}
	return keys, gone, nil
}

// report says what differs from the lock.
func (o *lockOptions) report(format, path string, old lock.File, now []lock.Server, down []mcp.ServerState) error {
	drift := old.Drift(now)
	tools := 0
	for _, s := range now {
		tools += len(s.Tools)
	}
	if format == "json" {
		if err := printJSON(o.out, driftReport(drift, down)); err != nil {
			return err
		}
	} else {
		o.printDrift(drift)
		if len(drift)+len(down) == 0 {
			fmt.Fprintf(o.out, "%s is up to date: %s, %s\n", path, count(len(now), "server"), count(tools, "tool"))
		}
	}
	switch {
	case len(drift) > 0:
		return statusError{exitFailed, fmt.Sprintf("%s from %s", count(len(drift), "difference"), path)}
	case len(down) > 0:
		return unavailable(down)
	}
	return nil
}

// unavailable is the error for servers that could not be asked.
func unavailable(down []mcp.ServerState) error {
	var names []string
	for _, s := range down {
		names = append(names, objectName(s.Key))
	}
	return statusError{exitUnavailable, "not ready: " + strings.Join(names, ", ")}
}

// printDrift prints each difference, with the texts before and after where there are some.
func (o *lockOptions) printDrift(drift []lock.Drift) {
	for _, d := range drift {
		fmt.Fprintln(o.out, clip.Line(inspect.Show(d.String())))
		if d.What != "title" && d.What != "description" && d.What != "annotations" && d.What != lock.Added {
			continue
		}
		o.printSide(red, "-", d.Old)
		o.printSide(green, "+", d.New)
	}
}

func (o *lockOptions) printSide(color, mark, text string) {
	if text == "" {
		return
	}
	for l := range strings.SplitSeq(text, "\n") {
		fmt.Fprintln(o.out, o.paint(color, "  "+mark+" "+clip.Line(inspect.Show(l))))
	}
}

// driftEntry is one difference, as lock --check -o json prints it.
type driftEntry struct {
	Namespace string `json:"namespace"`
	Server    string `json:"server"`
	Tool      string `json:"tool,omitempty"`
	What      string `json:"what"`
	Old       string `json:"old,omitempty"`
	New       string `json:"new,omitempty"`
}

type driftResult struct {
	UpToDate bool         `json:"up_to_date"`
	Drift    []driftEntry `json:"drift"`
	NotReady []string     `json:"not_ready,omitempty"`
}

func driftReport(drift []lock.Drift, down []mcp.ServerState) driftResult {
	r := driftResult{UpToDate: len(drift)+len(down) == 0, Drift: []driftEntry{}}
	for _, d := range drift {
		r.Drift = append(r.Drift, driftEntry{d.Server.Namespace, d.Server.Name, d.Tool, d.What, d.Old, d.New})
	}
	for _, s := range down {
		r.NotReady = append(r.NotReady, s.Key.Namespace+"/"+s.Key.Name)
	}
	return r
}
