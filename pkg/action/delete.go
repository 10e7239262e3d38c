package action

import (
	"context"
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

// Request names objects of one kind.
type Request struct {
	// Kind is one of [v1.Kinds]; "" means all kinds if the verb allows it.
	Kind string
	// Names are names in any form that [registry.Registry.Get] accepts. Default: all objects of the kind.
	Names []string
}

// Delete deletes objects from the store in one transaction: the objects of Requests, or without Requests those
// that the files declare.
type Delete struct {
	*Config
	Requests []Request
	// Selector selects objects of the kinds in Requests by their labels.
	Selector string
	DryRun   bool
	// IgnoreMissing skips names of objects that do not exist.
	IgnoreMissing bool
}

// Run deletes the objects and returns them.
func (d *Delete) Run(ctx context.Context) (changes []Change, err error) {
	err = d.withStore(ctx, false, func(s store.Store) error {
		find := d.named
		if len(d.Requests) == 0 {
			find = d.ofFiles
		}
		keys, err := find(ctx, s)
		if err != nil {
			return err
		}
		records, err := d.existing(ctx, s, keys)
		if err != nil {
			return err
		}
		if !d.DryRun {
			keys = nil
			for i := range records {
				keys = append(keys, records[i].Key())
			}
			if records, err = s.Delete(ctx, keys, store.DeleteOptions{By: d.By}); err != nil {
				return err
			}
		}
		all := make([]store.Change, len(records))
		for i := range records {
			all[i] = store.Change{Key: records[i].Key(), Action: "deleted", Before: &records[i]}
		}
		changes = Changes(all)
		return nil
	})
	return changes, err
}

func (d *Delete) ofFiles(ctx context.Context, _ store.Store) ([]v1.Key, error) {
	set, err := manifest.Load(ctx, d.Files, d.manifests())
	if err != nil {
		return nil, &UsageError{err}
	}
	violations, err := d.intoNamespace(set.Objects)
	if err != nil {
		return nil, err
	}
	if len(violations) > 0 {
		return nil, v1.NewValidationError(v1.ManifestInvalid, "", violations)
	}
	var keys []v1.Key
	for _, obj := range set.Objects {
		keys = append(keys, obj.Head().Key())
	}
	return keys, nil
}

// named finds objects by their names, with the same rules as other verbs.
func (d *Delete) named(ctx context.Context, s store.Store) ([]v1.Key, error) {
	reg, err := namesOf(ctx, s)
	if err != nil {
		return nil, err
	}
	var keys []v1.Key
	for _, r := range d.Requests {
		if d.Selector != "" {
			page, err := reg.List(registry.Query{Kind: r.Kind, Namespace: d.Namespace, Selector: d.Selector})
			if err != nil {
				return nil, usagef("-l: %w", err)
			}
			for _, it := range page.Items {
				keys = append(keys, it.Object.Head().Key())
			}
		}
		for _, n := range r.Names {
			it, err := reg.Get(r.Kind, d.Namespace, n)
			var missing *v1.NotFoundError
			if d.IgnoreMissing && errors.As(err, &missing) && !missing.Ambiguous {
				continue
			}
			if err != nil {
				return nil, err
			}
			keys = append(keys, it.Object.Head().Key())
		}
	}
	return keys, nil
}

// existing reads the records of the keys, each once.
func (d *Delete) existing(ctx context.Context, s store.Store, keys []v1.Key) ([]store.Record, error) {
	var out []store.Record
	read := map[v1.Key]bool{}
	for _, k := range keys {
		if read[k] {
			continue
		}
		read[k] = true
		rec, err := s.Get(ctx, k)
		var missing *v1.NotFoundError
		if errors.As(err, &missing) && d.IgnoreMissing {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}

// namesOf returns a registry of the objects in a store, for finding them by name.
func namesOf(ctx context.Context, s store.Objects) (*registry.Registry, error) {
	objects, err := Objects(ctx, s, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	return registry.New(objects, registry.Options{})
}
