package server

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// PromptSource is a [Library] with prompts of its own, beside those of MCP servers.
type PromptSource interface {
	// Prompts returns what can be rendered now. It does not wait.
	Prompts() []Prompt
	// RenderPrompt fills in a prompt. Arguments that do not fit are a [v1.ValidationError].
	RenderPrompt(ctx context.Context, prompt v1.Key, args map[string]string) (mcp.PromptResult, error)
	// CompletePrompt returns the values that an argument of a prompt may take.
	CompletePrompt(ctx context.Context, prompt v1.Key, r mcp.CompletionRequest) (mcp.Completion, error)
}

// Prompt is one prompt of a [PromptSource]. Clients know it by its name, with the rules
// of [Offer] for names that are equal.
type Prompt struct {
	// Key is of the kind Prompt.
	Key v1.Key
	mcp.Prompt
}

// promptsOf returns the prompts that a catalog has itself.
func promptsOf(c Catalog) []Prompt {
	if source, ok := c.(PromptSource); ok {
		return source.Prompts()
	}
	return nil
}

// render asks whoever has the prompt to fill it in.
func (r remote) render(ctx context.Context, lib Library, args map[string]string) (mcp.PromptResult, error) {
	source, ok := lib.(PromptSource)
	if !ok || r.owner.Kind != v1.KindPrompt {
		return lib.GetPrompt(ctx, r.owner, r.prompt.Name, args)
	}
	res, err := source.RenderPrompt(ctx, r.owner, args)
	return res, invalidParams(err)
}

// complete asks whoever has the prompt, or the resource, for completions.
func complete(ctx context.Context, lib Library, owner v1.Key, ask mcp.CompletionRequest) (mcp.Completion, error) {
	source, ok := lib.(PromptSource)
	if !ok || owner.Kind != v1.KindPrompt {
		return lib.Complete(ctx, owner, ask)
	}
	res, err := source.CompletePrompt(ctx, owner, ask)
	return res, invalidParams(err)
}

// invalidParams makes the error of wrong arguments that of MCP (specification,
// server/prompts, error handling: -32602 for missing required arguments).
func invalidParams(err error) error {
	var invalid *v1.ValidationError
	if errors.As(err, &invalid) && invalid.Type == v1.ArgsInvalid {
		return &v1.MCPError{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return err
}
