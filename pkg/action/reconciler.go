package action

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

// besideSet returns [Placeholders] for the objects of other sets, to which the manifests of a set may refer. Objects
// of the set itself must be among its manifests.
func besideSet(ctx context.Context, st store.Store, set string) ([]v1.Object, error) {
	list, err := st.List(ctx, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	var others []store.Record
	for _, r := range list.Records {
		if r.Set != set {
			others = append(others, r)
		}
	}
	return Placeholders(others), nil
}

// ReconcileSource is the part of [source.Remote] that a [reconciler] uses.
type ReconcileSource interface {
	gateway.Source
	// Pull makes the source check for a new revision at once.
	Pull()
	// Status returns the revision that was loaded last.
	Status() source.Status
	// Remember is called before the first Load.
	Remember(source.Memory)
}

// How a [reconciler] treats overrides that make the served text differ from the source.
const (
	KeepOverrides   = "keep"   // overrides stay, and are logged once
	ReportOverrides = "report" // overrides stay, and are logged as a warning
	RemoveOverrides = "remove"
)

// reconciled is the result of one round of a [reconciler].
type reconciled struct {
	// Report is nil if nothing had to change.
	Report  *diff.Report
	Changes []store.Change
	// Overrides are those that make the served text of the set differ from the source.
	Overrides []Overridden
}

// Overridden is an object, and the override that replaces its text.
type Overridden struct {
	Key v1.Key
	By  store.Override
}

// reconciler keeps a set of a store equal to a source.
type reconciler struct {
	Remote ReconcileSource
	Store  store.Store
	// Set names the set.
	Set string
	// Overrides is [KeepOverrides], [ReportOverrides] or [RemoveOverrides]. Default: they are kept.
	Overrides string
	// Options returns the options for applying a revision. The reconciler itself sets Set, Command, Source and
	// Commit.
	Options func(set *manifest.Set) store.ApplyOptions

	remembers bool
}

// applied gives a source the last applied commit, from the revisions of the set.
type applied struct{ *reconciler }

// Last returns the commit that was reconciled last. Commits restored by an undo do not count.
func (a applied) Last(ctx context.Context) (string, error) {
	all, err := a.Store.Revisions(ctx, store.RevisionQuery{Set: a.Set})
	for _, r := range slices.Backward(all) {
		if r.UndoOf == 0 && r.Commit != "" && r.Source == a.Remote.Status().Source {
			return r.Commit, err
		}
	}
	return "", err
}

// Use implements [source.Memory].
func (a applied) Use(context.Context, string) error { return nil }

// Once pulls and applies the newest revision. If it returns an error, nothing was applied. The error is that of the
// source, or holds a [store.SetError].
func (r *reconciler) Once(ctx context.Context) (reconciled, error) {
	if !r.remembers {
		r.Remote.Remember(applied{r})
		r.remembers = true
	}
	set, err := r.Remote.Load(ctx)
	if err != nil {
		return reconciled{}, err
	}
	s, options := r.Remote.Status(), r.Options(set)
	options.Set, options.Command, options.Source, options.Commit = r.Set, "reconcile", s.Source, s.Revision
	report, changes, err := plan.Reconcile(ctx, r.Store, set.Objects, options)
	if errors.As(err, new(*store.SetError)) {
		err = fmt.Errorf("nothing was applied: %w: remove it from one of the sets, or take it over with --take-over", err)
	}
	if err != nil {
		return reconciled{}, err
	}
	over, err := r.overrides(ctx, set.Objects, options)
	return reconciled{report, changes, over}, err
}

// overrides returns the overrides of objects of the set, and removes them with [RemoveOverrides].
func (r *reconciler) overrides(ctx context.Context, objects []v1.Object, options store.ApplyOptions) ([]Overridden, error) {
	all, err := r.Store.Overrides(ctx)
	if err != nil {
		return nil, err
	}
	var found []Overridden
	for _, by := range all {
		at := slices.IndexFunc(objects, by.Drifts)
		if at < 0 {
			continue
		}
		found = append(found, Overridden{objects[at].Head().Key(), by})
		if r.Overrides == RemoveOverrides && !options.DryRun {
			if _, err := r.Store.SetOverride(ctx, store.Override{Namespace: by.Namespace, Tool: by.Tool, Author: options.By}); err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// Follow reconciles with each revision of the source until ctx ends. It logs a repeated error or override once.
func (r *reconciler) Follow(ctx context.Context, log *slog.Logger) error {
	news, err := r.Remote.Watch(ctx, nil)
	if err != nil {
		return err
	}
	r.Remote.Pull() // for the first revision
	told, drift := "", ""
	for range news {
		did, err := r.Once(ctx)
		switch revision := r.Remote.Status().Revision; {
		case ctx.Err() != nil:
		case err != nil:
			if text := err.Error(); text != told {
				told = text
				log.Error("nothing was changed", "set", r.Set, "applied", revision, "error", text)
			}
		case did.Report != nil:
			told = ""
			by := map[store.Action]int{}
			for _, c := range did.Changes {
				by[c.Action]++
			}
			log.Info("applied", "set", r.Set, "commit", revision, "created", by[store.Created], "configured", by[store.Configured],
				"pruned", by[store.Pruned], "unchanged", by[store.Unchanged], "breaking", did.Report.Fails(diff.Breaking))
		case told != "":
			told = ""
			log.Info("the store matches the source again", "set", r.Set, "commit", revision)
		}
		if err == nil {
			drift = r.tell(ctx, log, did.Overrides, drift)
		}
	}
	return nil
}

// tell logs the overrides in one line if they differ from before, and returns them as text for the next call.
func (r *reconciler) tell(ctx context.Context, log *slog.Logger, all []Overridden, before string) string {
	texts := make([]string, len(all))
	for i := range all {
		texts[i] = all[i].By.Drift()
	}
	now := strings.Join(texts, "\n")
	if now == "" || now == before {
		return now
	}
	level, message := slog.LevelInfo, "the served text differs from the source"
	switch r.Overrides {
	case ReportOverrides:
		level = slog.LevelWarn
	case RemoveOverrides:
		message = "overrides are removed"
	}
	log.Log(ctx, level, message, "set", r.Set, "overrides", clip.Some(texts))
	return now
}
