package server_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// promptSet is a library with prompts of its own.
type promptSet struct {
	*library
	prompts []server.Prompt
	fails   error
}

func (s *promptSet) Contents() server.Contents {
	c := s.library.Contents()
	c.Prompts = s.prompts
	return c
}

func (s *promptSet) GetPrompt(ctx context.Context, k v1.Key, name string, args map[string]string) (mcp.PromptResult, error) {
	if k.Kind != v1.KindPrompt {
		return s.library.GetPrompt(ctx, k, name, args)
	}
	return mcp.PromptResult{Messages: []mcp.PromptMessage{{Role: "user", Content: v1.Part{Type: v1.PartText, Text: k.Namespace + "/" + k.Name + " " + args["city"]}}}}, s.fails
}

func (s *promptSet) Complete(_ context.Context, k v1.Key, r mcp.CompletionRequest) (mcp.Completion, error) {
	return mcp.Completion{Values: []string{k.Name, r.Argument, r.Value}, Total: 3}, s.fails
}

func ownPrompt(namespace, name string, args ...mcp.PromptArgument) server.Prompt {
	return server.Prompt{Key: v1.Key{Kind: v1.KindPrompt, Namespace: namespace, Name: name}, Prompt: mcp.Prompt{Name: name, Arguments: args}}
}

func TestPromptsOfTheCatalog(t *testing.T) {
	a := upstream("default", "a", true)
	a.Prompts, a.Bare = []mcp.Prompt{{Name: "greet"}, {Name: "plan"}}, true
	for protocol, version := range versions {
		t.Run(protocol, func(t *testing.T) {
			s := &promptSet{library: &library{catalog: catalogOf(), servers: []server.Upstream{a}}, prompts: []server.Prompt{
				ownPrompt("default", "greet", mcp.PromptArgument{Name: "city", Required: true}), ownPrompt("other", "Pack the bags!"),
			}}
			cs := overStdio(t, server.New(s, server.Options{}), version, nil)
			var names []string
			for p, err := range cs.Prompts(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, p.Name)
			}
			// Two prompts with the same name in one namespace: neither keeps it, and their hashes differ.
			if len(names) != 4 || names[0] != "Pack_the_bags_" || !strings.HasPrefix(names[1], "greet_") || !strings.HasPrefix(names[2], "greet_") || names[3] != "plan" {
				t.Errorf("prompts are %q", names)
			}
			get := func(name string, args map[string]string) (string, error) {
				res, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: args})
				if err != nil {
					return "", err
				}
				return res.Messages[0].Content.(*sdk.TextContent).Text, nil
			}
			if text, err := get("Pack_the_bags_", map[string]string{"city": "Oslo"}); err != nil || text != "other/Pack the bags! Oslo" {
				t.Errorf("the catalog's own prompt: %q, %v", text, err)
			}
			if text, err := get("plan", nil); err != nil || text != "hi" {
				t.Errorf("a server's prompt: %q, %v", text, err)
			}
			done, err := cs.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "Pack_the_bags_"}, Argument: sdk.CompleteParamsArgument{Name: "x", Value: "m"}})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"Pack the bags!", "x", "m"}, done.Completion.Values); diff != "" {
				t.Errorf("completion (-want +got):\n%s", diff)
			}
			for _, f := range []struct {
				err  error
				code int64
				text string
			}{
				{v1.NewValidationError(v1.ArgsInvalid, "", []v1.Violation{{Path: "/a", Message: "a is wrong"}, {Path: "/b", Message: "b is wrong"}}), jsonrpc.CodeInvalidParams, "/a: a is wrong; /b: b is wrong"},
				{errors.New("broken"), 0, "broken"},
			} {
				s.fails = f.err
				_, err := get("Pack_the_bags_", nil)
				var wire *jsonrpc.Error
				if !errors.As(err, &wire) || f.code != 0 && wire.Code != f.code || !strings.Contains(wire.Message, f.text) {
					t.Errorf("%v came as %v", f.err, err)
				}
			}
		})
	}
}

func TestListChangesWithThePromptsOfTheCatalog(t *testing.T) {
	s := &promptSet{library: &library{catalog: catalogOf()}, prompts: []server.Prompt{ownPrompt("default", "a")}}
	srv := server.New(s, server.Options{})
	told := make(chan struct{}, 1)
	cs := overStdio(t, srv, versions["sessions"], &sdk.ClientOptions{PromptListChangedHandler: func(context.Context, *sdk.PromptListChangedRequest) { told <- struct{}{} }})
	s.prompts = append(s.prompts, ownPrompt("default", "b"))
	srv.Refresh()
	<-told
	res, err := cs.ListPrompts(t.Context(), nil)
	if err != nil || len(res.Prompts) != 2 {
		t.Errorf("prompts after the change: %v, %v", res, err)
	}
}
