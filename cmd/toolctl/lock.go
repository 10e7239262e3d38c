package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/lock"
)

type lockOptions struct {
	*app
	action.Lock
}

func newLockCmd(a *app) *cobra.Command {
	o := &lockOptions{app: a}
	cmd := &cobra.Command{
		Use:   "lock [NAME]...",
		Short: "Pin the tool definitions of MCP servers and detect drift",
		Long: `Write toolctl.lock: for each MCP server its identity and protocol version, and for each
of its tools the texts and hashes of the definition. With --locked, or with spec.locked
of a server, toolctl refuses tools that differ from the lock and serves the others.

lock adds servers that the file does not contain. If a server differs from the lock, the
command leaves its entry, reports it and exits with code 1: review the difference, then accept
it with --update. The lock file is toolctl.lock in this folder or the nearest parent that
has one, else in the current folder.

Output formats (-o) of --check: table, json.`,
		Annotations: formats("table", "json"),
		Example: `  toolctl lock
  toolctl lock --check
  toolctl lock --update files`,
		ValidArgsFunction: a.completeNames(v1.KindMCPServer),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.Update, "update", false, "accept the present definitions of the servers; with NAME, of these servers only")
	cmd.Flags().BoolVar(&o.Check, "check", false, "change nothing, and exit with code 1 if a server differs from the lock")
	bindSelector(cmd.Flags(), &o.Selector, "MCP servers")
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

func (o *lockOptions) run(ctx context.Context) error {
	o.Config = o.reaching(ctx)
	r, err := o.Run(ctx)
	if err != nil {
		return err
	}
	for _, k := range r.Added {
		fmt.Fprintf(o.out, "%s locked: %s\n", objectName(k), count(len(r.File.Server(k).Tools), "tool"))
	}
	for _, k := range r.Removed {
		fmt.Fprintf(o.out, "%s removed from the lock\n", objectName(k))
	}
	if o.Check && o.format() == "json" {
		if err := printJSON(o.out, driftReport(r)); err != nil {
			return err
		}
	} else {
		o.printDrift(r.Drift)
		if len(r.Added)+len(r.Removed)+len(r.Drift)+len(r.Down) == 0 {
			fmt.Fprintf(o.out, "%s is up to date: %s", r.Path, count(len(r.File.Servers), "server"))
			if tools := 0; o.Check {
				for _, s := range r.File.Servers {
					tools += len(s.Tools)
				}
				fmt.Fprintf(o.out, ", %s", count(tools, "tool"))
			}
			fmt.Fprintln(o.out)
		}
	}
	switch drift := count(len(r.Drift), "difference"); {
	case len(r.Drift) > 0 && o.Check:
		return statusError{exitFailed, drift + " from " + r.Path}
	case len(r.Drift) > 0:
		return statusError{exitFailed, drift + ": review it, then accept it with 'toolctl lock --update'"}
	case len(r.Down) > 0:
		var names []string
		for _, s := range r.Down {
			names = append(names, objectName(s.Key))
		}
		return statusError{exitUnavailable, "not ready: " + strings.Join(names, ", ")}
	}
	return nil
}

// printDrift prints each difference, with the old and the new text if there are any.
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
	lock.Drift
}

type driftResult struct {
	UpToDate bool         `json:"up_to_date"`
	Drift    []driftEntry `json:"drift"`
	NotReady []string     `json:"not_ready,omitempty"`
}

func driftReport(r *action.Locked) driftResult {
	d := driftResult{UpToDate: len(r.Drift)+len(r.Down) == 0, Drift: []driftEntry{}}
	for _, one := range r.Drift {
		d.Drift = append(d.Drift, driftEntry{one.Server.Namespace, one.Server.Name, one})
	}
	for _, s := range r.Down {
		d.NotReady = append(d.NotReady, s.Key.Namespace+"/"+s.Key.Name)
	}
	return d
}
