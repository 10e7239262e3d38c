package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/registry"
)

func newWaitCmd(a *app) *cobra.Command {
	var (
		condition string
		timeout   time.Duration
		all       bool
	)
	cmd := &cobra.Command{
		Use:   "wait (KIND/NAME... | [KIND] -l LABELS | [KIND] --all) --for=condition=Ready",
		Short: "Wait until objects are ready",
		Long: `Wait until objects have a condition: Ready, Degraded or Drifted, or
condition=Ready=False for one that is not. An MCP server is ready when it has answered and
listed its tools. Without a kind, --all and -l mean all objects with a condition=, and MCP
servers without. The exit code is 7 when time runs out first.`,
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
				rs = []request{{kind: v1.KindMCPServer}}
			}
			return a.wait(cmd.Context(), rs, want, timeout)
		},
	}
	f := cmd.Flags()
	f.StringVar(&condition, "for", "ready", "what to wait for: ready, or condition=TYPE[=STATUS]")
	f.BoolVar(&all, "all", false, "wait for all objects, of the kind when one is named")
	a.bindSelector(f, "objects")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "how long to wait")
	a.bindNetwork(f, "")
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"ready", "condition=Ready", "condition=Degraded=False", "condition=Drifted=False"}, noFiles))
	return cmd
}

const conditionPrefix = "condition="

// wanted is a condition that is waited for.
type wanted struct{ typ, status string }

// parseCondition reads --for.
func parseCondition(text string) (wanted, error) {
	typ, status, ok := strings.Cut(strings.TrimPrefix(text, conditionPrefix), "=")
	if !ok {
		status = v1.ConditionTrue
	}
	w := wanted{oneOf(typ, v1.ConditionReady, v1.ConditionDegraded, v1.ConditionDrifted), oneOf(status, v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown)}
	if w.typ == "" || w.status == "" || w.typ != v1.ConditionReady && !strings.HasPrefix(text, conditionPrefix) {
		return w, usagef("--for %q: expected ready, or condition=TYPE[=STATUS] with the type Ready, Degraded or Drifted and the status True, False or Unknown", text)
	}
	return w, nil
}

// oneOf returns the word that is text but for case; "" for none.
func oneOf(text string, words ...string) string {
	for _, w := range words {
		if strings.EqualFold(text, w) {
			return w
		}
	}
	return ""
}

func (a *app) wait(ctx context.Context, rs []request, want wanted, timeout time.Duration) error {
	w, err := a.open(ctx)
	if err != nil {
		return err
	}
	keys, err := a.waitedFor(ctx, w, rs)
	a.closing(w)
	if err != nil {
		return err
	}
	within, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	reasons := map[v1.Key]string{}
	for next := time.Duration(0); ; next = min(max(2*next, 200*time.Millisecond), 2*time.Second) {
		pause(within, next)
		if keys, err = a.waitRound(within, keys, want, reasons); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil && within.Err() == nil {
			return err
		}
		if len(keys) == 0 {
			return nil
		}
		if within.Err() != nil {
			var texts []string
			for _, k := range keys {
				texts = append(texts, fmt.Sprintf("%s is not %s after %s: %s", objectName(k), want, clip.Duration(timeout), cmp.Or(reasons[k], "it was not checked in time")))
			}
			return statusError{exitUnavailable, strings.Join(texts, "\n")}
		}
	}
}

// String is the condition as messages name it.
func (w wanted) String() string {
	if w == (wanted{v1.ConditionReady, v1.ConditionTrue}) {
		return "ready"
	}
	return w.typ + "=" + w.status
}

// waitedFor finds the objects that are waited for. One that can never be ready is an error.
func (a *app) waitedFor(ctx context.Context, w *workspace, rs []request) ([]v1.Key, error) {
	has, err := a.selected()
	if err != nil {
		return nil, err
	}
	if len(rs) == 0 {
		rs = []request{{}}
	}
	var keys []v1.Key
	kind := ""
	for _, r := range rs {
		kind = r.kind
		if len(r.names) == 0 {
			page, err := w.reg.List(registry.Query{Kind: r.kind, Namespace: a.namespace})
			if err != nil {
				return nil, err
			}
			for _, it := range page.Items {
				if has(it.Object) {
					keys = append(keys, it.Object.Head().Key())
				}
			}
		}
		for _, name := range r.names {
			if r.kind == v1.KindTool {
				a.prepareTool(ctx, w, name)
			}
			it, err := w.reg.Get(r.kind, a.namespace, name)
			if err != nil {
				return nil, err
			}
			if r.kind == v1.KindMCPServer && len(it.Reasons) > 0 {
				return nil, v1.NewValidationError(v1.ManifestInvalid, "", it.Reasons)
			}
			keys = append(keys, it.Object.Head().Key())
		}
	}
	if len(keys) == 0 {
		return nil, &v1.NotFoundError{Kind: cmp.Or(kind, "Object"), Name: cmp.Or(a.selector, "any")}
	}
	return keys, nil
}

// waitRound looks at objects once and returns those that do not have the condition yet, with
// the reasons. Servers are asked with new sessions each time, which know of no back-off.
func (a *app) waitRound(ctx context.Context, keys []v1.Key, want wanted, reasons map[v1.Key]string) (still []v1.Key, err error) {
	w, err := a.open(ctx)
	if err != nil {
		return keys, err
	}
	defer a.closing(w)
	all, states, err := w.Look(ctx, w.kept(), keys)
	if err != nil {
		return keys, err
	}
	for _, k := range keys {
		s := all[k]
		c := s.Condition(want.typ)
		if c.Status == want.status {
			text := want.String()
			if text != "ready" {
				text = "condition met"
			}
			fmt.Fprintf(a.out, "%s %s\n", objectName(k), text)
			continue
		}
		if reasons[k] == "" || ctx.Err() == nil { // the last one may only say that time ran out
			reasons[k] = cmp.Or(c.Message, "nothing is known of it")
			if state := gateway.StateOf(states, k); state != nil && !state.Ready && want.typ == v1.ConditionReady {
				reasons[k] = reasonText(*state)
			}
		}
		still = append(still, k)
	}
	return still, nil
}
