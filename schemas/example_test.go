package schemas_test

import (
	"fmt"

	"toolctl.dev/toolctl/schemas"
)

// What explain prints, and what completion offers.
func ExampleExplain() {
	doc, err := schemas.Explain("tool.spec.timeout_ms", false)
	if err != nil {
		panic(err)
	}
	fmt.Println(doc.Type, doc.Default)
	fmt.Println(schemas.Complete("tool.spec.mock_t"))
	// Output:
	// integer 30000
	// [tool.spec.mock_template tool.spec.mock_template_file]
}
