package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/scenario"
)

type recordOptions struct {
	*app
	action.Record
}

func newRecordCmd(a *app) *cobra.Command {
	o := &recordOptions{app: a}
	cmd := &cobra.Command{
		Use:   "record --cassette FILE -- call|serve ...",
		Short: "Record real calls for scenarios to replay",
		Long: `Run call or serve and record the requests to the executors and their responses:
arguments, results, errors and times, in reviewable YAML. A scenario replays the file
with spec.mocks.NAME.cassette.

toolctl masks members named password, token and similar, those named with --redact, and
those in spec.redact of the tool. Review the file before you commit it. The command
replaces an existing cassette unless you pass --append.

--scenario also writes a Scenario manifest that repeats the recorded calls in their order
against the cassette. Add the results that you expect, and the decisions for calls that
need approval. It never replaces an existing file.`,
		Annotations: formats("content", "json", "yaml", "text", "curl"),
		Example: `  toolctl record -f tools/ --cassette weather.yaml -- call get-weather -a location=Oslo
  toolctl record -f tools/ --cassette weather.yaml --append -- call get-weather -a location=Bergen
  toolctl record -f tools/ --cassette session.yaml -- serve
  toolctl record -f tools/ --cassette cassettes/chat.yaml --scenario chat.yaml -- serve`,
		RunE: func(cmd *cobra.Command, args []string) error {
			inner := recordable(a, args)
			switch {
			case o.Cassette == "":
				return usagef("--cassette FILE is missing")
			case inner == nil:
				return usagef("expected a command to record: call or serve")
			}
			complete(inner)
			inner.SilenceErrors, inner.SilenceUsage = true, true
			inner.Flags().AddFlagSet(cmd.Root().PersistentFlags())
			inner.SetFlagErrorFunc(flagError)
			inner.PersistentPreRunE = a.checkFormat
			inner.SetArgs(args[1:])
			inner.SetOut(a.out)
			inner.SetErr(a.err)
			return o.run(cmd.Context(), inner)
		},
	}
	f := cmd.Flags()
	f.SetInterspersed(false) // flags after the inner command belong to that command
	f.StringVar(&o.Cassette, "cassette", "", "file to write")
	f.StringVar(&o.Scenario, "scenario", "", "also write a Scenario that repeats the recorded calls to this file")
	f.BoolVar(&o.Append, "append", false, "append to the cassette")
	f.StringArrayVar(&o.Redact, "redact", nil, "JSON pointer or name of members to mask; may be repeated")
	return cmd
}

// recordable returns the command to record, or nil if it makes no calls.
func recordable(a *app, args []string) *cobra.Command {
	if len(args) > 0 {
		switch args[0] {
		case "call":
			return newCallCmd(a)
		case "serve":
			return newServeCmd(a)
		}
	}
	return nil
}

func (o *recordOptions) run(ctx context.Context, inner *cobra.Command) error {
	o.Calls = func(ctx context.Context, r *scenario.Recorder) error {
		o.conf.Gateway.WrapExecutors = r.Wrap
		return inner.ExecuteContext(ctx)
	}
	r, err := o.Run(ctx)
	if r.Dropped > 0 {
		fmt.Fprintf(o.err, "warning: %s beyond the first %d are not recorded\n", count(r.Dropped, "call"), r.Calls)
	}
	if r.Cassette != "" {
		fmt.Fprintf(o.err, "recorded %s in %s\n", count(r.Calls, "call"), r.Cassette)
	}
	if r.Scenario != "" {
		fmt.Fprintf(o.err, "wrote %s: 'toolctl test' runs it\n", r.Scenario)
	}
	return err
}
