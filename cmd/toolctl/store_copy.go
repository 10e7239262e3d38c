package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/store"
)

func newStoreCopyCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "copy FROM TO",
		Short: "Make a new store a copy of another one, of another kind too",
		Long: `Copy a store, as it is at one moment, into one that is empty or is made by it: the manifests
with their versions and revisions, the counts of policies, the calls and the runs that
wait for approval, the overrides, and the audit byte for byte, so that its chain verifies as
before. All of it is copied or nothing. FROM and TO are what --store takes.

Stop the gateways first: what is written to FROM after that moment is not in TO.`,
		Example: `  toolctl store copy .toolctl/state.db postgres://toolctl@db/toolctl
  toolctl store copy postgres://toolctl@db/toolctl copy.db`,
		Args: exactArgs(2, "the store to copy and the one to make"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(a.files) > 0 {
				return errNotFiles
			}
			return a.copyStore(cmd.Context(), args[0], args[1])
		},
	}
}

func (a *app) copyStore(ctx context.Context, fromDSN, toDSN string) error {
	from, err := a.stored(ctx).OpenNamed(ctx, fromDSN, false)
	if err != nil {
		return err
	}
	defer a.closing(from)
	// What is damaged would be copied as it is, and its loss be found when the old store is gone.
	fromShown, _ := store.Shown(fromDSN)
	switch found, err := store.Check(ctx, from); {
	case err != nil:
		return err
	case len(found.Problems) > 0:
		return statusError{exitFailed, fmt.Sprintf("the store to copy, %q, is damaged, and nothing was copied: %s: copy a backup of it, or begin a new store with 'toolctl apply'", fromShown, strings.Join(found.Problems, "; "))}
	}
	to, err := a.stored(ctx).OpenNamed(ctx, toDSN, true)
	if err != nil {
		return err
	}
	defer a.closing(to)
	shown, _ := store.Shown(toDSN)
	switch err := store.Copy(ctx, to, from); {
	case errors.Is(err, store.ErrNoCopy):
		return usageError{err}
	case errors.Is(err, store.ErrNotEmpty):
		return statusError{exitInvalid, fmt.Sprintf("store %q: %s: a copy holds nothing but the other store; name one that does not exist yet", shown, store.ErrNotEmpty)}
	case err != nil:
		return err
	}
	r, err := store.Check(ctx, to)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "copied to %s: %s, head %s\n", shown, reportText(&r), r.Audit.Head)
	return err
}
