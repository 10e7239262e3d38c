package validate_test

import (
	"encoding/json"
	"fmt"

	"toolctl.dev/toolctl/pkg/validate"
)

// A schema is compiled once; arguments are coerced before they are validated.
func Example() {
	cache := validate.NewCache(validate.Options{})
	schema := cache.Schema(json.RawMessage(`{"type":"object","properties":{"days":{"type":"integer","minimum":1}},"required":["days"]}`), validate.Draft2020)
	doc, err := validate.Decode([]byte(`{"days":"3"}`))
	if err != nil {
		panic(err)
	}
	fixed, changed, violations, err := schema.Check(doc, true)
	fmt.Println(fixed, changed, len(violations), err)

	violations, err = schema.ValidateJSON([]byte(`{"days":0}`))
	fmt.Println(violations[0].Path, violations[0].Message, err)
	// Output:
	// map[days:3] true 0 <nil>
	// /days expected a number of at least 1, got number 0 <nil>
}
