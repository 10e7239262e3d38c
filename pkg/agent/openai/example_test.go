package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/openai"
)

func Example() {
	// This server stands in for the API. Without OPENAI_BASE_URL, requests go to the real API.
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"id":"c1","object":"chat.completion","model":"gpt-5-mini","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"4 degrees"}}],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`)
	}))
	defer api.Close()
	env := map[string]string{"OPENAI_API_KEY": "key", "OPENAI_BASE_URL": api.URL + "/v1"}

	model, err := openai.New(openai.Options{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := model.Generate(context.Background(), agent.Request{
		Model:    "gpt-5-mini",
		Messages: []agent.Message{{Role: agent.RoleUser, Text: "How warm is it in Oslo?"}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Stop, reply.Usage.InputTokens, reply.Usage.OutputTokens, reply.Message.Text)
	// Output: end 9 3 4 degrees
}
