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

// Selection selects the objects of the files that are applied or compared, and names their set.
type Selection struct {
	// Set is the name of the set. Default: the paths.
	Set string
	// Selector selects objects by labels, such as team=pay,tier!=old. Default: all.
	Selector string
	// Prune deletes objects of the set that the files no longer contain.
	Prune bool
	// AllowEmpty allows Prune to delete the whole set when the files are missing or have no objects.
	AllowEmpty bool
	// TakeOver moves objects from other sets into this one.
	TakeOver bool
}

// selected are the objects of the files, and the store to which they are applied or compared.
type selected struct {
	set      *manifest.Set
	warnings []v1.Violation
	store    store.Store
	records  []store.Record // the contents of the store, only for a comparison
	options  store.ApplyOptions
	kept     keptObjects
}

// List returns the records of the store at the time it was opened, for [plan.Lister].
func (s *selected) List(context.Context, store.ListOptions) (store.List, error) {
	return store.List{Records: s.records, Total: len(s.records)}, nil
}

// storeUse is how a verb uses the store.
type storeUse int

const (
	change  storeUse = iota // the store is created if it does not exist
	compare                 // a missing store counts as empty
	without                 // only the files are checked
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
		return nil, usagef("--prune and -l cannot be used together: --prune would delete what -l leaves out")
	}
	in := &selected{kept: keptObjects{}}
	in.options = store.ApplyOptions{Set: s.Set, Prune: s.Prune, By: c.By}
	if s.Set == "" {
		in.options.Others = store.LeaveOthers
		if s.Prune && slices.Contains(c.Files, "-") {
			return nil, usagef("--prune with -f - needs --set, which names the set to prune")
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
	if none { // create the store only if there are objects to store
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
		return usagef("%s: no objects: --prune would delete the whole set; pass --allow-empty to allow that", files)
	default:
		return usagef("%s: no objects to apply", files)
	}
	return nil
}

// dropPlaces removes the positions of fields, which objects from stdin have: they would make the store ten
// times as large.
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

// keptObjects are the objects that are not pruned because of their annotation.
type keptObjects map[v1.Key]bool

// keep returns a function that reports which objects of the set stay although the manifests do not have them.
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
