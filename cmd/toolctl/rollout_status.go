package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/rollout"
)

func newRolloutStatusCmd(a *app) *cobra.Command {
	var (
		watch   bool
		timeout time.Duration
	)
	cmd := &cobra.Command{
		Use:   "status [SET]",
		Short: "Wait until a set is rolled out",
		Long: `Wait until every object of a set is ready, or of all sets without SET; this queries the MCP
servers. The exit code is 7 if the wait times out, or if objects are not ready and
--watch=false is set. It is 1 if an edit, a delete or another set has changed objects of the
set since its last revision; the output names the changes.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl rollout status payments --timeout 2m
  toolctl rollout status --watch=false -o json`,
		Args:              oneSet,
		ValidArgsFunction: a.fromStore(noFiles, appliedSet),
		RunE: func(cmd *cobra.Command, args []string) error {
			if timeout <= 0 {
				return usagef("--timeout %s: expected a time above 0", timeout)
			}
			return a.rolloutStatus(cmd.Context(), args, watch, timeout)
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&watch, "watch", "w", true, "wait until the set is rolled out")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "maximum time to wait")
	a.bindNetwork(f, "")
	return cmd
}

func (a *app) rolloutStatus(ctx context.Context, args []string, watch bool, timeout time.Duration) error {
	set, err := setNamed(args)
	if err != nil {
		return err
	}
	format, said := a.format(), map[string]string{}
	all, err := (&action.RolloutStatus{Config: a.reaching(ctx), Set: set, Timeout: timeout, Once: !watch, Progress: func(all []action.SetState) {
		for _, s := range all {
			if text := rolloutText(&s); format == "text" && s.Ready < s.Objects && text != said[s.Set] {
				said[s.Set] = text
				fmt.Fprintln(a.out, text)
			}
		}
	}}).Run(ctx)
	if err != nil {
		return err
	}
	return a.endStatus(format, all, timeout, watch)
}

// rolloutText describes the progress of a set in the words of kubectl.
func rolloutText(s *action.SetState) string {
	name := quoted(rollout.Name(s.Set))
	if s.Ready < s.Objects {
		return fmt.Sprintf("Waiting for set %s rollout to finish: %d of %s ready...", name, s.Ready, count(s.Objects, "object"))
	}
	return fmt.Sprintf("set %s successfully rolled out: revision %d, %s", name, s.Revision, count(s.Objects, "object"))
}

// endStatus prints the final states of the sets.
func (a *app) endStatus(format string, all []action.SetState, timeout time.Duration, watch bool) error {
	if _, err := a.encoded(format, all); err != nil {
		return err
	}
	var texts []string
	code := exitUnavailable
	for _, s := range all {
		name := quoted(rollout.Name(s.Set))
		switch {
		case s.Drifted():
			code = exitFailed
			texts = append(texts, fmt.Sprintf("set %s is not as revision %d applied it:", name, s.Revision))
			for _, k := range s.Changed {
				texts = append(texts, "  "+k+" was changed since")
			}
			for _, k := range s.Gone {
				texts = append(texts, "  "+k+" no longer belongs to the set")
			}
		case s.Ready < s.Objects:
			after := ""
			if watch {
				after = fmt.Sprintf(" after %s", clip.Duration(timeout))
			}
			texts = append(texts, fmt.Sprintf("set %s is not rolled out%s:", name, after))
			for k, why := range s.NotReady {
				texts = append(texts, fmt.Sprintf("  %s is not ready: %s", k, clip.Line(inspect.Show(why))))
			}
			slices.Sort(texts[len(texts)-len(s.NotReady):])
		case format == "text":
			fmt.Fprintln(a.out, rolloutText(&s))
		}
	}
	if texts == nil {
		return nil
	}
	return statusError{code, strings.Join(texts, "\n")}
}
