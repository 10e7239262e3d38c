package executors_test

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/registry"
)

// The registry has executors for all kinds that manifests can name.
func ExampleAll() {
	tool := &v1.Tool{
		Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindTool, Metadata: v1.Metadata{Name: "greet"}},
		Spec:   v1.ToolSpec{Description: "Greets", InputSchema: json.RawMessage(`{"type":"object"}`), MockTemplate: `{"greeting": "hello {{.name}}"}`},
	}
	reg, err := registry.New([]v1.Object{tool}, registry.Options{Executors: executors.All(executors.Options{})})
	if err != nil {
		panic(err)
	}
	defer reg.Close()
	res, err := reg.Execute(context.Background(), v1.Call{Tool: "greet", Args: json.RawMessage(`{"name":"Oslo"}`)})
	fmt.Println(string(res.Content), err)
	// Output: {"greeting": "hello Oslo"} <nil>
}
