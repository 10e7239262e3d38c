package admission_test

import (
	"fmt"

	"toolctl.dev/toolctl/pkg/admission"
)

// One principal may have half of four calls, so that others have the rest.
func Example() {
	const half = 0.5
	calls := admission.NewCalls(admission.NewQuota("calls", 4, half), admission.NewQuota("calls that wait", 4, half))
	for _, principal := range []string{"ann", "ann", "ann", "bob"} {
		if _, err := calls.Begin(principal); err != nil {
			fmt.Println(principal, err)
			continue
		}
		fmt.Println(principal, "calls")
	}
	// Output:
	// ann calls
	// ann calls
	// ann too many calls by one principal at once: try again later
	// bob calls
}
