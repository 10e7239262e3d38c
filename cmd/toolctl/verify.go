package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
)

type verifyOptions struct {
	*app
	action.Verify
}

func newVerifyCmd(a *app) *cobra.Command {
	o := &verifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify [NAME]...",
		Short: "Run tool examples and report drift",
		Long: `Make the calls in spec.examples of Tool manifests and compare the results: with --live
against the real upstreams, without it against mocks. A result that no longer
matches output_schema is a failure, and so is an MCP server that differs from
toolctl.lock. Without NAME, verify runs the examples of every tool.

The exit code is 1 if something drifted. Output formats (-o): table, json, junit,
tap, github.`,
		Annotations: formats("table", "json", "junit", "tap", "github"),
		Example: `  toolctl verify -f manifests/
  toolctl verify --live get-weather`,
		ValidArgsFunction: a.completeTools,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Names = args
			return o.run(cmd.Context())
		},
	}
	cmd.Flags().BoolVar(&o.Live, "live", false, "call the real tools instead of mocks")
	a.bindNetwork(cmd.Flags(), "with --live, ")
	bindSelector(cmd.Flags(), &o.Selector, "tools")
	cmd.Flags().DurationVar(&o.Timeout, "timeout", 0, "maximum time for the examples of one tool (default: the timeouts of the tools)")
	return cmd
}

func (o *verifyOptions) run(ctx context.Context) (err error) {
	o.Config = o.reaching(ctx)
	r, err := o.Run(ctx)
	if err != nil {
		return err
	}
	if err := o.printReport(o.format(), r.Report, "tool", "example"); err != nil {
		return err
	}
	for _, d := range r.Drift {
		fmt.Fprintln(o.err, clip.Line(d.String()))
	}
	return cmp.Or(ctx.Err(), r.Verdict())
}
