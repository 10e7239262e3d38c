package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

// promptSet is an immutable set of served Prompt manifests.
type promptSet struct {
	prompts map[v1.Key]*prompt.Prompt
	failed  []failedPrompt
	// policy is the policy of the only prompt that --prompt selects. It is nil for several prompts, because a call does
	// not say for which prompt the client makes it.
	policy *policy.Overlay
}

// failedPrompt is a prompt that is not served.
type failedPrompt struct {
	key v1.Key
	err error
}

// prompts adds warnings for the prompts that are not served.
func (w *warnings) prompts(c *catalog) {
	for _, p := range c.fillPrompts().failed {
		const message = "a prompt is not served"
		w.note(message, fmt.Sprintf("prompt %s is not served: %s", p.key.Name, p.err), "prompt", p.key.Name, "namespace", p.key.Namespace, "error", p.err.Error())
	}
}

// fillPrompts compiles the served Prompt manifests: those that --prompt names, or else all with the labels of --select,
// unless only some tools are served. It reuses unchanged prompts.
func (c *catalog) fillPrompts() *promptSet {
	now := &promptSet{prompts: map[v1.Key]*prompt.Prompt{}}
	defer func() { c.promptSet.Store(now) }()
	if len(c.Tools) > 0 && len(c.Prompts) == 0 {
		return now
	}
	page, err := c.reg.List(registry.Query{Kind: v1.KindPrompt, Namespace: c.Namespace, Selector: c.Selector})
	if err != nil { // the selector was parsed before
		c.log.Error("list the prompts", "error", err)
		return now
	}
	old := c.promptSet.Load()
	for _, it := range page.Items {
		m, key := it.Object.(*v1.Prompt), it.Object.Head().Key()
		if !it.Ready || !c.wantsPrompt(key.Namespace, key.Name) {
			continue
		}
		if p := old.prompt(key); p != nil && p.Object() == m {
			now.prompts[key] = p
			continue
		}
		p, err := prompt.Compile(m)
		if err != nil {
			now.failed = append(now.failed, failedPrompt{key, err})
			continue
		}
		now.prompts[key] = p
	}
	if len(c.Prompts) > 0 && len(now.prompts) == 1 {
		for key, p := range now.prompts {
			if old.prompt(key) == p {
				now.policy = old.policy
			}
			if s := p.Object().Spec.Policy; s != nil && now.policy == nil {
				now.policy = policy.NewOverlay(p.Object().Head(), *s)
			}
		}
	}
	return now
}

// prompt returns a prompt of the promptSet, which may be nil. It returns nil if the prompt does not exist.
func (s *promptSet) prompt(key v1.Key) *prompt.Prompt {
	if s == nil {
		return nil
	}
	return s.prompts[key]
}

// overlay returns the policy that applies to every call in addition to those of the registry.
func (c *catalog) overlay() *policy.Overlay {
	if s := c.promptSet.Load(); s != nil {
		return s.policy
	}
	return nil
}

// wantsPrompt reports whether --prompt selects a prompt.
func (c *catalog) wantsPrompt(namespace, name string) bool {
	return len(c.Prompts) == 0 || slices.ContainsFunc(c.Prompts, func(p string) bool {
		return v1.MatchPattern(p, name) || v1.MatchPattern(p, namespace+"/"+name)
	})
}

