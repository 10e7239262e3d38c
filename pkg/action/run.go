package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/scripted"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

// Run runs a prompt with a model that calls its tools, or resumes such a run.
type Run struct {
	*Config
	// Prompt is the name of the prompt, and Arguments are its variables.
	Prompt    string
	Arguments Arguments
	// Resume is the ID of a run that was pending approval, instead of Prompt and Arguments.
	Resume string
	Model  ModelChoice
	// Asker decides on calls that need approval. Default: the run ends pending.
	Asker registry.Asker
	// Selector selects among the tools and prompts that the prompt names. Default: all.
	Selector string
	// DryRun builds the first request without sending it.
	DryRun bool
	// Agent are the options of the run, except the model, the tools, the attachments and the store of pending
	// runs.
	Agent agent.Options
}

// ModelChoice selects a model. A pending run keeps it.
type ModelChoice struct {
	Provider string `json:"provider,omitempty"` // default: the provider of the prompt
	Model    string `json:"model,omitempty"`    // default: the model of the prompt
	// Script is a file with the replies for [scripted.Provider].
	Script string `json:"script,omitempty"`
}

// Ran is the result of a [Run].
type Ran struct {
	agent.Result
	// Request is the first request of a dry run.
	Request *agent.Request
	// Stored reports whether there is a store, which keeps a pending run.
	Stored bool
}

// Run runs the prompt. Once the run has begun, there is a result with an ID even if there is an error.
func (r *Run) Run(ctx context.Context) (ran *Ran, err error) {
	switch {
	case r.Resume != "" && (r.Prompt != "" || len(r.Arguments.Flags) > 0 || r.Arguments.File != ""):
		return nil, usagef("--resume continues a run with its own prompt and variables: leave out NAME, -a and --args-file")
	case r.DryRun && r.Resume != "":
		return nil, usagef("--dry-run needs NAME, and cannot be used with --resume")
	case r.Agent.MaxHops < 1:
		return nil, usagef("--max-hops %d: expected 1 or more", r.Agent.MaxHops)
	case r.Agent.Parallel < 1:
		return nil, usagef("--parallel %d: expected 1 or more", r.Agent.Parallel)
	case r.Model.Script != "" && r.Model.Provider != "" && r.Model.Provider != scripted.Provider:
		return nil, usagef("--script needs --provider %s, not %s", scripted.Provider, r.Model.Provider)
	}
	o := r.Agent
	o.Attachments = registry.NewAttachments(0)
	if r.Selector != "" {
		if o.Only, err = Labeled(r.Selector); err != nil {
			return nil, err
		}
	}
	if r.Asker != nil {
		ctx = registry.WithAsker(ctx, r.Asker)
	}
	err = r.within(ctx, func(w *Workspace) (err error) {
		states := r.states(w.Store, r.Model)
		if states != nil {
			defer func() { err = errors.Join(err, states.Close()) }()
			o.States = states
		}
		o.ModelFor = r.modelFor(states)
		ran = &Ran{Stored: w.Store != nil}
		switch {
		case r.Resume == "":
			return r.play(ctx, w, o, ran)
		case states == nil:
			return usagef("-f does not apply here: suspended runs are in the store; name it with --store")
		}
		w.ask(ctx) // the prompt, and so the needed tools, are known only after the run is read
		ran.Result, err = agent.Resume(ctx, w.Registry, r.Resume, o)
		return err
	}, func(g *gateway.Options) { g.Attachments = o.Attachments })
	return ran, err
}

