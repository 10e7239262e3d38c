package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const travelPrompt = `---
title: What to pack
description: Says what to pack
system_prompt: You advise travellers.
tools: [get-*, other/pay]
policy: {blocklist: [get-gold]}
input:
  type: object
  properties:
    city: {type: string, minLength: 1, description: Where the trip goes}
    days: {type: integer, minimum: 1, default: 3}
    units: {type: string, enum: [metric, us, us-old], default: metric}
  required: [city]
  additionalProperties: false
---
What should I pack for {{.days}} days in {{.city}}, in {{.units}} units?
`

const servedSet = `
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: shout, labels: {team: loud}}
spec: {template: "{{upper .}}", input: {type: string}}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: broken}
spec: {template: "{{nothing}}"}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-weather}
spec: {description: Weather, input_schema: {type: object}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-gold}
spec: {description: Gold, input_schema: {type: object}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay, namespace: other}
spec: {description: Pays, input_schema: {type: object}, mock_result: {ok: true}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: delete-all, labels: {team: loud}}
spec: {description: Deletes, input_schema: {type: object}, mock_result: {ok: true}}
`

func promptFiles(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "travel.md"), travelPrompt)
	writeFile(t, filepath.Join(dir, "set.yaml"), servedSet)
	return dir
}

func promptNames(t *testing.T, cs *sdk.ClientSession) string {
	t.Helper()
	res, err := cs.ListPrompts(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range res.Prompts {
		names = append(names, p.Name)
	}
	return strings.Join(names, " ")
}

// checkPrompts tests the prompts of promptFiles through a client.
func checkPrompts(t *testing.T, cs *sdk.ClientSession) {
	t.Helper()
	list, err := cs.ListPrompts(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(list.Prompts)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"arguments":[{"name":"input","description":"the prompt's input: a string","required":true}],"name":"shout"},` +
		`{"arguments":[{"name":"city","description":"Where the trip goes","required":true},{"name":"days"},{"name":"units"}],"description":"Says what to pack","name":"travel","title":"What to pack"}]`
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b, a); diff != "" {
		t.Errorf("prompts (-want +got):\n%s", diff)
	}
	get := func(name string, args map[string]string) ([]string, error) {
		res, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: name, Arguments: args})
		if err != nil {
			return nil, err
		}
		var texts []string
		for _, m := range res.Messages {
			texts = append(texts, string(m.Role)+": "+m.Content.(*sdk.TextContent).Text)
		}
		return texts, nil
	}
	texts, err := get("travel", map[string]string{"city": "Oslo", "days": "5", "units": "US"})
	if diff := cmp.Diff([]string{"user: You advise travellers.", "user: What should I pack for 5 days in Oslo, in us units?"}, texts); diff != "" || err != nil {
		t.Errorf("travel: %v (-want +got):\n%s", err, diff)
	}
	if texts, err := get("shout", map[string]string{"input": "hello"}); err != nil || len(texts) != 1 || texts[0] != "user: HELLO" {
		t.Errorf("shout: %q, %v", texts, err)
	}
	for name, c := range map[string]struct {
		args map[string]string
		want string
	}{
		"travel": {map[string]string{"city": "", "days": "many"}, `/days: expected integer, got string "many"`},
		"shout":  {nil, `the argument "input" is missing`},
		"broken": {nil, `unknown prompt "broken"`},
	} {
		_, err := get(name, c.args)
		var wire *jsonrpc.Error
		if !errors.As(err, &wire) || wire.Code != jsonrpc.CodeInvalidParams || !strings.Contains(wire.Message, c.want) {
			t.Errorf("%s: error %v, want -32602 with %s", name, err, c.want)
		}
	}
	done, err := cs.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "travel"}, Argument: sdk.CompleteParamsArgument{Name: "units", Value: "u"}})
	if err != nil || strings.Join(done.Completion.Values, " ") != "us us-old" || done.Completion.Total != 2 {
		t.Errorf("completion: %+v, %v", done, err)
	}
	_, err = cs.Complete(t.Context(), &sdk.CompleteParams{Ref: &sdk.CompleteReference{Type: "ref/prompt", Name: "travel"}, Argument: sdk.CompleteParamsArgument{Name: "who"}})
	if err == nil || !strings.Contains(err.Error(), `prompt "travel" has no argument "who"`) {
		t.Errorf("completion of an argument that is not there: %v", err)
	}
}

// TestServePromptsOverHTTP checks that Prompt manifests are prompts of the server, over HTTP and in both protocol
// versions.
func TestServePromptsOverHTTP(t *testing.T) {
	s := serveHTTP(t, "-f", promptFiles(t))
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) { checkPrompts(t, s.client(t, version, nil)) })
	}
}

// TestServePromptsOverStdio checks the same over stdin and stdout.
func TestServePromptsOverStdio(t *testing.T) {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	ended := make(chan int, 1)
	var log bytes.Buffer
	go func() {
		ended <- run(context.Background(), []string{"serve", "-f", promptFiles(t)}, fromClient, toClient, &log)
		toClient.Close()
	}()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &sdk.IOTransport{Reader: fromServer, Writer: toServer}, nil)
	if err != nil {
		t.Fatal(err)
	}
	checkPrompts(t, cs)
	cs.Close()
	toServer.Close()
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d:\n%s", code, log.String())
	}
}

// TestServeSubsetOfPrompts checks that --prompt serves a prompt and exactly the tools that it names, under its policy.
func TestServeSubsetOfPrompts(t *testing.T) {
	dir := promptFiles(t)
	for _, tt := range []struct {
		name, prompts, tools string
		args                 []string
	}{
		{"all", "shout travel", "delete-all get-gold get-weather pay", nil},
		{"one prompt and its tools, without what its policy blocks", "travel", "get-weather pay", []string{"--prompt", "travel"}},
		{"a pattern, and tools besides", "shout travel", "delete-all get-gold get-weather pay", []string{"--prompt", "*", "--tools", "delete-*"}},
		{"a prompt without tools", "shout", "", []string{"--prompt", "default/shout"}},
		{"labels", "shout", "delete-all", []string{"--select", "team=loud"}},
		{"tools only", "", "delete-all", []string{"--tools", "delete-*"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serveHTTP(t, append([]string{"-f", dir}, tt.args...)...)
			cs := s.client(t, "2026-07-28", nil)
			// Broken manifests disappear from the list after they were checked.
			if got := promptNames(t, cs); got != tt.prompts {
				t.Errorf("prompts are %q, want %q", got, tt.prompts)
			}
			if got := toolNames(t, cs); got != tt.tools {
				t.Errorf("tools are %q, want %q", got, tt.tools)
			}
			if tt.name == "a prompt without tools" {
				if _, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "delete-all"}); err == nil {
					t.Error("a tool that is left out was called")
				}
			}
			if strings.HasPrefix(tt.name, "one prompt") {
				res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "get-gold"})
				if err != nil || !res.IsError || !strings.Contains(res.Content[0].(*sdk.TextContent).Text, "blocklist") {
					t.Errorf("a tool that the prompt's policy blocks: %v, %v", res, err)
				}
			}
		})
	}
}

// TestServeWarnsOfPromptsThatAreNotThere checks the warning about a --prompt that selects nothing, which is probably a
// mistake.
func TestServeWarnsOfPromptsThatAreNotThere(t *testing.T) {
	stdin, end := io.Pipe()
	log, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(context.Background(), []string{"serve", "-f", promptFiles(t), "--prompt", "travl", "--prompt", "sh*"}, stdin, io.Discard, w)
		w.Close()
	}()
	var told []string
	for in := bufio.NewScanner(log); in.Scan(); {
		if strings.Contains(in.Text(), "no ready prompt has the selected name") {
			told = append(told, in.Text())
			end.Close() // ends serve after the first warning, which should be the only one
		}
	}
	if len(told) != 1 || !strings.Contains(told[0], `"prompt":"travl"`) {
		t.Errorf("the log tells %q", told)
	}
	if code := <-ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

// TestServePromptsFollowChanges checks that a reload notifies clients of changed prompts.
func TestServePromptsFollowChanges(t *testing.T) {
	t.Parallel()
	dir := promptFiles(t)
	s := serveHTTP(t, "-f", dir, "--watch")
	told := make(chan struct{}, 10)
	cs := s.client(t, "2025-11-25", &sdk.ClientOptions{PromptListChangedHandler: func(context.Context, *sdk.PromptListChangedRequest) { told <- struct{}{} }})
	if err := os.Remove(filepath.Join(dir, "set.yaml")); err != nil {
		t.Fatal(err)
	}
	for promptNames(t, cs) != "travel" {
		<-told
	}
	writeFile(t, filepath.Join(dir, "travel.md"), strings.Replace(travelPrompt, "What should I pack", "What must I carry", 1))
	for {
		res, err := cs.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "travel", Arguments: map[string]string{"city": "Oslo"}})
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(res.Messages[1].Content.(*sdk.TextContent).Text, "What must I carry for 3 days") {
			return
		}
		s.wait(t, `"msg":"reloaded"`)
	}
}