// ownPrompts returns the Prompt manifests in the form for MCP clients.
func (c *catalog) ownPrompts() []server.Prompt {
	now := c.fillPrompts().prompts
	all := make([]server.Prompt, 0, len(now))
	for key, p := range now {
		s := &p.Object().Spec
		all = append(all, server.Prompt{Key: key, Prompt: mcp.Prompt{Name: key.Name, Title: s.Title, Description: s.Description, Arguments: argumentsOf(p)}})
	}
	slices.SortFunc(all, func(a, b server.Prompt) int {
		return cmp.Or(strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	return all
}

func argumentsOf(p *prompt.Prompt) (all []mcp.PromptArgument) {
	for _, a := range p.Arguments() {
		all = append(all, mcp.PromptArgument{Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required})
	}
	return all
}

func (c *catalog) servedPrompt(key v1.Key) (*prompt.Prompt, error) {
	if p := c.promptSet.Load().prompt(key); p != nil {
		return p, nil
	}
	return nil, &v1.NotFoundError{Kind: v1.KindPrompt, Name: key.Name}
}

// renderPrompt renders a Prompt manifest. MCP prompts have no system messages, so every message has the role user.
func (c *catalog) renderPrompt(ctx context.Context, key v1.Key, args map[string]string) (mcp.PromptResult, error) {
	p, err := c.servedPrompt(key)
	if err != nil {
		return mcp.PromptResult{}, err
	}
	messages, err := c.messages(ctx, key, p.FromStrings(args))
	if err != nil {
		return mcp.PromptResult{}, err
	}
	for i := range messages {
		messages[i].Role = prompt.RoleUser
	}
	return mcp.PromptResult{Description: p.Object().Spec.Description, Messages: messages}, nil
}

// completePrompt returns the enum values that begin with the given prefix.
func (c *catalog) completePrompt(key v1.Key, r mcp.CompletionRequest) (mcp.Completion, error) {
	p, err := c.servedPrompt(key)
	if err != nil {
		return mcp.Completion{}, err
	}
	values, total, ok := p.Complete(r.Argument, r.Value)
	if !ok {
		return mcp.Completion{}, v1.NewValidationError(v1.ArgsInvalid, "", []v1.Violation{{Path: v1.Pointer("", r.Argument), Expected: "an argument of the prompt", Got: "another",
			Message: fmt.Sprintf("prompt %q has no argument %q", key.Name, clip.Runes(r.Argument, 60))}})
	}
	return mcp.Completion{Values: values, Total: total, HasMore: total > len(values)}, nil
}

// toolsOfPrompts returns the full names of the tools that the prompts of --prompt name, or nil without that flag. It
// looks for a name in the prompt's own namespace first, then in all; a pattern matches the tools of its own namespace,
// or of the namespace before its slash.
func (c *catalog) toolsOfPrompts() map[string]bool {
	if len(c.Prompts) == 0 {
		return nil
	}
	named := map[string]bool{}
	for _, p := range c.fillPrompts().prompts {
		own := p.Object().Namespace()
		for _, want := range p.Object().Spec.Tools {
			for _, it := range ToolsNamed(c.reg, own, want) {
				named[it.FullName] = true
			}
		}
	}
	return named
}

// ToolsNamed returns the tools that match an entry of a prompt's tools.
func ToolsNamed(reg *registry.Registry, own, want string) []registry.Item {
	if strings.HasSuffix(want, "*") {
		namespace, pattern, ok := strings.Cut(want, "/")
		if !ok {
			namespace, pattern = own, want
		}
		page, err := reg.List(registry.Query{Kind: v1.KindTool, Namespace: namespace, Name: pattern})
		if err != nil {
			return nil
		}
		return page.Items
	}
	for _, namespace := range []string{own, ""} {
		if it, err := reg.Lookup(namespace, want); err == nil {
			return []registry.Item{it}
		}
	}
	return nil
}

// promptsOnly reduces a server to the prompts that --prompt names.
func (c *catalog) promptsOnly(s mcp.ServerState) (mcp.ServerState, bool) {
	s.Prompts = slices.DeleteFunc(slices.Clone(s.Prompts), func(p mcp.Prompt) bool { return !c.wantsPrompt(s.Key.Namespace, s.Key.Name+"__"+p.Name) })
	s.Resources, s.ResourceTemplates = nil, nil
	return s, len(s.Prompts) > 0
}

// hasPrompt reports whether a name of --prompt matches any prompt.
func (c *catalog) hasPrompt(want string) bool {
	fits := func(namespace, name string) bool {
		return v1.MatchPattern(want, name) || v1.MatchPattern(want, namespace+"/"+name)
	}
	for key := range c.promptSet.Load().prompts {
		if fits(key.Namespace, key.Name) {
			return true
		}
	}
	return slices.ContainsFunc(c.upstreams(), func(s server.Upstream) bool {
		return slices.ContainsFunc(s.Prompts, func(p mcp.Prompt) bool { return fits(s.Key.Namespace, s.Key.Name+"__"+p.Name) })
	})
}
