package google_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/google"
)

func Example() {
	// This server stands in for the API. Without GOOGLE_GEMINI_BASE_URL, requests go to the real API.
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"modelVersion":"gemini-2.5-flash","candidates":[{"index":0,"finishReason":"STOP","content":{"role":"model","parts":[{"text":"4 degrees"}]}}],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":3,"totalTokenCount":12}}`)
	}))
	defer api.Close()
	env := map[string]string{"GEMINI_API_KEY": "key", "GOOGLE_GEMINI_BASE_URL": api.URL}

	model, err := google.New(google.Options{Env: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := model.Generate(context.Background(), agent.Request{
		Model:    "gemini-2.5-flash",
		Messages: []agent.Message{{Role: agent.RoleUser, Text: "How warm is it in Oslo?"}},
	}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Stop, reply.Usage.InputTokens, reply.Usage.OutputTokens, reply.Message.Text)
	// Output: end 9 3 4 degrees
}
