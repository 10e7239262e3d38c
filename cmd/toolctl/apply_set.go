package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/backends"
)

// setOptions are what apply and diff have in common: which manifests, and of which set.
type setOptions struct {
	*app
	prune    bool
	set      string
	takeOver bool
	alone    bool // the manifests are looked at without the store
}

func (o *setOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.prune, "prune", false, "remove what an earlier apply of this set put there")
	f.BoolVar(&o.allowEmpty, "allow-empty", false, "let --prune remove all of the set when the files are gone or hold nothing")
	o.bindSelector(f, "objects")
	f.StringVar(&o.set, "set", "", "name of the set (default: the paths given with -f)")
	f.BoolVar(&o.takeOver, "take-over", false, "take objects that belong to other sets into this one")
}

// applyInput is what is applied, and to what.
type applyInput struct {
	set     *manifest.Set
	store   store.Store
	records []store.Record // what it has, when it is only to be looked at
	options store.ApplyOptions
	named   bool // the set has a name, and is not the paths

	kept map[v1.Key]bool // what asks not to be pruned
}

// List is what the store had besides the manifests when it was opened, for [plan.Lister].
func (in *applyInput) List(context.Context, store.ListOptions) (store.List, error) {
	return store.List{Records: in.records, Total: len(in.records)}, nil
}

// open reads and checks the manifests and opens the store. One that is not there is made,
// unless it is only to be looked at: then it is empty.
func (o *setOptions) open(ctx context.Context, look bool) (_ *applyInput, err error) {
	if len(o.files) == 0 {
		return nil, usagef("name the manifests to apply with -f")
	}
	has, err := o.selected()
	if err != nil {
		return nil, err
	}
	if o.prune && o.selector != "" {
		return nil, usagef("--prune and -l cannot be used together: what -l leaves out would be removed")
	}
	in := &applyInput{named: o.set != "", kept: map[v1.Key]bool{}}
	in.options = store.ApplyOptions{Set: o.set, Prune: o.prune, By: o.whoami()}
	if !in.named {
		in.options.Others = store.LeaveOthers
		if o.prune && slices.Contains(o.files, "-") {
			return nil, usagef("--prune of stdin needs --set, which names what was applied before")
		}
		if in.options.Set, err = plan.SetName(o.files); err != nil {
			return nil, err
		}
	}
	if o.takeOver {
		in.options.Others = store.TakeOthers
	}
	defer func() {
		if err != nil && in.store != nil {
			o.closing(in.store)
		}
	}()
	missing := o.alone
	if !missing {
		in.store, err = o.openStore(ctx, false)
		missing = errors.As(err, new(usageError)) // it is made when there is something to put into it
	}
	if err == nil && !missing {
		var list store.List
		list, err = in.store.List(ctx, store.ListOptions{})
		in.records = list.Records
	}
	if err != nil && !missing {
		return nil, err
	}
	o.layout = !look
	if in.set, err = o.loadAll(ctx, gateway.Applied(in.records)); err != nil {
		return nil, err
	}
	in.set.Objects = slices.DeleteFunc(in.set.Objects, func(obj v1.Object) bool { return !has(obj) })
	switch empty := len(in.set.Objects) == 0; {
	case empty && o.selector != "":
		return nil, usagef("%s: no objects with the labels %s", strings.Join(o.files, ", "), o.selector)
	case empty && !o.allowEmpty && o.prune:
		return nil, usagef("%s: no objects: --prune would remove all of the set; --allow-empty says that this is meant", strings.Join(o.files, ", "))
	case empty && !o.allowEmpty:
		return nil, usagef("%s: no objects to apply", strings.Join(o.files, ", "))
	}
	if missing {
		if look {
			in.store, err = emptyStore(ctx) // all would be created
		} else {
			in.store, err = o.openStore(ctx, true)
		}
		if err != nil {
			return nil, err
		}
	}
	given := make(map[v1.Key]bool, len(in.set.Objects))
	for _, obj := range in.set.Objects {
		given[obj.Head().Key()] = true
	}
	in.records = slices.DeleteFunc(in.records, func(r store.Record) bool { return !look || given[r.Key()] })
	in.options.Keep = o.keep(in.set, in)
	return in, nil
}

// emptyStore stands for a store that is not there and is not to be made.
func emptyStore(ctx context.Context) (store.Store, error) {
	return backends.All().Open(ctx, "memory:", store.Options{Create: true})
}

// keep says which objects of the set stay although the manifests do not have them.
func (o *setOptions) keep(set *manifest.Set, in *applyInput) func(store.Record) bool {
	skipped := plan.Skipped(set.Skipped, o.namespace)
	return func(r store.Record) bool {
		if plan.KeepsObject(r) {
			in.kept[r.Key()] = true
			return true
		}
		return skipped != nil && skipped(r)
	}
}

// from says where the manifests come from, and how many revisions are kept.
func (o *applyOptions) from(ctx context.Context, in *applyInput, options *store.ApplyOptions) {
	if options.DryRun = o.dryRun(); options.DryRun {
		return
	}
	options.Source, options.Commit = strings.Join(o.files, ", "), source.Commit(ctx, o.files, in.set.Objects)
	options.History, options.ChangesOnly = keptHistory(o.history), true
}

// lean lets go of the places of all fields, which check has of stdin: a store of them would
// be ten times as large.
func (o *setOptions) lean(in *applyInput) {
	for _, obj := range in.set.Objects {
		if h := obj.Head(); h.Kind != v1.KindToolPolicy && h.Kind != v1.KindScenario && slices.Contains(o.files, "-") {
			h.Fields = nil
		}
	}
}

// warnKept says what was not pruned because it asks for that.
func (in *applyInput) warnKept(w io.Writer) {
	keys := make([]v1.Key, 0, len(in.kept))
	for k := range in.kept {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b v1.Key) int { return strings.Compare(a.String(), b.String()) })
	for _, k := range keys {
		fmt.Fprintf(w, "%s is kept, and stays in the set: it has the annotation %s: disabled\n", objectName(k), plan.PruneAnnotation)
	}
}
