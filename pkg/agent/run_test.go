package agent_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/registry"
)

func TestRun(t *testing.T) {
	w := newWorld(t, tools, registry.Options{})
	res, err := w.run("advice", `{"city":"Oslo"}`, `
- sees: {tools: [book, get-weather], tool_choice: auto, contains: [Be brief., "What should I pack for Oslo?"]}
  text: Let me look.
  tool_calls:
  - {tool: get-weather, args: {city: Oslo}}
  - {tool: book, args: {city: Oslo}}
- sees: {contains: ['"celsius": 4', '"booked":true']}
  text: Pack a coat.
`, agent.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `user: What should I pack for Oslo?
assistant: Let me look. [call-1 get-weather {"city":"Oslo"}] [call-2 book {"city":"Oslo"}]
tool: <untrusted_tool_result tool="get-weather">
{"city": "Oslo", "celsius": 4}
</untrusted_tool_result>
tool: <untrusted_tool_result tool="book">
{"booked":true}
</untrusted_tool_result>
assistant: Pack a coat.
`
	if diff := cmp.Diff(want, story(res)); diff != "" {
		t.Error(diff)
	}
	if res.Status != agent.Complete || res.Text != "Pack a coat." || len(res.Hops) != 2 || res.Hops[0].Model != "some-model" {
		t.Errorf("%+v", res)
	}
	if res.Usage.InputTokens == 0 || res.Usage.OutputTokens != res.Hops[0].Usage.OutputTokens+res.Hops[1].Usage.OutputTokens {
		t.Errorf("usage %+v", res.Usage)
	}
}
