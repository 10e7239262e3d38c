package store_test

import (
	"context"
	"fmt"
	"log"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// With a limit of two calls, the third one is refused.
func ExampleCounters() {
	var counters store.Counters = memory.New(memory.Options{})
	limit := []v1.Counter{{Key: "default/careful|pay|session-1", Limit: 2}}
	for range 3 {
		counts, full, err := counters.Reserve(context.Background(), limit)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(counts[0].Used, full >= 0)
	}
	// Output:
	// 0 false
	// 1 false
	// 2 true
}
