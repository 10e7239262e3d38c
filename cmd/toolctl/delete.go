package main

import (
	"strings"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

type deleteOptions struct {
	*app
	action.Delete
	mode dryRunMode
}

func newDeleteCmd(a *app) *cobra.Command {
	o := &deleteOptions{app: a}
	cmd := &cobra.Command{
		Use:        "delete (KIND/NAME... | KIND -l LABELS | -f PATH)",
		SuggestFor: []string{"rm", "remove"},
		Short:      "Delete objects from the store",
		Long: `Delete objects from the store in one transaction. With -f, toolctl deletes the objects
that the files declare; the files stay. With -l, it deletes all objects of a kind that
have the labels.

Output formats (-o): table (one line per object), name, json.`,
		Annotations: formats("table", "name", "json"),
		Example: `  toolctl delete tool/get-weather
  toolctl delete tools get-weather get-news
  toolctl delete tools -l toolctl.dev/group=github
  toolctl delete -f manifests/`,
		ValidArgsFunction: a.completeResources,
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd, args) },
	}
	f := cmd.Flags()
	f.StringVarP(&o.Selector, "selector", "l", "", "labels of the objects to delete, such as team=pay,tier!=old")
	bindDryRun(f, &o.mode, "print what would be deleted without deleting it")
	f.BoolVar(&o.IgnoreMissing, "ignore-not-found", false, "succeed if an object does not exist")
	return cmd
}

func (o *deleteOptions) run(cmd *cobra.Command, args []string) error {
	rs, err := requests(args)
	if err != nil {
		return o.meant(cmd, err)
	}
	byLabels := cmd.Flags().Changed("selector")
	switch {
	case byLabels && (len(rs) == 0 || hasNames(rs) || len(o.conf.Files) > 0):
		return usagef("-l selects objects of one kind: 'toolctl delete tools -l LABELS'")
	case byLabels && strings.TrimSpace(o.Selector) == "":
		return usagef("-l is empty, which would select every object: name labels, such as team=pay")
	case !byLabels && (named(rs) == (len(o.conf.Files) > 0) || len(rs) > 0 && !named(rs)):
		return usagef("name what to delete as KIND/NAME, with -l, or with -f")
	}
	o.Config, o.Requests, o.DryRun = o.stored(cmd.Context()), rs, o.mode.on()
	changes, err := o.Run(cmd.Context())
	if err != nil {
		return err
	}
	if len(changes) == 0 && o.format() == "table" && byLabels {
		return o.done(nil, "no objects have the labels %s", o.Selector)
	}
	return o.printChanges(changes, o.DryRun)
}
