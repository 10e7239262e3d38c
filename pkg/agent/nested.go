package agent

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent/internal/mend"
	"toolctl.dev/toolctl/pkg/prompt"
)

// parameters is the schema of the arguments of a prompt that is called as a tool: its
// spec.input, else an object with its variables.
func parameters(p *prompt.Prompt) json.RawMessage {
	in := p.Object().Spec.Input
	args := p.Arguments()
	var root struct {
		Type any `json:"type"`
	}
	if len(in) > 0 && json.Unmarshal(in, &root) == nil && (root.Type == nil || root.Type == "object") {
		return in
	}
	if len(in) > 0 { // no object: the whole input is one argument
		return mend.Encode(map[string]any{
			"type": "object", "properties": map[string]any{prompt.ValueArgument: in},
			"required": []string{prompt.ValueArgument}, "additionalProperties": false,
		})
	}
	properties, required := map[string]any{}, []string{}
	for _, a := range args {
		property := map[string]any{}
		if a.Description != "" {
			property["description"] = a.Description
		}
		properties[a.Name] = property
		if a.Required {
			required = append(required, a.Name)
		}
	}
	return mend.Encode(map[string]any{"type": "object", "properties": properties, "required": required})
}

// variables are the variables that the arguments of a call stand for.
func variables(p *prompt.Prompt, args json.RawMessage) json.RawMessage {
	in := p.Object().Spec.Input
	var root struct {
		Type any `json:"type"`
	}
	if len(in) == 0 || json.Unmarshal(in, &root) != nil || root.Type == nil || root.Type == "object" {
		return args
	}
	var whole map[string]json.RawMessage
	if json.Unmarshal(args, &whole) != nil {
		return args
	}
	return whole[prompt.ValueArgument]
}

// callPrompt runs a prompt that the model called.
func (l *loop) callPrompt(ctx context.Context, c *Call) {
	how := c.Result.Repair
	began := l.opts.Now()
	child := c.child // a run that waited
	var err error
	if child == nil {
		child, err = l.child(ctx, c)
	}
	var res Result
	switch {
	case err != nil:
	case c.child != nil:
		res, err = child.end(child.goOn(ctx))
	default:
		res, err = child.first(ctx, c)
	}
	h := c.to.item.Object.Head()
	c.Result = v1.Result{Tool: h.Metadata.Name, Namespace: h.Namespace(), Status: v1.StatusComplete, Repair: how, Attempts: 1, DurationMS: milliseconds(l.opts.Now().Sub(began))}
	if child != nil {
		c.Run = &res
	}
	switch {
	case err != nil:
		c.err = err
		c.Result.Status, c.Result.Error = v1.StatusFailed, resultError(err)
	case res.Status == Pending:
		c.child = child
		c.Result.Status = v1.StatusPending
		c.Result.Pending = &res.Pending[0]
	case len(res.Output) > 0:
		c.Result.Content = res.Output
	default:
		c.Result.Content = mend.Encode(res.Text)
	}
}

// child is the run of a prompt that this one calls.
func (l *loop) child(ctx context.Context, c *Call) (*loop, error) {
	if l.depth >= l.opts.MaxDepth {
		return nil, &callError{typeDepth, fmt.Sprintf("not called: prompts may call prompts %s deep, and this would be one more", count(l.opts.MaxDepth, "level"))}
	}
	if _, err := l.reg.AdmitPrompt(l.governed(ctx), l.call(c)); err != nil {
		return nil, err
	}
	return l.under(c.to.sub)
}

// under makes the loop of a prompt that this one calls.
func (l *loop) under(p *prompt.Prompt) (*loop, error) {
	o := l.opts
	o.ModelName = l.name
	if o.ModelFor != nil {
		var err error
		if o.Model, o.ModelName, err = o.ModelFor(p.Object()); err != nil {
			return nil, err
		}
	}
	o.ReturnToolRequests = false // they would be another prompt's
	child := makeLoop(l.reg, p, o)
	child.res.ID, child.depth, child.shared = newID(), l.depth+1, l.shared
	return child, nil
}

func (l *loop) first(ctx context.Context, c *Call) (Result, error) {
	messages, err := l.prompt.Render(ctx, variables(l.prompt, c.raw))
	if err != nil {
		return l.end(err)
	}
	return l.converse(ctx, messages)
}
