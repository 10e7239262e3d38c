package manifest_test

import (
	"fmt"

	"toolctl.dev/toolctl/pkg/manifest"
)

// Every violation has its place, and the nearest right name.
func ExampleDecode() {
	objects, violations := manifest.Decode("weather.yaml", []byte(`apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-weather}
spec:
  descripton: Current weather
  input_schema: {type: object}
  mock_result: 1
`), manifest.Options{})
	fmt.Println(objects[0].Head().Key())
	for _, v := range violations {
		fmt.Println(v)
	}
	// Output:
	// Tool default/get-weather
	// weather.yaml:5:3: spec.descripton: unknown field "descripton"; did you mean "description"?
}
