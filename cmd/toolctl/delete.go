package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

type deleteOptions struct {
	*app
	selector      string
	dryRun        bool
	ignoreMissing bool
}

func newDeleteCmd(a *app) *cobra.Command {
	o := &deleteOptions{app: a}
	cmd := &cobra.Command{
		Use:        "delete (KIND/NAME... | KIND -l LABELS | -f PATH)",
		SuggestFor: []string{"rm", "remove"},
		Short:      "Remove objects from the store",
		Long: `Remove objects from the store, all or nothing. With -f the objects that the
files name are removed; the files stay. With -l all objects of a kind that have
the labels are removed.

Output formats (-o): table (a line an object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl delete tool/get-weather
  toolctl delete tools get-weather get-news
  toolctl delete tools -l toolctl.dev/group=github
  toolctl delete -f manifests/`,
		ValidArgsFunction: a.completeResources,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "labels of the objects to remove, such as team=pay,tier!=old")
	f.BoolVar(&o.dryRun, "dry-run", false, "say what would be removed, and remove nothing")
	f.BoolVar(&o.ignoreMissing, "ignore-not-found", false, "succeed when an object is not there")
	return cmd
}

func (o *deleteOptions) run(cmd *cobra.Command, args []string) error {
	ctx := cmd.Context()
	format := o.format()
	rs, err := requests(args)
	if err != nil {
		return o.meant(cmd, err)
	}
	byLabels := cmd.Flags().Changed("selector")
	switch {
	case byLabels && (len(rs) == 0 || hasNames(rs) || len(o.files) > 0):
		return usagef("-l chooses among the objects of a kind: 'toolctl delete tools -l LABELS'")
	case byLabels && strings.TrimSpace(o.selector) == "":
		return usagef("-l is empty, which would choose every object: name labels, such as team=pay")
	case !byLabels && (named(rs) == (len(o.files) > 0) || len(rs) > 0 && !named(rs)):
		return usagef("name what to delete as KIND/NAME, with -l, or with -f")
	}
	s, err := o.openStore(ctx, false)
	if err != nil {
		return err
	}
	defer o.closing(s)
	var keys []v1.Key
	if len(o.files) > 0 {
		set, err := manifest.Load(ctx, o.files, o.manifestOptions(ctx))
		if err != nil {
			return usageError{err}
		}
		violations, err := o.intoNamespace(set.Objects)
		if err != nil {
			return err
		}
		if len(violations) > 0 {
			return v1.NewValidationError(v1.ManifestInvalid, "", violations)
		}
		for _, obj := range set.Objects {
			keys = append(keys, obj.Head().Key())
		}
	} else if keys, err = o.keys(cmd, s, rs); err != nil {
		return err
	}
	there, err := o.present(cmd, s, keys)
	if err != nil {
		return err
	}
	if keys = nil; !o.dryRun {
		for i := range there {
			keys = append(keys, there[i].Key())
		}
		if there, err = s.Delete(ctx, keys, store.DeleteOptions{By: o.whoami()}); err != nil {
			return err
		}
	}
	if len(there) == 0 && format == "table" && byLabels {
		_, err := fmt.Fprintf(o.out, "nothing has the labels %s\n", o.selector)
		return err
	}
	changes := make([]store.Change, len(there))
	for i := range there {
		changes[i] = store.Change{Key: there[i].Key(), Action: "deleted", Before: &there[i]}
	}
	return o.printChanges(format, changes, o.dryRun)
}

// keys finds the objects that names mean, with the rules of every other command.
func (o *deleteOptions) keys(cmd *cobra.Command, s store.Store, rs []request) ([]v1.Key, error) {
	objects, err := storedObjects(cmd.Context(), s, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	reg, err := registry.New(objects, registry.Options{})
	if err != nil {
		return nil, err
	}
	var keys []v1.Key
	for _, r := range rs {
		if o.selector != "" {
			page, err := reg.List(registry.Query{Kind: r.kind, Namespace: o.namespace, Selector: o.selector})
			if err != nil {
				return nil, usagef("-l: %w", err)
			}
			for _, it := range page.Items {
				keys = append(keys, it.Object.Head().Key())
			}
		}
		for _, n := range r.names {
			it, err := reg.Get(r.kind, o.namespace, n)
			var missing *v1.NotFoundError
			if o.ignoreMissing && errors.As(err, &missing) && !missing.Ambiguous {
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

// present drops duplicate keys and, with --ignore-not-found, those that are not there.
func (o *deleteOptions) present(cmd *cobra.Command, s store.Store, keys []v1.Key) ([]store.Record, error) {
	var out []store.Record
	for _, k := range keys {
		if slices.ContainsFunc(out, func(r store.Record) bool { return r.Key() == k }) {
			continue
		}
		rec, err := s.Get(cmd.Context(), k)
		var missing *v1.NotFoundError
		if errors.As(err, &missing) && o.ignoreMissing {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, rec)
	}
	return out, nil
}
