package action

import (
	"cmp"
	"context"
	"encoding/json"
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

// Run plays a prompt against a model that calls its tools, or goes on with such a run.
type Run struct {
	*Config
	// Prompt is the name of the prompt, and Vars returns its variables.
	Prompt string
	Vars   func(context.Context, *prompt.Prompt) (json.RawMessage, error)
	// Resume is the id of a run that waited for approval, in place of Prompt and Vars.
	Resume string
	Model  ModelChoice
	// Selector chooses among the tools and prompts that the prompt names. Default: all.
	Selector string
	// DryRun makes the first request, and sends nothing.
	DryRun bool
	// Agent are the options of the run but for its model, its tools, its attachments and where it waits.
	Agent agent.Options
	// Unused is called with the variables that the prompt does not have.
	Unused func([]v1.Violation)
}

// ModelChoice names a model. A run that waits keeps it.
type ModelChoice struct {
	Provider string `json:"provider,omitempty"` // default: that of the prompt
	Model    string `json:"model,omitempty"`    // default: that of the prompt
	// Script is a file with the replies of the provider [scripted.Provider].
	Script string `json:"script,omitempty"`
}

// Ran is the result of a [Run].
type Ran struct {
	agent.Result
	// Request is the first request of a dry run.
	Request *agent.Request
	// Stored says that there is a store, which keeps a run that waits.
	Stored bool
}

// Run plays the prompt. A run that began has a result with an ID, beside an error too.
func (r *Run) Run(ctx context.Context) (ran *Ran, err error) {
	switch {
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
			return usagef("runs wait in the store, not in files: name the store with --store")
		}
		w.ask(ctx) // the tools that its prompt needs are known only when the run is read
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
	p, err := CompilePrompt(it)
	if err != nil {
		return err
	}
	vars, err := r.Vars(ctx, p)
	if err != nil {
		return err
	}
	r.prepareTools(ctx, w, p.Object(), map[string]bool{})
	if r.DryRun {
		// No key is needed for a request that nobody is sent.
		o.ModelFor = func(m *v1.Prompt) (agent.Model, string, error) {
			return nobody{}, cmp.Or(r.Model.Model, m.Spec.Model), nil
		}
		req, err := agent.Plan(ctx, w.Registry, p, vars, o)
		ran.Request = &req
		return err
	}
	if r.Unused != nil {
		r.Unused(p.Unused(vars))
	}
	ran.Result, err = agent.Run(ctx, w.Registry, p, vars, o)
	if invalid := (*v1.ValidationError)(nil); errors.As(err, &invalid) && len(ran.Hops) == 0 {
		err = fmt.Errorf("prompt %q: %w", p.Object().Metadata.Name, err)
	}
	return err
}

// nobody is a model that is asked nothing.
type nobody struct{}

func (nobody) Generate(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{}, errors.New("a dry run asks no model")
}

// CompilePrompt readies a prompt of a registry, or says why it cannot be used.
func CompilePrompt(it registry.Item) (*prompt.Prompt, error) {
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

// modelFor chooses the model of a prompt: that of the options, else its own. A provider's
// model is made once.
func (r *Run) modelFor(states *runStates) func(*v1.Prompt) (agent.Model, string, error) {
	made := map[string]agent.Model{}
	first := "" // the provider of the outermost prompt, which those without one share
	return func(p *v1.Prompt) (agent.Model, string, error) {
		chosen, skip := r.Model, 0
		if states != nil && states.flags != nil { // of a run that goes on
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

// prepareTools asks the MCP servers for what a prompt names, and the prompts that it calls.
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
			_, _ = w.Find(ctx, v1.Call{Tool: name, Namespace: r.Namespace}) // what is missing, the call says
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
