package v1_test

import (
	"encoding/json"
	"errors"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
)

// An object says what is wrong with it; errors of calls are types, found with errors.As.
func Example() {
	tool := &v1.Tool{
		Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindTool, Metadata: v1.Metadata{Name: "Get Weather"}},
		Spec:   v1.ToolSpec{Description: "Current weather", InputSchema: json.RawMessage(`{"type":"object"}`), TimeoutMS: -1},
	}
	violations := tool.Validate()
	for _, v := range violations {
		fmt.Println(v1.FieldPath(v.Path))
	}
	var err error = v1.NewValidationError(v1.ManifestInvalid, "get-weather", violations)
	var invalid *v1.ValidationError
	fmt.Println(errors.As(err, &invalid), invalid.Type)
	// Output:
	// metadata.name
	// spec.timeout_ms
	// true manifest_invalid
}
