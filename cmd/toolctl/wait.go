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
	var (
		condition string
		selector  string
		timeout   time.Duration
		all       bool
	)
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
			case timeout <= 0:
				return usagef("--timeout %s: expected a time above 0", timeout)
			}
			want, err := parseCondition(condition)
			if err != nil {
				return err
			}
			if len(rs) == 0 && !strings.HasPrefix(condition, conditionPrefix) {
				rs = []action.Request{{Kind: v1.KindMCPServer}}
			}
			met := want.String()
			if want != action.Ready {
				met = "condition met"
			}
			return (&action.Wait{Config: a.reaching(cmd.Context()), Requests: rs, Selector: selector, Condition: want, Timeout: timeout, Met: func(k v1.Key) {
				fmt.Fprintf(a.out, "%s %s\n", objectName(k), met)
			}}).Run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&condition, "for", "ready", "what to wait for: ready, or condition=TYPE[=STATUS]")
	f.BoolVar(&all, "all", false, "wait for all objects, or all of one kind")
	bindSelector(f, &selector, "objects")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "maximum time to wait")
	a.bindNetwork(f, "")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"ready", "condition=Ready", "condition=Degraded=False", "condition=Drifted=False"}, noFiles))
	return cmd
}

const conditionPrefix = "condition="

// parseCondition parses --for.
func parseCondition(text string) (action.Condition, error) {
	typ, status, ok := strings.Cut(strings.TrimPrefix(text, conditionPrefix), "=")
	if !ok {
		status = v1.ConditionTrue
	}
	c := action.Condition{Type: oneOf(typ, v1.ConditionReady, v1.ConditionDegraded, v1.ConditionDrifted), Status: oneOf(status, v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown)}
	if c.Type == "" || c.Status == "" || c.Type != v1.ConditionReady && !strings.HasPrefix(text, conditionPrefix) {
		return c, usagef("--for %q: expected ready, or condition=TYPE[=STATUS] with the type Ready, Degraded or Drifted and the status True, False or Unknown", text)
	}
	return c, nil
}

// oneOf returns the word that equals text apart from case, or "".
func oneOf(text string, words ...string) string {
	for _, w := range words {
		if strings.EqualFold(text, w) {
			return w
		}
	}
	return ""
}
