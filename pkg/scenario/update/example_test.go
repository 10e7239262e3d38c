package update_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/update"
)

func ExampleFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "weather.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-weather}
spec: {description: Weather now., input_schema: {type: object}, mock_result: {celsius: 4}}
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: warm}
spec:
  turns:
  - calls:
    - {tool: get-weather, expect: {result: {celsius: 21}}} # as it was in June
`), 0o600); err != nil {
		log.Fatal(err)
	}
	set, err := manifest.Load(context.Background(), []string{file}, manifest.Options{})
	if err != nil {
		log.Fatal(err)
	}
	runner, err := scenario.New(set.Objects, scenario.Options{Mock: executors.All(executors.Options{})[0], ToJSON: manifest.ToJSON})
	if err != nil {
		log.Fatal(err)
	}
	report := runner.Run(context.Background(), []*v1.Scenario{set.Objects[1].(*v1.Scenario)})
	n, err := update.File(file, []*scenario.Result{&report.Scenarios[0]})
	if err != nil {
		log.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "expectation changed:")
	fmt.Print(string(text[bytes.LastIndex(text, []byte("- {")):]))
	// Output:
	// 1 expectation changed:
	// - {tool: get-weather, expect: {result: {celsius: 4}}} # as it was in June
}
