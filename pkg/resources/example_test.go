package resources_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/resources"
)

func ExampleOf() {
	set, err := manifest.LoadFS(context.Background(), fstest.MapFS{
		"tools.yaml": {Data: []byte(`{apiVersion: toolctl.dev/v1, kind: Tool, metadata: {name: get-weather},
			spec: {description: Weather now., input_schema: {type: object}, mock_result: sunny, resources: [{file: places.txt}]}}`)},
		"places.txt": {Data: []byte("Oslo\n")},
	}, manifest.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range resources.Of(set.Objects) {
		fmt.Printf("%s of %s: %q\n", r.URI, r.Owner, r.Data)
	}
	// Output:
	// file:///default/get-weather/places.txt of Tool default/get-weather: "Oslo\n"
}
