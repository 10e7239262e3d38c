package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/auditlog"
)

func newAuditAnchorCmd(a *app) *cobra.Command {
	o := &anchorOptions{app: a}
	cmd := &cobra.Command{
		Use:   "anchor --to FILE|URL",
		Short: "Record the head of the audit log outside the store",
		Long: `Write the current head of the audit log to a file or an HTTP address outside the store.
Somebody with write access to the store can rewrite the whole chain, but not a head
recorded elsewhere. 'toolctl audit verify --head HASH' then checks that the record with
that hash still exists.

Each anchor is a line of JSON with the time, the number of records and the head. A file gets
one more line, an address gets a POST request. With --interval the command runs until you stop
it and writes a new anchor whenever the head has changed. It logs failed writes and
tries them again.`,
		Example: `  toolctl audit anchor --to /mnt/worm/heads.jsonl
  toolctl audit anchor --to https://log.example.com/heads --interval 5m`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return (&action.Audit{Config: a.stored(cmd.Context())}).Run(cmd.Context(), func(s store.Store, _ store.AuditFilter) error { return o.run(cmd.Context(), s) })
		},
	}
	cmd.Flags().StringVar(&o.to, "to", "", "file to append to, or http or https address to post to")
	cmd.Flags().DurationVar(&o.interval, "interval", 0, "repeat at this interval, such as 5m (default: once)")
	_ = cmd.MarkFlagRequired("to")
	return cmd
}

type anchorOptions struct {
	*app
	to       string
	interval time.Duration
}

func (o *anchorOptions) check() error {
	if o.interval < 0 || o.interval > 0 && o.interval < time.Second {
		return usagef("--interval %s: expected 1s or more, or 0 for once", o.interval)
	}
	if err := (&auditlog.Anchor{To: o.to}).Check(); err != nil {
		return usagef("--to: %w", err)
	}
	return nil
}

func (o *anchorOptions) run(ctx context.Context, s store.Audit) error {
	shown, _ := store.Shown(o.to)
	anchor := &auditlog.Anchor{To: o.to, Noted: func(head store.AuditHead) error {
		_, err := fmt.Fprintf(o.out, "head %s after %s written to %s\n", head.Hash, count(int(head.Lines), "line"), shown)
		return err
	}}
	err := anchor.Note(ctx, s)
	if away := new(auditlog.UnreachableError); errors.As(err, &away) {
		return statusError{exitUnavailable, err.Error()}
	}
	if err != nil || o.interval == 0 {
		return err
	}
	o.lasting = true // the command runs until it is stopped
	anchor.Follow(ctx, s, o.interval, func(err error) {
		o.logger().Warn("the head of the audit log was not written", slog.Any("error", err))
	})
	return nil
}
