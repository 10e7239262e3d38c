package lint_test

import (
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lint"
)

func ExampleCheck() {
	tool := v1.NewObject(v1.KindTool).(*v1.Tool)
	tool.Metadata.Name = "get-weather"
	tool.Spec.InputSchema = json.RawMessage(`{"type":"object"}`)
	tool.Spec.MockResult = json.RawMessage(`{"celsius":4}`)

	report := lint.Check([]v1.Object{tool}, lint.Options{})
	for _, f := range report.Findings {
		fmt.Printf("%s %s %s%s: %s\n", f.Severity, f.Rule, f.Name, f.Path, f.Message)
	}
	// Output:
	// info no-output-schema get-weather/spec: it has no output_schema
	// warning no-description get-weather/spec/description: it has no description
}
