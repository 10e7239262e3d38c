package action_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
)

func ExampleValidate() {
	files := fstest.MapFS{"weather.yaml": {Data: []byte(`apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-weather}
spec: {descriptoin: Weather now, input_schema: {type: object}, mock_result: {}}
`)}}
	load := func(ctx context.Context, places bool) (*manifest.Set, error) {
		return manifest.LoadFS(ctx, files, manifest.Options{Fields: places})
	}
	found, err := action.Validate{Check: action.Check{Load: load}}.Run(context.Background())
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("valid:", found.Valid)
	for _, v := range found.Violations {
		fmt.Println(v)
	}
	// Output:
	// valid: false
	// weather.yaml:4:8: spec.descriptoin: unknown field "descriptoin"; did you mean "description"?
}
