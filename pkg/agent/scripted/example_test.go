package scripted_test

import (
	"context"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/scripted"
)

func Example() {
	model := scripted.New([]v1.ModelReply{{ToolCalls: []v1.ModelToolCall{{Tool: "get-weather"}}}, {Text: "Pack a coat."}}, scripted.Options{})
	for range 3 {
		reply, err := model.Generate(context.Background(), agent.Request{Messages: []agent.Message{{Role: agent.RoleUser, Text: "What should I pack?"}}}, nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Printf("%s: %d calls, %q\n", reply.Stop, len(reply.Message.ToolCalls), reply.Message.Text)
	}
	// Output:
	// tool_calls: 1 calls, ""
	// end: 0 calls, "Pack a coat."
	// scripted: the script is over: the model is asked for reply 3, and it has 2 replies
}
