package main

import (
	"cmp"
	"context"
	"path/filepath"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/scripted"
)

const scriptedProvider = scripted.Provider

// modelFor chooses the model of a prompt: that of the flags, else its own. A provider's
// model is made once.
func (o *runOptions) modelFor(states *runStates) func(*v1.Prompt) (agent.Model, string, error) {
	made := map[string]agent.Model{}
	first := "" // the provider of the outermost prompt, which those without one share
	return func(p *v1.Prompt) (agent.Model, string, error) {
		flags := o.flags
		skip := 0
		if states != nil && states.flags != nil { // of a run that goes on
			flags = *states.flags
			flags.Provider, flags.Model, flags.Script = cmp.Or(o.flags.Provider, flags.Provider), cmp.Or(o.flags.Model, flags.Model), cmp.Or(o.flags.Script, flags.Script)
			skip = states.asked
		}
		provider := flags.Provider
		if provider == "" && flags.Script != "" {
			provider = scriptedProvider
		}
		provider = cmp.Or(provider, p.Spec.Provider, first)
		if provider == "" {
			return nil, "", usagef("prompt %q names no provider: name one with --provider, or take the model's replies from a file with --script", p.Metadata.Name)
		}
		model := made[provider]
		if model == nil {
			var err error
			if model, err = newModel(provider, modelOptions{env: o.env, script: flags.Script, flag: "--script", skip: skip}); err != nil {
				return nil, "", err
			}
			made[provider] = model
		}
		name := cmp.Or(flags.Model, p.Spec.Model)
		if name == "" && provider != scriptedProvider {
			return nil, "", usagef("prompt %q names no model: name one with --model", p.Metadata.Name)
		}
		first = cmp.Or(first, provider)
		return model, name, nil
	}
}

// storeFolder is the folder of the store, for what is kept beside it; "" when the store ends
// with the process, or there is none.
func (a *app) storeFolder() string {
	dsn, err := a.storeDSN()
	if err != nil {
		return ""
	}
	for _, scheme := range []string{"file:", "sqlite:"} {
		if rest, ok := strings.CutPrefix(dsn, scheme); ok {
			dsn = strings.TrimPrefix(rest, "//")
		}
	}
	if dsn == ":memory:" || strings.HasPrefix(dsn, "memory:") {
		return ""
	}
	if strings.Contains(dsn, "://") { // a database has no folder: they are where a file would be
		if dsn, err = action.LocalStore(true); err != nil {
			return ""
		}
	}
	return filepath.Dir(dsn)
}

// prepareTools asks the MCP servers for what a prompt names, and the prompts that it calls.
func (o *runOptions) prepareTools(ctx context.Context, w *action.Workspace, p *v1.Prompt, seen map[string]bool) {
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
		if _, err := w.Registry.Lookup(o.namespace, name); err == nil {
			o.prepareTool(ctx, w, name)
			continue
		}
		if it, err := w.Registry.Get(v1.KindPrompt, o.namespace, name); err == nil {
			o.prepareTools(ctx, w, it.Object.(*v1.Prompt), seen)
			continue
		}
		all = true
	}
	if all && !seen["*\x00"] {
		seen["*\x00"] = true
		o.discoverAll(ctx, w)
	}
}

func (o *runOptions) discoverAll(ctx context.Context, w *action.Workspace) {
	if keys := w.Servers(o.namespace); len(keys) > 0 {
		o.warnStates(w.Discover(ctx, keys...))
	}
}
