package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
)

func newWaitCmd(a *app) *cobra.Command {
	var verb action.Wait
	var all bool
	cmd := &cobra.Command{
		Use:   "wait (KIND/NAME... | [KIND] -l LABELS | [KIND] --all) --for=condition=Ready",
		Short: "Wait until objects are ready",
		Long: `Wait until objects have a condition: Ready, Degraded or Drifted, or
condition=Ready=False for its absence. An MCP server is ready when it has listed its
tools. Without a kind, --all and -l select all objects if --for is a condition=, and
all MCP servers if it is not. The exit code is 7 if the wait times out.`,
		Example: `  toolctl wait mcpserver/files --for=ready --timeout 30s
  toolctl wait --for=condition=Ready --all
  toolctl wait -f servers.yaml mcpserver files web`,
		ValidArgsFunction: a.completeResources,
		RunE: func(cmd *cobra.Command, args []string) error {
			rs, err := requests(args)
			some := all || cmd.Flags().Changed("selector")
			switch {
			case err != nil:
				return a.meant(cmd, err)
			case !hasNames(rs) && !some:
				return usagef("expected KIND/NAME or KIND NAME, -l or --all")
			case hasNames(rs) && some:
				return usagef("names cannot be used together with -l or --all")
			case verb.Timeout <= 0:
				return usagef("--timeout %s: expected a time above 0", verb.Timeout)
			}
			if want := cmd.Flag("for").Value.String(); len(rs) == 0 && !strings.HasPrefix(want, action.ConditionPrefix) {
				rs = []action.Request{{Kind: v1.KindMCPServer}}
			}
			met := verb.Condition.String()
			if verb.Condition != action.Ready {
				met = "condition met"
			}
			verb.Config, verb.Requests = a.reaching(cmd.Context()), rs
			verb.Met = func(k v1.Key) { fmt.Fprintf(a.out, "%s %s\n", objectName(k), met) }
			return verb.Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	parsed(f, &verb.Condition, "for", "ready", action.ParseCondition, "what to wait for: ready, or condition=TYPE[=STATUS]")
	f.BoolVar(&all, "all", false, "wait for all objects, or all of one kind")
	bindSelector(f, &verb.Selector, "objects")
	f.DurationVar(&verb.Timeout, "timeout", 30*time.Second, "maximum time to wait")
	a.bindNetwork(f, "")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"ready", "condition=Ready", "condition=Degraded=False", "condition=Drifted=False"}, noFiles))
	return cmd
}
