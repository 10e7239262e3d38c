package server_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

func TestResultsThatAreTooLarge(t *testing.T) {
	const most = 1000
	large := strings.Repeat("x", most)
	for _, tc := range []struct {
		name string
		res  v1.Result
		want bool // the result is passed on
	}{
		{"just fits", v1.Result{Parts: []v1.Part{{Type: v1.PartText, Text: large}}}, true},
		{"text", v1.Result{Parts: []v1.Part{{Type: v1.PartText, Text: large + "x"}}}, false},
		{"the sum of the parts", v1.Result{Parts: []v1.Part{{Type: v1.PartText, Text: large[1:]}, {Type: v1.PartImage, Data: "aGk="}}}, false},
		{"an embedded resource", v1.Result{Parts: []v1.Part{{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: "x:y", Blob: large}}}}, false},
		{"structured", v1.Result{Content: json.RawMessage(`{"x":"` + large + `"}`)}, false},
		{"_meta of a part", v1.Result{Parts: []v1.Part{{Type: v1.PartText, Text: "x", Meta: json.RawMessage(`{"x":"` + large + `"}`)}}}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.res.Status = v1.StatusComplete
			s := server.New(answer(tc.res, nil), server.Options{Admission: admission.New(admission.Limits{MaxResultBytes: most})})
			for protocol, version := range versions {
				raw := rawCall(t, s, version)
				text := toJSON(t, raw)
				s = server.New(answer(tc.res, nil), server.Options{Admission: admission.New(admission.Limits{MaxResultBytes: most})})
				if told := raw["isError"] == true && strings.Contains(text, "exceeds the limit of 1000"); told == tc.want {
					t.Errorf("%s: got %.300s", protocol, text)
				}
				if !tc.want && len(text) > 600 {
					t.Errorf("%s: still %d bytes", protocol, len(text))
				}
			}
		})
	}
}

func TestPromptsAndResourcesThatAreTooLarge(t *testing.T) {
	a := upstream("default", "a", true)
	a.Prompts, a.Resources = []mcp.Prompt{{Name: "greet"}}, []mcp.Resource{{URI: "file:///x", Name: "x"}}
	l := &library{catalog: catalogOf(), servers: []server.Upstream{a}}
	cs := overStdio(t, server.New(l, server.Options{Admission: admission.New(admission.Limits{MaxResultBytes: 2})}), versions["modern"], nil)
	_, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "a__greet"}) // its answer is "d" and "hi"
	if err == nil || !strings.Contains(err.Error(), "prompt a__greet: its 3 bytes exceed the limit of 2") {
		t.Errorf("got %v", err)
	}
	_, err = cs.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "file:///x"})
	if err == nil || !strings.Contains(err.Error(), "file:///x: its 10 bytes exceed the limit of 2") {
		t.Errorf("got %v", err)
	}
}

func TestInstructions(t *testing.T) {
	one, two := upstream("default", "one", true), upstream("default", "two", true)
	one.Instructions = "Ask me about weather."
	of := func(name string) func(*server.Offer) {
		return func(o *server.Offer) { o.Tool.Spec.MCP = &v1.MCPToolSpec{Server: name} }
	}
	for _, tc := range []struct {
		name    string
		servers []server.Upstream
		offers  []server.Offer
		set     string
		want    string
	}{
		{name: "of the only server", servers: []server.Upstream{one}, offers: []server.Offer{offer("", "one__a", of("one"))}, want: "Ask me about weather."},
		{name: "of two servers", servers: []server.Upstream{one, two}, want: "gateway to tools of several origins"},
		{name: "of a server beside other tools", servers: []server.Upstream{one}, offers: []server.Offer{offer("", "own")}, want: "gateway to tools"},
		{name: "of a server that says nothing", servers: []server.Upstream{two}, want: "gateway to tools"},
		{name: "of none", want: "gateway to tools"},
		{name: "of the options", servers: []server.Upstream{one}, set: "Be quick.", want: "Be quick."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for protocol, version := range versions {
				s := server.New(&library{catalog: catalogOf(tc.offers...), servers: tc.servers}, server.Options{Instructions: tc.set})
				cs := overStdio(t, s, version, nil)
				got := ""
				if r := cs.InitializeResult(); r != nil {
					got = r.Instructions
				}
				if !strings.Contains(got, tc.want) {
					t.Errorf("%s: got %q, want %q", protocol, got, tc.want)
				}
			}
		})
	}
}

// The only server is still starting when the client gets its instructions.
func TestInstructionsWaitForTheOnlyServer(t *testing.T) {
	starting, ready := upstream("default", "one", false), upstream("default", "one", true)
	ready.Instructions = "Ask me."
	l := &library{catalog: catalogOf(), servers: []server.Upstream{starting}}
	s := server.New(l, server.Options{})
	l.settle = func(context.Context) {
		l.servers = []server.Upstream{ready}
		s.Refresh()
	}
	if got := overStdio(t, s, versions["sessions"], nil).InitializeResult().Instructions; got != "Ask me." {
		t.Errorf("got %q", got)
	}
}
