package anthropic_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/anthropic"
)

func Example() {
	// This server stands in for the API. Without ANTHROPIC_BASE_URL, requests go to the real API.
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"m1","type":"message","role":"assistant","model":"claude-haiku-4-5","content":[{"type":"text","text":"4 degrees"}],"stop_reason":"end_turn","usage":{"input_tokens":9,"output_tokens":3}}`)
	}))
	defer api.Close()
	env := map[string]string{"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": api.URL}

	model, err := anthropic.New(anthropic.Options{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := model.Generate(context.Background(), agent.Request{
		Model:    "claude-haiku-4-5",
		Messages: []agent.Message{{Role: agent.RoleUser, Text: "How warm is it in Oslo?"}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Stop, reply.Usage.InputTokens, reply.Usage.OutputTokens, reply.Message.Text)
	// Output: end 9 3 4 degrees
}
