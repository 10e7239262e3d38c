package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

type runOptions struct {
	*app
	name      string
	args      []string
	argsFile  string
	resume    string
	flags     runFlags
	maxHops   int
	parallel  int
	stream    bool
	dryRun    bool
	noCache   bool
	requests  bool
	noInput   bool
	session   string
	principal string
}

// runFlags choose the model; a run that waits keeps them.
type runFlags struct {
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"`
	Script   string `json:"script,omitempty"`
}

func newRunCmd(a *app) *cobra.Command {
	o := &runOptions{app: a}
	cmd := &cobra.Command{
		Use:   "run NAME [-a key=value]...",
		Short: "Run a prompt against a model that calls its tools",
		Long: `Run a prompt against a model that calls its tools, and print the answer. The
model is offered the tools that the prompt names and policy allows; its calls go
through the call pipeline.

The model is that of the prompt (spec.provider and spec.model), unless --provider and
--model name another. Keys and addresses come from OPENAI_API_KEY, OPENAI_BASE_URL,
ANTHROPIC_API_KEY, ANTHROPIC_BASE_URL, GEMINI_API_KEY and GOOGLE_GEMINI_BASE_URL.
--script FILE takes the replies of the model from a file instead.

A call that needs approval asks you at a terminal. Elsewhere the run waits: once the
call is approved, --resume goes on with it. Progress is shown on a terminal, and with
--verbose elsewhere too.

Output formats (-o): text, json and yaml; the latter two print the whole transcript.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl run travel-advice -a city=Oslo -a days=3
  toolctl run travel-advice -a city=Oslo --provider openai --model gpt-5-mini -o json
  toolctl run travel-advice -a city=Oslo --script replies.yaml
  toolctl run travel-advice -a city=Oslo --dry-run
  toolctl run --resume 3KQ5WZ2XJH7N4M6P`,
		ValidArgsFunction: a.completePrompts,
		RunE: func(cmd *cobra.Command, pos []string) error {
			if o.resume != "" {
				if len(pos)+len(o.args) > 0 || o.argsFile != "" {
					return usagef("--resume goes on with a run that has its prompt and variables: give neither")
				}
				return o.run(cmd.Context())
			}
			var err error
			if o.name, err = promptName(pos); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.args, "arg", "a", nil, varsHelp)
	_ = cmd.RegisterFlagCompletionFunc("arg", a.completeVars)
	f.StringVar(&o.argsFile, "args-file", "", "file with a JSON or YAML object of variables; - reads stdin")
	f.StringVar(&o.flags.Model, "model", "", "name of the model (default: that of the prompt)")
	f.StringVar(&o.flags.Provider, "provider", "", "provider of the model: "+strings.Join(providerNames(), ", ")+" (default: that of the prompt)")
	_ = cmd.RegisterFlagCompletionFunc("provider", cobra.FixedCompletions(providerNames(), noFiles))
	f.StringVar(&o.flags.Script, "script", "", "file with the replies of a scripted model, a YAML or JSON list")
	f.IntVar(&o.maxHops, "max-hops", 5, "maximum number of rounds of calls before the answer")
	f.IntVar(&o.parallel, "parallel", 4, "maximum number of calls at once")
	f.BoolVar(&o.stream, "stream", false, "print what the model says as it comes")
	f.BoolVar(&o.dryRun, "dry-run", false, "print the first request, and send nothing")
	f.BoolVar(&o.noCache, "no-cache", false, "make every call, even of read-only tools with a known result")
	f.BoolVar(&o.requests, "return-tool-requests", false, "print the calls that the model asks for, and make none")
	f.StringVar(&o.resume, "resume", "", "go on with the run of this id, which waited for approval")
	_ = cmd.RegisterFlagCompletionFunc("resume", a.completeRuns)
	f.StringVar(&o.session, "session", "", "conversation that policies count in (default: a session of its own)")
	_ = cmd.RegisterFlagCompletionFunc("session", a.fromStore(inOrder, sessions))
	f.StringVar(&o.principal, "principal", "", "name of who calls, for policies that match principals (default: nobody)")
	f.BoolVar(&o.noInput, "no-input", false, "do not ask at the terminal")
	a.bindSelector(f, "tools and prompts of those that the prompt names")
	a.bindAudit(cmd)
	a.bindNetwork(f, "")
	return cmd
}

func (o *runOptions) check(format string) error {
	switch {
	case o.stream && format != "text":
		return usagef("--stream needs -o text")
	case o.dryRun && o.resume != "":
		return usagef("--dry-run needs NAME, and cannot be used with --resume")
	case o.maxHops < 1:
		return usagef("--max-hops %d: expected 1 or more", o.maxHops)
	case o.parallel < 1:
		return usagef("--parallel %d: expected 1 or more", o.parallel)
	case o.flags.Script != "" && o.flags.Provider != "" && o.flags.Provider != scriptedProvider:
		return usagef("--script needs --provider %s, not %s", scriptedProvider, o.flags.Provider)
	}
	return nil
}

func (o *runOptions) run(ctx context.Context) error {
	format := o.format()
	if err := o.check(format); err != nil {
		return err
	}
	if err := o.stdinOnce(o.args, o.argsFile); err != nil {
		return err
	}
	attachments := registry.NewAttachments(0)
	w, err := o.open(ctx, func(g *gateway.Options) { g.Attachments = attachments })
	if err != nil {
		return err
	}
	defer o.closing(w)
	o.warnViolations(w)
	states := o.states(w.Store, o.flags)
	opts := agent.Options{
		ModelFor: o.modelFor(states), MaxHops: o.maxHops, Parallel: o.parallel, Session: o.session, Principal: o.principal,
		Attachments: attachments, NoCache: o.noCache, ReturnToolRequests: o.requests, Stream: o.stream,
	}
	if o.selector != "" {
		if opts.Only, err = o.selected(); err != nil {
			return err
		}
	}
	if states != nil {
		defer o.closing(states)
		opts.States = states
	}
	if !o.noInput && o.canAsk() && o.stdinOnce(append([]string{"-"}, o.args...), o.argsFile) == nil {
		ctx = registry.WithAsker(ctx, o.asker())
	}
	show := o.newRunView(format)
	opts.On = show.event
	res, err := o.play(ctx, w, opts)
	if err != nil && res.ID == "" { // it never began
		return err
	}
	show.end()
	for _, text := range res.Warnings {
		fmt.Fprintf(o.err, "warning: %s\n", clip.Line(text))
	}
	if perr := o.print(format, &res); perr != nil {
		return perr
	}
	if err == nil && res.Status == agent.Pending {
		return statusError{exitPending, o.waitingText(w, &res)}
	}
	if hops, ok := errors.AsType[*agent.ToolHopsError](err); ok {
		if text := hops.LastReply.Message.Text; text != "" {
			fmt.Fprintf(o.err, "the model's last words: %s\n", clip.Line(text))
		}
		return fmt.Errorf("%w: raise --max-hops", err)
	}
	return err
}

// errPlanned ends a dry run.
var errPlanned = statusError{code: exitOK}

func (o *runOptions) play(ctx context.Context, w *action.Workspace, opts agent.Options) (agent.Result, error) {
	if o.resume != "" {
		if opts.States == nil {
			return agent.Result{}, usagef("runs wait in the store, not in files: name the store with --store")
		}
		o.discoverAll(ctx, w) // what its prompt needs is known only when it is read
		return agent.Resume(ctx, w.Registry, o.resume, opts)
	}
	it, err := w.Registry.Get(v1.KindPrompt, o.namespace, o.name)
	if err != nil {
		return agent.Result{}, o.otherKind(w, v1.KindPrompt, o.name, err)
	}
	p, err := compilePrompt(it)
	if err != nil {
		return agent.Result{}, err
	}
	vars, err := o.promptVars(ctx, p, o.args, o.argsFile)
	if err != nil {
		return agent.Result{}, err
	}
	o.prepareTools(ctx, w, p.Object(), map[string]bool{})
	if o.dryRun {
		return agent.Result{}, o.plan(ctx, w, p, vars, opts)
	}
	o.warnUnused(p.Unused(vars), nil)
	res, err := agent.Run(ctx, w.Registry, p, vars, opts)
	if invalid := (*v1.ValidationError)(nil); errors.As(err, &invalid) && len(res.Hops) == 0 {
		err = fmt.Errorf("prompt %q: %w", p.Object().Metadata.Name, err)
	}
	return res, err
}

// plan prints the first request.
func (o *runOptions) plan(ctx context.Context, w *action.Workspace, p *prompt.Prompt, vars json.RawMessage, opts agent.Options) error {
	// No key is needed for a request that nobody is sent.
	opts.ModelFor = func(m *v1.Prompt) (agent.Model, string, error) {
		return nobody{}, cmp.Or(o.flags.Model, m.Spec.Model), nil
	}
	req, err := agent.Plan(ctx, w.Registry, p, vars, opts)
	if err != nil {
		return err
	}
	done, err := o.encoded(o.output, req)
	if !done {
		err = printJSON(o.out, req)
	}
	return cmp.Or[error](err, errPlanned)
}

// nobody is a model that is asked nothing.
type nobody struct{}

func (nobody) Generate(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{}, errors.New("a dry run asks no model")
}

// print prints what is asked for: the answer, or the whole run.
func (o *runOptions) print(format string, res *agent.Result) error {
	if done, err := o.encoded(format, res); done {
		return err
	}
	switch {
	case res.Status == agent.ToolRequests:
		return printJSON(o.out, res.ToolRequests)
	case res.Status != agent.Complete || o.stream:
		return nil
	case len(res.Output) > 0:
		return o.printContent(res.Output)
	}
	_, err := fmt.Fprintln(o.out, screenText(o.out, strings.TrimRight(res.Text, "\n")))
	return err
}

// waitingText says how to approve what a run waits for, and how to go on then.
func (o *runOptions) waitingText(w *action.Workspace, res *agent.Result) string {
	var b strings.Builder
	b.WriteString("pending: ")
	for i, p := range res.Pending {
		if i > 0 {
			b.WriteString("\n  and ")
		}
		b.WriteString(p.Message)
	}
	if w.Store == nil {
		return b.String() + ", and no store keeps the run: name one with --store, or run it at a terminal, where you are asked"
	}
	where := ""
	if o.dsn != "" {
		where = " --store " + shellWord(o.shownDSN())
	}
	for _, p := range res.Pending {
		fmt.Fprintf(&b, "\n  approve it with     toolctl approvals approve %s%s", p.ID, where)
	}
	for _, f := range o.files {
		where += " -f " + shellWord(f)
	}
	fmt.Fprintf(&b, "\n  and go on with      toolctl run --resume %s%s", res.ID, where)
	return b.String()
}
