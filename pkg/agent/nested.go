package agent

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/prompt"
)

// parameters returns the schema of the arguments of a prompt that is called as a tool:
// spec.input, or an object with the variables of the prompt.
func parameters(p *prompt.Prompt) json.RawMessage {
	in := p.Object().Spec.Input
	args := p.Arguments()
	var root struct {
		Type any `json:"type"`
	}
	if len(in) > 0 && json.Unmarshal(in, &root) == nil && (root.Type == nil || root.Type == "object") {
		return in
	}
	if len(in) > 0 { // the input is not an object, so it becomes one argument
		return jsontext.Of(map[string]any{
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
	return jsontext.Of(map[string]any{"type": "object", "properties": properties, "required": required})
}

// variables returns the variables of a prompt for the arguments of a call.
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
	child := c.child // a pending run
	var res Result
	var err error
	if child != nil {
		res, err = child.end(child.goOn(ctx))
	} else if child, err = l.under(c.to.sub); err == nil {
		res, err = child.first(ctx, l, c)
	}
	h := c.to.item.Object.Head()
	c.Result = v1.Result{Tool: h.Metadata.Name, Namespace: h.Namespace(), Status: v1.StatusComplete, Repair: how, Attempts: 1, DurationMS: milliseconds(l.opts.Now().Sub(began))}
	if len(res.Hops) > 0 {
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
		c.Result.Content = jsontext.Of(res.Text)
	}
}

// under creates the loop of a prompt that this prompt calls.
func (l *loop) under(p *prompt.Prompt) (*loop, error) {
	o := l.opts
	o.ModelName = l.name
	if o.ModelFor != nil {
		var err error
		l.shared.choosing.Lock()
		o.Model, o.ModelName, err = o.ModelFor(p.Object())
		l.shared.choosing.Unlock()
		if err != nil {
			return nil, err
		}
	}
	o.ReturnToolRequests = false // only the caller of the outer prompt asked for tool requests
	child := makeLoop(l.reg, p, o)
	child.overlay = child.overlay.Within(l.overlay) // the policies of its callers also apply
	child.res.ID, child.depth, child.shared = newID(), l.depth+1, l.shared
	return child, nil
}

// first runs the prompt that a call of caller asks for. As with tools, arguments are
// checked before policies, so that an invalid call consumes no budget.
func (l *loop) first(ctx context.Context, caller *loop, c *Call) (Result, error) {
	if l.depth > l.opts.MaxDepth {
		return l.end(&callError{typeDepth, fmt.Sprintf("not called: prompts may call prompts %s deep, and this call is one level deeper", clip.Count(l.opts.MaxDepth, "level"))})
	}
	messages, err := l.prompt.Render(ctx, variables(l.prompt, c.raw))
	if err == nil {
		_, err = l.reg.AdmitPrompt(caller.governed(ctx), caller.call(c))
	}
	if err != nil {
		return l.end(err)
	}
	return l.converse(ctx, messages)
}
