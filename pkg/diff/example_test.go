package diff_test

import (
	"encoding/json"
	"fmt"

	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/validate"
)

func ExampleChecker_Schemas() {
	before := json.RawMessage(`{"type":"object","properties":{"units":{"enum":["metric","imperial"]}}}`)
	after := json.RawMessage(`{"type":"object","properties":{"units":{"enum":["metric"]}}}`)

	change, err := diff.NewChecker().Schemas(before, after, diff.Input, validate.Draft2020)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s at %s: %s, such as %s\n", change.Class, change.Pointer, change.Reason, change.Witness)
	// Output:
	// breaking at /properties/units/enum: arguments that were accepted are refused: /units: expected "metric", got string "imperial", such as {"units":"imperial"}
}
