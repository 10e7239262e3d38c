package action

import (
	"context"
	"errors"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/store"
)

// Selection says which objects of the files are applied or compared, and as which set.
type Selection struct {
	// Set names the set. Default: the paths.
	Set string
	// Selector chooses objects by labels, such as team=pay,tier!=old. Default: all.
	Selector string
	// Prune deletes objects of the set that the files no longer contain.
	Prune bool
	// AllowEmpty lets Prune delete the whole set when the files are gone or hold no objects.
	AllowEmpty bool
	// TakeOver moves objects from other sets into this one.
	TakeOver bool
}

// selected is what the files contain, and the store that it is applied to or compared with.
type selected struct {
	set      *manifest.Set
	warnings []v1.Violation
	store    store.Store
	records  []store.Record // what the store has, for a comparison only
	options  store.ApplyOptions
	kept     keptObjects
}

// List returns the records of the store as they were when it was opened, for [plan.Lister].
func (s *selected) List(context.Context, store.ListOptions) (store.List, error) {
	return store.List{Records: s.records, Total: len(s.records)}, nil
}

// storeUse says how much of the store a verb needs.
type storeUse int

const (
	change  storeUse = iota // it is made when it does not exist
	compare                 // one that does not exist is empty
	without                 // the files are looked at on their own
)

// read reads and checks the manifests and opens the store.
func (s Selection) read(ctx context.Context, c *Config, l storeUse) (_ *selected, err error) {
	if len(c.Files) == 0 {
		return nil, usagef("name the manifests to apply with -f")
	}
	has, err := Labeled(s.Selector)
	if err != nil {
		return nil, err
	}
	if s.Prune && s.Selector != "" {
		return nil, usagef("--prune and -l cannot be used together: what -l leaves out would be removed")
	}
	in := &selected{kept: keptObjects{}}
	in.options = store.ApplyOptions{Set: s.Set, Prune: s.Prune, By: c.By}
	if s.Set == "" {
		in.options.Others = store.LeaveOthers
		if s.Prune && slices.Contains(c.Files, "-") {
			return nil, usagef("--prune of stdin needs --set, which names what was applied before")
		}
		if in.options.Set, err = plan.SetName(c.Files); err != nil {
			return nil, err
		}
	}
	if s.TakeOver {
		in.options.Others = store.TakeOthers
	}
	defer func() {
		if err != nil && in.store != nil {
			err = errors.Join(err, in.store.Close())
		}
	}()
	none := l == without
	if !none {
		in.store, err = c.OpenStore(ctx, false)
		none = missing(err)
	}
	if err == nil && !none {
		var list store.List
		list, err = in.store.List(ctx, store.ListOptions{})
		in.records = list.Records
	}
	if err != nil && !none {
		return nil, err
	}
	in.set, in.warnings, err = c.Load(ctx, Reading{Beside: Placeholders(in.records), Places: l == compare && len(c.Overlays) > 0, Layout: l == change, AllowEmpty: s.AllowEmpty})
	if err != nil {
		return nil, err
	}
	in.set.Objects = slices.DeleteFunc(in.set.Objects, func(obj v1.Object) bool { return !has(obj) })
	if err := s.checkEmpty(c, in.set.Objects); err != nil {
		return nil, err
	}
	if none { // it is made only now that there is something to put into it
		if l == change {
			in.store, err = c.OpenStore(ctx, true)
		} else {
			in.store, err = emptyStore(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	given := make(map[v1.Key]bool, len(in.set.Objects))
	for _, obj := range in.set.Objects {
		given[obj.Head().Key()] = true
	}
	in.records = slices.DeleteFunc(in.records, func(r store.Record) bool { return l == change || given[r.Key()] })
	in.options.Keep = in.kept.keep(in.set, c.Namespace)
	dropPlaces(c, in.set.Objects)
	return in, nil
}

func (s Selection) checkEmpty(c *Config, objects []v1.Object) error {
	files := strings.Join(c.Files, ", ")
	switch {
	case len(objects) > 0:
	case s.Selector != "":
		return usagef("%s: no objects with the labels %s", files, s.Selector)
	case s.AllowEmpty:
	case s.Prune:
		return usagef("%s: no objects: --prune would remove all of the set; --allow-empty says that this is meant", files)
	default:
		return usagef("%s: no objects to apply", files)
	}
	return nil
}

// dropPlaces lets go of the places of all fields, which stdin is read with: the store would be ten
// times as large with them.
func dropPlaces(c *Config, objects []v1.Object) {
	if !slices.Contains(c.Files, "-") {
		return
	}
	for _, obj := range objects {
		if h := obj.Head(); h.Kind != v1.KindToolPolicy && h.Kind != v1.KindScenario {
			h.Fields = nil
		}
	}
}

// keptObjects are those that are not pruned because they ask for it.
type keptObjects map[v1.Key]bool

// keep says which objects of the set stay although the manifests do not have them.
func (k keptObjects) keep(set *manifest.Set, namespace string) func(store.Record) bool {
	skipped := plan.Skipped(set.Skipped, namespace)
	return func(r store.Record) bool {
		if plan.KeepsObject(r) {
			k[r.Key()] = true
			return true
		}
		return skipped != nil && skipped(r)
	}
}

func (k keptObjects) keys() []v1.Key {
	keys := make([]v1.Key, 0, len(k))
	for key := range k {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b v1.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}
