package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// ServerPrompt renders a prompt of an MCP server by its name on the server, server__prompt or namespace/server__prompt.
// It queries the servers that may have the prompt. The error is a [v1.NotFoundError], which also suggests Prompt
// manifests, or names the wrong arguments, or says why a server that may have the prompt is not ready.
func (g *Gateway) ServerPrompt(ctx context.Context, namespace, name string, args map[string]string) (mcp.PromptResult, error) {
	missing := &v1.NotFoundError{Kind: v1.KindPrompt, Name: name}
	if _, err := g.reg.Get(v1.KindPrompt, namespace, name); err != nil {
		errors.As(err, &missing)
	}
	states := g.mayHave(ctx, namespace, name)
	keys := make([]v1.Key, len(states))
	for i := range states {
		keys[i] = states[i].Key
	}
	type hit struct {
		server v1.Key
		prompt mcp.Prompt
	}
	var hits []hit
	var known []string
	local := name
	if ns, rest, ok := strings.Cut(name, "/"); ok && slices.ContainsFunc(keys, func(k v1.Key) bool { return k.Namespace == ns }) {
		local = rest
	}
	for _, s := range states {
		for _, p := range s.Prompts {
			full := s.Key.Name + "__" + p.Name
			known = append(known, full)
			if local == full || local == s.Key.Name+"."+p.Name || local == p.Name {
				hits = append(hits, hit{s.Key, p})
			}
		}
	}
	switch len(hits) {
	case 1:
		if err := missingArgs(hits[0].server.Name+"__"+hits[0].prompt.Name, hits[0].prompt, args); err != nil {
			return mcp.PromptResult{}, err
		}
		return g.servers.GetPrompt(ctx, hits[0].server, hits[0].prompt.Name, args)
	case 0:
		for _, s := range states {
			if !s.Ready { // this server may have it
				return mcp.PromptResult{}, s.Failure()
			}
		}
		if near := v1.Nearest(name, append(known, missing.Candidates...)); near != "" {
			missing.Candidates = []string{near}
		}
		return mcp.PromptResult{}, missing
	}
	missing.Candidates, missing.Ambiguous = nil, true
	for _, h := range hits {
		missing.Candidates = append(missing.Candidates, h.server.Namespace+"/"+h.server.Name+"__"+h.prompt.Name)
	}
	return mcp.PromptResult{}, missing
}

// missingArgs returns an error that names missing and unknown arguments.
func missingArgs(name string, p mcp.Prompt, args map[string]string) error {
	var fs []v1.Violation
	var known []string
	for _, arg := range p.Arguments {
		known = append(known, arg.Name)
		if _, ok := args[arg.Name]; arg.Required && !ok {
			fs = append(fs, v1.Violation{Path: v1.Pointer("", arg.Name), Expected: "a value", Got: "nothing", Message: fmt.Sprintf("required argument %q is missing", arg.Name)})
		}
	}
	for k := range args {
		if !slices.Contains(known, k) {
			msg := fmt.Sprintf("unknown argument %q", k)
			msg += v1.DidYouMean(k, known)
			fs = append(fs, v1.Violation{Path: v1.Pointer("", k), Expected: "an argument of the prompt", Got: k, Message: msg})
		}
	}
	if fs == nil {
		return nil
	}
	slices.SortFunc(fs, func(a, b v1.Violation) int { return strings.Compare(a.Path, b.Path) })
	err := v1.NewValidationError(v1.ArgsInvalid, "", fs)
	return fmt.Errorf("prompt %q: %w", name, err)
}
