package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/prompt"
)

// Render renders a prompt of a manifest or of an MCP server, without sending it to a model.
type Render struct {
	*Config
	// Prompt is the name of the prompt, and Arguments are its variables.
	Prompt    string
	Arguments Arguments
}

// Rendered is the result of a [Render].
type Rendered struct {
	// Prompt has the messages of a manifest's prompt.
	Prompt *RenderedPrompt
	// Server has the messages of a server's prompt, instead of Prompt.
	Server *mcp.PromptResult
}

// RenderedPrompt is a prompt of a manifest.
type RenderedPrompt struct {
	Description string          `json:"description,omitempty"`
	Messages    prompt.Messages `json:"messages"`
}

// Run renders the prompt.
func (r *Render) Run(ctx context.Context) (rendered *Rendered, err error) {
	if err := r.Arguments.check(r.Config); err != nil {
		return nil, err
	}
	err = r.within(ctx, func(w *Workspace) error {
		it, err := w.Registry.Get(v1.KindPrompt, r.Namespace, r.Prompt)
		if missing, ok := errors.AsType[*v1.NotFoundError](err); ok && !missing.Ambiguous {
			args, err := r.texts()
			if err != nil {
				return err
			}
			res, err := w.ServerPrompt(ctx, r.Namespace, r.Prompt, args)
			rendered = &Rendered{Server: &res}
			return w.OtherKind(v1.KindPrompt, r.Namespace, r.Prompt, err)
		}
		if err != nil {
			return err
		}
		p, err := compilePrompt(it)
		if err != nil {
			return err
		}
		vars, err := r.Arguments.vars(r.Config, p)
		if err != nil {
			return err
		}
		messages, err := p.Render(ctx, vars)
		r.warnUnused(p.Unused(vars), err)
		if err != nil {
			return fmt.Errorf("prompt %q: %w", p.Object().Metadata.Name, err)
		}
		rendered = &Rendered{Prompt: &RenderedPrompt{p.Object().Spec.Description, messages}}
		return nil
	})
	return rendered, err
}

// texts returns the arguments as strings, as MCP prompts expect them.
func (r *Render) texts() (map[string]string, error) {
	raw, _, err := r.Arguments.Object(r.Config)
	if err != nil {
		return nil, err
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, err
	}
	args := map[string]string{}
	for k, v := range values {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		args[k] = s
	}
	return args, nil
}

// warnUnused warns of variables that are probably mistyped, unless the error names them.
func (c *Config) warnUnused(unused []v1.Violation, err error) {
	invalid, _ := errors.AsType[*v1.ValidationError](err)
	for _, v := range unused {
		if invalid == nil || !slices.ContainsFunc(invalid.Violations, func(told v1.Violation) bool { return told.Path == v.Path }) {
			c.warn(v.Message)
		}
	}
}

// warn calls Warned with each text.
func (c *Config) warn(texts ...string) {
	for _, text := range texts {
		if c.Warned != nil {
			c.Warned(text)
		}
	}
}

// ReadResource reads a resource of a manifest or of an MCP server.
type ReadResource struct {
	*Config
	// URI names the resource, and Server the MCP server to read it from. Default: the server that lists it.
	URI, Server string
}

// Run reads the resource. The error is a [v1.NotFoundError] if several servers have the resource.
func (r *ReadResource) Run(ctx context.Context) (parts []v1.Part, err error) {
	err = r.within(ctx, func(w *Workspace) error {
		parts, err = w.ReadResource(ctx, r.Namespace, r.Server, r.URI)
		if missing, ok := errors.AsType[*v1.NotFoundError](err); ok && missing.Ambiguous && missing.Kind == "Resource" {
			for i, c := range missing.Candidates {
				missing.Candidates[i] = "--server " + c
			}
		}
		return err
	})
	return parts, err
}
