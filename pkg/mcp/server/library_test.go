package server_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// library is a catalog with prompts and resources. asked records the requests to its servers.
type library struct {
	*catalog
	servers []server.Upstream
	asked   []string
	err     error
}

func (l *library) Contents() server.Contents {
	c := l.catalog.Contents()
	c.Servers = l.servers
	return c
}

func (l *library) GetPrompt(_ context.Context, k v1.Key, name string, args map[string]string) (mcp.PromptResult, error) {
	l.asked = append(l.asked, k.Name+" "+name+" "+args["city"])
	return mcp.PromptResult{Description: "d", Messages: []mcp.PromptMessage{{Role: "user", Content: v1.Part{Type: v1.PartText, Text: "hi"}}}}, l.err
}

func (l *library) ReadResource(_ context.Context, k v1.Key, uri string) ([]v1.Part, error) {
	l.asked = append(l.asked, k.Name+" "+uri)
	return []v1.Part{{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: uri, MIMEType: "text/plain", Text: "A"}}}, l.err
}

func (l *library) Complete(_ context.Context, k v1.Key, r mcp.CompletionRequest) (mcp.Completion, error) {
	return mcp.Completion{Values: []string{k.Name, r.Prompt, r.URITemplate, r.Argument, r.Value, r.Context["k"]}, Total: 6}, l.err
}

func upstream(namespace, name string, ready bool) server.Upstream {
	return server.Upstream{ServerState: mcp.ServerState{Key: v1.Key{Kind: v1.KindMCPServer, Namespace: namespace, Name: name}, Ready: ready}}
}

func TestPromptsAndResources(t *testing.T) {
	a, b, down := upstream("default", "a", true), upstream("default", "b", true), upstream("default", "down", false)
	a.Prompts = []mcp.Prompt{{Name: "greet", Title: "T", Arguments: []mcp.PromptArgument{{Name: "city", Required: true}}}}
	b.Prompts, b.Bare = []mcp.Prompt{{Name: "greet"}}, true
	down.Prompts = []mcp.Prompt{{Name: "lost"}}
	a.Resources = []mcp.Resource{{URI: "file:///x", Name: "x", MIMEType: "text/plain"}, {URI: "file:///a", Name: "a"}}
	b.Resources = []mcp.Resource{{URI: "file:///x", Name: "another"}}
	b.ResourceTemplates = []mcp.ResourceTemplate{{URITemplate: "note://{id}", Name: "note"}, {URITemplate: "{broken", Name: "broken"}}
	for protocol, version := range versions {
		t.Run(protocol, func(t *testing.T) {
			l := &library{catalog: catalogOf(), servers: []server.Upstream{down, b, a}}
			s := server.New(l, server.Options{PageSize: 1})
			told := make(chan struct{}, 1)
			cs := overStdio(t, s, version, &sdk.ClientOptions{
				ToolListChangedHandler:     func(context.Context, *sdk.ToolListChangedRequest) {},
				ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) { told <- struct{}{} },
			})
			var got []string
			for p, err := range cs.Prompts(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, p.Name)
			}
			for r, err := range cs.Resources(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.URI+" "+r.Name)
			}
			for r, err := range cs.ResourceTemplates(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r.URITemplate)
			}
			if d := cmp.Diff([]string{"a__greet", "greet", "file:///a a", "file:///x x", "note://{id}", "{broken"}, got); d != "" {
				t.Error(d)
			}
			prompt, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "a__greet", Arguments: map[string]string{"city": "Oslo"}})
			if err != nil || toJSON(t, prompt.Messages) != `[{"content":{"type":"text","text":"hi"},"role":"user"}]` {
				t.Errorf("got %s, %v", toJSON(t, prompt), err)
			}
			for _, uri := range []string{"file:///x", "note://7"} {
				res, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
				if err != nil || len(res.Contents) != 1 || res.Contents[0].Text != "A" || res.Contents[0].URI != uri {
					t.Errorf("%s: got %s, %v", uri, toJSON(t, res), err)
				}
			}
			if d := cmp.Diff([]string{"a greet Oslo", "a file:///x", "b note://7"}, l.asked); d != "" {
				t.Error(d)
			}
			for _, tc := range []struct {
				ref  sdk.CompleteReference
				want string
			}{
				{sdk.CompleteReference{Type: "ref/prompt", Name: "a__greet"}, `["a","greet","","city","Os","v"]`},
				{sdk.CompleteReference{Type: "ref/resource", URI: "note://{id}"}, `["b","","note://{id}","city","Os","v"]`},
			} {
				res, err := cs.Complete(t.Context(), &sdk.CompleteParams{Ref: &tc.ref, Argument: sdk.CompleteParamsArgument{Name: "city", Value: "Os"}, Context: &sdk.CompleteContext{Arguments: map[string]string{"k": "v"}}})
				if err != nil || toJSON(t, res.Completion.Values) != tc.want {
					t.Errorf("got %s, %v", toJSON(t, res), err)
				}
			}
			_, err = cs.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "no"}, Argument: sdk.CompleteParamsArgument{Name: "city"}})
			wantCode(t, err, jsonrpc.CodeInvalidParams)

			_, err = cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "a__greet"})
			wantCode(t, err, jsonrpc.CodeInvalidParams)
			if err == nil || !strings.Contains(err.Error(), `the argument "city" is missing`) {
				t.Errorf("got %v", err)
			}
			_, err = cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "lost"})
			wantCode(t, err, jsonrpc.CodeInvalidParams)
			_, err = cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "file:///no"})
			wantCode(t, err, map[string]int64{"sessions": -32002, "modern": -32602}[protocol])
			l.err = &v1.MCPError{Server: "a", Code: -32050, Message: "its own"}
			_, err = cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "file:///x"})
			wantCode(t, err, -32050)
			l.err = &v1.MCPError{Server: "a", Message: "it died"}
			_, err = cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "greet"})
			wantCode(t, err, -32000)

			l.servers = nil
			s.Refresh()
			<-told
		})
	}
}

// files is a library with a resource of its own.
type files struct{ *library }

func (f files) Contents() server.Contents {
	c := f.library.Contents()
	c.Resources = []server.Resource{{Owner: v1.Key{Kind: v1.KindTool, Namespace: "default", Name: "t"}, Resource: mcp.Resource{URI: "file:///x", Name: "own"}}}
	return c
}

func (f files) ReadResource(ctx context.Context, owner v1.Key, uri string) ([]v1.Part, error) {
	if owner.Kind == v1.KindMCPServer {
		return f.library.ReadResource(ctx, owner, uri)
	}
	return []v1.Part{{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: uri, Text: "of " + owner.Name}}}, nil
}

// A resource of a manifest takes precedence over a server's resource with the same address.
func TestDeclaredResourcesComeFirst(t *testing.T) {
	a := upstream("", "a", true)
	a.Resources = []mcp.Resource{{URI: "file:///x", Name: "another"}}
	l := files{&library{catalog: catalogOf(), servers: []server.Upstream{a}}}
	for protocol, version := range versions {
		cs := overStdio(t, server.New(l, server.Options{}), version, nil)
		list, err := cs.ListResources(t.Context(), nil)
		if err != nil || len(list.Resources) != 1 || list.Resources[0].Name != "own" {
			t.Errorf("%s: got %s, %v", protocol, toJSON(t, list), err)
		}
		res, err := cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "file:///x"})
		if err != nil || res.Contents[0].Text != "of t" {
			t.Errorf("%s: got %s, %v", protocol, toJSON(t, res), err)
		}
	}
	if len(l.asked) > 0 {
		t.Errorf("the server was asked: %v", l.asked)
	}
}