func (r *Run) play(ctx context.Context, w *Workspace, o agent.Options, ran *Ran) error {
	it, err := w.Registry.Get(v1.KindPrompt, r.Namespace, r.Prompt)
	if err != nil {
		return w.OtherKind(v1.KindPrompt, r.Namespace, r.Prompt, err)
	}
	p, err := compilePrompt(it)
	if err != nil {
		return err
	}
	vars, err := r.Arguments.vars(r.Config, p)
	if err != nil {
		return err
	}
	r.prepareTools(ctx, w, p.Object(), map[string]bool{})
	if r.DryRun {
		// A request that is not sent needs no key.
		o.ModelFor = func(m *v1.Prompt) (agent.Model, string, error) {
			return nobody{}, cmp.Or(r.Model.Model, m.Spec.Model), nil
		}
		req, err := agent.Plan(ctx, w.Registry, p, vars, o)
		ran.Request = &req
		return err
	}
	r.warnUnused(p.Unused(vars), nil)
	ran.Result, err = agent.Run(ctx, w.Registry, p, vars, o)
	if invalid := (*v1.ValidationError)(nil); errors.As(err, &invalid) && len(ran.Hops) == 0 {
		err = fmt.Errorf("prompt %q: %w", p.Object().Metadata.Name, err)
	}
	return err
}

// nobody is the model of a dry run, which sends no requests.
type nobody struct{}

func (nobody) Generate(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{}, errors.New("a dry run calls no model")
}

// compilePrompt compiles a prompt of a registry. The error lists the reasons why the prompt cannot be used.
func compilePrompt(it registry.Item) (*prompt.Prompt, error) {
	m := it.Object.(*v1.Prompt)
	if len(it.Reasons) > 0 {
		return nil, fmt.Errorf("prompt %q: %w", m.Metadata.Name, v1.NewValidationError(v1.ManifestInvalid, "", it.Reasons))
	}
	p, err := prompt.Compile(m)
	if err != nil {
		return nil, fmt.Errorf("prompt %q: %w", m.Metadata.Name, err)
	}
	return p, nil
}

// modelFor returns a function that selects the model of a prompt: from the options, or from the prompt. It
// creates the model of a provider once.
func (r *Run) modelFor(states *runStates) func(*v1.Prompt) (agent.Model, string, error) {
	made := map[string]agent.Model{}
	first := "" // provider of the outermost prompt, for prompts without a provider
	return func(p *v1.Prompt) (agent.Model, string, error) {
		chosen, skip := r.Model, 0
		if states != nil && states.flags != nil { // the run is resumed
			kept := *states.flags
			chosen = ModelChoice{cmp.Or(chosen.Provider, kept.Provider), cmp.Or(chosen.Model, kept.Model), cmp.Or(chosen.Script, kept.Script)}
			skip = states.asked
		}
		provider := chosen.Provider
		if provider == "" && chosen.Script != "" {
			provider = scripted.Provider
		}
		provider = cmp.Or(provider, p.Spec.Provider, first)
		if provider == "" {
			return nil, "", usagef("prompt %q names no provider: name one with --provider, or take the model's replies from a file with --script", p.Metadata.Name)
		}
		model := made[provider]
		if model == nil {
			var err error
			if model, err = newModel(provider, modelOptions{env: r.env, script: chosen.Script, flag: "--script", skip: skip}); err != nil {
				return nil, "", err
			}
			made[provider] = model
		}
		name := cmp.Or(chosen.Model, p.Spec.Model)
		if name == "" && provider != scripted.Provider {
			return nil, "", usagef("prompt %q names no model: name one with --model", p.Metadata.Name)
		}
		first = cmp.Or(first, provider)
		return model, name, nil
	}
}

// prepareTools queries the MCP servers for the tools that a prompt names, also in the prompts that it calls.
func (r *Run) prepareTools(ctx context.Context, w *Workspace, p *v1.Prompt, seen map[string]bool) {
	all := false
	for _, name := range p.Spec.Tools {
		if seen[name] {
			continue
		}
		seen[name] = true
		if strings.HasSuffix(name, "*") {
			all = true
			continue
		}
		if _, err := w.Registry.Lookup(r.Namespace, name); err == nil {
			_, _ = w.Find(ctx, v1.Call{Tool: name, Namespace: r.Namespace}) // the call reports a missing tool
			continue
		}
		if it, err := w.Registry.Get(v1.KindPrompt, r.Namespace, name); err == nil {
			r.prepareTools(ctx, w, it.Object.(*v1.Prompt), seen)
			continue
		}
		all = true
	}
	if all && !seen["*\x00"] {
		seen["*\x00"] = true
		w.ask(ctx)
	}
}
