package prompt_test

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/prompt"
)

func ExampleCompile() {
	manifest := v1.NewObject(v1.KindPrompt).(*v1.Prompt)
	manifest.Metadata.Name = "advice"
	manifest.Spec = v1.PromptSpec{SystemPrompt: "Be brief.", Template: "What should I pack for {{.city}}?"}

	p, err := prompt.Compile(manifest)
	if err != nil {
		fmt.Println(err)
		return
	}
	messages, err := p.Render(context.Background(), json.RawMessage(`{"city":"Oslo"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(p.Variables())
	for _, m := range messages {
		fmt.Println(m.Role+":", m.Content)
	}
	// Output:
	// [city]
	// system: Be brief.
	// user: What should I pack for Oslo?
}
