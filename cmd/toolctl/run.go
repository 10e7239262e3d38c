package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/agent"
)

type runOptions struct {
	*app
	action.Run
	noInput bool
}

func newRunCmd(a *app) *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run NAME [-a key=value]...",
		Short: "Run a prompt against a model that calls its tools",
		Long: `Run a prompt against a model that calls its tools, and print the answer. The
model gets the tools that the prompt names and policies allow. toolctl validates its
calls, checks the policies and audits them.

The prompt names the model (spec.provider and spec.model) unless --provider and
--model override it. Keys and addresses come from OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, GEMINI_API_KEY and GOOGLE_GEMINI_BASE_URL.
--script FILE reads the replies of the model from a file instead.

When a call needs approval, toolctl asks at the terminal. Without a terminal the run is
saved: once the call is approved, --resume continues it. A terminal shows progress; with
--verbose, so does the log.

Output formats (-o): text, json and yaml; json and yaml print the whole transcript.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl run travel-advice -a city=Oslo -a days=3
  toolctl run travel-advice -a city=Oslo --provider openai --model gpt-5-mini -o json
  toolctl run travel-advice -a city=Oslo --script replies.yaml
  toolctl run travel-advice -a city=Oslo --dry-run
  toolctl run --resume 3KQ5WZ2XJH7N4M6P`,
		ValidArgsFunction: a.completePrompts,
		RunE: func(cmd *cobra.Command, pos []string) (err error) {
			if o.Resume == "" || len(pos) > 0 {
				if o.Prompt, err = promptName(pos); err != nil {
					return err
				}
			}
			return o.run(cmd.Context())
		},
	}
	a.bindArgs(cmd, v1.KindPrompt, &o.Arguments)
	a.bindCaller(cmd, &o.Agent.Session, &o.Agent.Principal)
	f := cmd.Flags()
	f.StringVar(&o.Model.Model, "model", "", "name of the model (default: the model of the prompt)")
	f.StringVar(&o.Model.Provider, "provider", "", "provider of the model: "+strings.Join(action.Providers(), ", ")+" (default: the provider of the prompt)")
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(action.Providers(), noFiles))
	f.StringVar(&o.Model.Script, "script", "", "file with the replies of a scripted model, a YAML or JSON list")
	f.IntVar(&o.Agent.MaxHops, "max-hops", 5, "maximum number of rounds of calls before the answer")
	f.IntVar(&o.Agent.Parallel, "parallel", 4, "maximum number of calls at once")
	f.BoolVar(&o.Agent.Stream, "stream", false, "print the reply of the model as it arrives")
	f.BoolVar(&o.DryRun, "dry-run", false, "print the first request without sending it")
	f.BoolVar(&o.Agent.NoCache, "no-cache", false, "repeat calls of read-only tools instead of reusing their results")
	f.BoolVar(&o.Agent.ReturnToolRequests, "return-tool-requests", false, "print the calls that the model requests without making them")
	f.StringVar(&o.Resume, "resume", "", "continue the run with this ID, which was pending approval")
	_ = cmd.RegisterFlagCompletionFunc("resume", a.completeRuns)
	f.BoolVar(&o.noInput, "no-input", false, "do not ask at the terminal")
	bindSelector(f, &o.Selector, "tools and prompts that the prompt names,")
	a.bindAudit(cmd)
	a.bindNetwork(f, "")
	return cmd
}

func (o *runOptions) run(ctx context.Context) (err error) {
	format := o.format()
	if o.Agent.Stream && format != "text" {
		return usagef("--stream needs -o text")
	}
	o.Config = o.reaching(ctx)
	show := o.newRunView(format)
	o.Agent.On, o.Asker = show.event, o.askerBeside(&o.Arguments, o.noInput)
	res, err := o.Run.Run(ctx)
	if err != nil && (res == nil || res.ID == "") { // the run never began
		return err
	}
	if res.Request != nil {
		if done, err := o.encoded(o.output, res.Request); done {
			return err
		}
		return printJSON(o.out, res.Request)
	}
	show.end()
	for _, text := range res.Warnings {
		fmt.Fprintf(o.err, "warning: %s\n", clip.Line(text))
	}
	if perr := o.print(format, &res.Result); perr != nil {
		return perr
	}
	if err == nil && res.Status == agent.Pending {
		return statusError{exitPending, o.waitingText(res)}
	}
	if hops, ok := errors.AsType[*agent.ToolHopsError](err); ok {
		if text := hops.LastReply.Message.Text; text != "" {
			fmt.Fprintf(o.err, "the model's last words: %s\n", clip.Line(text))
		}
		return fmt.Errorf("%w: raise --max-hops", err)
	}
	return err
}

// print prints the answer or, with -o json or yaml, the whole run.
func (o *runOptions) print(format string, res *agent.Result) error {
	if done, err := o.encoded(format, res); done {
		return err
	}
	switch {
	case res.Status == agent.ToolRequests:
		return printJSON(o.out, res.ToolRequests)
	case res.Status != agent.Complete || o.Agent.Stream:
		return nil
	case len(res.Output) > 0:
		return o.printContent(res.Output)
	}
	_, err := fmt.Fprintln(o.out, screenText(o.out, strings.TrimRight(res.Text, "\n")))
	return err
}

// waitingText says how to approve the pending calls of a run, and how to resume it.
func (o *runOptions) waitingText(res *action.Ran) string {
	var b strings.Builder
	b.WriteString("pending: ")
	for i, p := range res.Pending {
		if i > 0 {
			b.WriteString("\n  and ")
		}
		b.WriteString(p.Message)
	}
	if !res.Stored {
		return b.String() + "; no store to save the run: pass --store, or run it at a terminal, where toolctl asks you"
	}
	where := ""
	if o.conf.DSN != "" {
		where = " --store " + shellWord(o.shownDSN())
	}
	for _, p := range res.Pending {
		fmt.Fprintf(&b, "\n  approve it with     toolctl approvals approve %s%s", p.ID, where)
	}
	for _, f := range o.conf.Files {
		where += " -f " + shellWord(f)
	}
	fmt.Fprintf(&b, "\n  then continue with  toolctl run --resume %s%s", res.ID, where)
	return b.String()
}
