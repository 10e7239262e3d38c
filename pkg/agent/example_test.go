package agent_test

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/scripted"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

func ExampleRun() {
	tool := v1.NewObject(v1.KindTool).(*v1.Tool)
	tool.Metadata.Name = "get-weather"
	tool.Spec = v1.ToolSpec{Description: "Current weather", InputSchema: json.RawMessage(`{"type":"object"}`), MockResult: json.RawMessage(`{"celsius":4}`)}
	manifest := v1.NewObject(v1.KindPrompt).(*v1.Prompt)
	manifest.Metadata.Name = "advice"
	manifest.Spec = v1.PromptSpec{Template: "What should I pack for {{.city}}?", Tools: []string{"get-weather"}}

	reg, err := registry.New([]v1.Object{tool, manifest}, registry.Options{Executors: executors.All(executors.Options{})})
	if err != nil {
		panic(err)
	}
	defer reg.Close()
	p, err := prompt.Compile(manifest)
	if err != nil {
		panic(err)
	}
	model := scripted.New([]v1.ModelReply{ // or the model of a provider
		{ToolCalls: []v1.ModelToolCall{{Tool: "get-weather"}}},
		{Text: "Pack a coat."},
	}, scripted.Options{})
	res, err := agent.Run(context.Background(), reg, p, json.RawMessage(`{"city":"Oslo"}`), agent.Options{Model: model})
	if err != nil {
		panic(err)
	}
	fmt.Println(res.Text)
	fmt.Println(res.Hops[0].Calls[0].Tool, string(res.Hops[0].Calls[0].Result.Content))
	// Output:
	// Pack a coat.
	// default/get-weather {"celsius":4}
}
