package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search"
)

// Prompt is a Prompt manifest, or a prompt of an MCP server.
type Prompt struct {
	mcp.Prompt
	// Owner is the manifest: a Prompt, or the MCPServer that offers the prompt.
	Owner v1.Key
	// Input is the JSON Schema of the variables if it describes an object. If not, the variables are the texts in
	// Arguments.
	Input json.RawMessage
	// Source is the position of the manifest; zero for a prompt of a server.
	Source v1.Source
	// Ready says whether the prompt can be rendered, and Reasons why it cannot.
	Ready   bool
	Reasons []v1.Violation
}

// Prompts returns the served prompts, sorted by name and including those that are not ready.
func (v View) Prompts() []Prompt {
	c, alone := v.g.catalog, v.g.catalog.alone()
	ready := c.fillPrompts().prompts
	var all []Prompt
	if len(c.Tools) == 0 || len(c.Prompts) > 0 {
		page, err := c.reg.List(registry.Query{Kind: v1.KindPrompt, Namespace: c.Namespace, Selector: c.Selector})
		if err != nil { // the selector was parsed before
			return nil
		}
		for _, it := range page.Items {
			m, key := it.Object.(*v1.Prompt), it.Object.Head().Key()
			if !c.wantsPrompt(key.Namespace, key.Name) || alone != nil && !search.Contains(alone, v1.KindPrompt, it.Subject) {
				continue
			}
			one := Prompt{Owner: key, Source: m.Head().Source, Reasons: it.Reasons}
			one.Name, one.Title, one.Description = key.Name, m.Spec.Title, m.Spec.Description
			if p := ready[key]; p != nil {
				one.Ready, one.Input = true, objectSchema(m.Spec.Input)
				one.Arguments = argumentsOf(p)
			}
			all = append(all, one)
		}
	}
	upstreams := c.upstreams()
	if alone != nil {
		upstreams = c.upstreamsIn(alone, upstreams)
	}
	for _, s := range upstreams {
		for _, p := range s.Prompts {
			all = append(all, Prompt{Prompt: p, Owner: s.Key, Ready: true})
		}
	}
	slices.SortFunc(all, func(a, b Prompt) int {
		return cmp.Or(cmp.Compare(a.Owner.Namespace, b.Owner.Namespace), cmp.Compare(a.Owner.Name, b.Owner.Name), cmp.Compare(a.Name, b.Name))
	})
	return all
}

// objectSchema returns raw if it is a schema that accepts objects, and nil if not.
func objectSchema(raw json.RawMessage) json.RawMessage {
	var s struct {
		Type       any             `json:"type"`
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(raw, &s) != nil || s.Type != "object" && (s.Type != nil || s.Properties == nil) {
		return nil
	}
	return raw
}

// RenderPrompt renders one of Prompts with its variables, a JSON object.
func (v View) RenderPrompt(ctx context.Context, p Prompt, vars json.RawMessage) (messages []mcp.PromptMessage, err error) {
	err = v.admitted(ctx, vars, func(ctx context.Context) error {
		if messages, err = v.g.catalog.messagesOf(ctx, p, vars); err != nil {
			return err
		}
		size := 0
		for i := range messages {
			size += messages[i].Content.TextSize()
		}
		return v.g.admission.Result(int64(size))
	})
	if err != nil {
		return nil, err
	}
	return messages, nil
}

func (c *catalog) messagesOf(ctx context.Context, p Prompt, vars json.RawMessage) ([]mcp.PromptMessage, error) {
	if p.Owner.Kind == v1.KindPrompt && p.Input != nil {
		return c.messages(ctx, p.Owner, vars)
	}
	texts := map[string]string{}
	if len(vars) > 0 {
		if err := json.Unmarshal(vars, &texts); err != nil {
			return nil, v1.NewValidationError(v1.ArgsInvalid, "", []v1.Violation{{Expected: "an object of texts", Got: "something else", Message: "the variables of this prompt are texts"}})
		}
	}
	if p.Owner.Kind == v1.KindPrompt {
		own, err := c.servedPrompt(p.Owner)
		if err != nil {
			return nil, err
		}
		return c.messages(ctx, p.Owner, own.FromStrings(texts))
	}
	res, err := c.servers.GetPrompt(ctx, p.Owner, p.Name, texts)
	return res.Messages, err
}

// messages renders a Prompt manifest and keeps the role of each message.
func (c *catalog) messages(ctx context.Context, key v1.Key, vars json.RawMessage) ([]mcp.PromptMessage, error) {
	p, err := c.servedPrompt(key)
	if err != nil {
		return nil, err
	}
	messages, err := p.Render(ctx, vars)
	if err != nil {
		return nil, fmt.Errorf("prompt %q: %w", key.Name, err)
	}
	all := make([]mcp.PromptMessage, 0, len(messages))
	for _, m := range messages {
		all = append(all, mcp.PromptMessage{Role: m.Role, Content: v1.Part{Type: v1.PartText, Text: m.Content}})
	}
	return all, nil
}
