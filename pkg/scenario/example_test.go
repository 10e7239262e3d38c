package scenario_test

import (
	"context"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
)

func Example() {
	objects, _ := manifest.Decode("demo.yaml", []byte(`
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: double}
spec:
  description: Twice a number
  input_schema: {type: object, properties: {n: {type: integer}}, required: [n]}
  mock_template: '{"twice": "{{.n}}{{.n}}"}'
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: doubles}
spec:
  turns:
  - calls:
    - {tool: double, args: {n: 2}, expect: {result: {twice: "4"}}}
`), manifest.Options{})
	runner, err := scenario.New(objects, scenario.Options{Mock: executors.All(executors.Options{})[0], ToJSON: manifest.ToJSON})
	if err != nil {
		fmt.Println(err)
		return
	}
	report := runner.Run(context.Background(), []*v1.Scenario{objects[1].(*v1.Scenario)})
	for _, s := range report.Scenarios {
		fmt.Println(s.Name, s.Status)
		for _, f := range s.Failures {
			fmt.Printf("%s %s: expected %s, got %s (%s)\n", f.What, f.Path, f.Expected, f.Got, f.Source)
		}
	}
	// Output:
	// doubles failed
	// result $.twice: expected "4", got "22" (demo.yaml:16:54)
}
