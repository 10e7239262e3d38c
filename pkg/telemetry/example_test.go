package telemetry_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"strings"

	"toolctl.dev/toolctl/pkg/telemetry"
)

func ExampleStart() {
	ctx := context.Background()
	t, err := telemetry.Start(ctx, telemetry.Options{Service: "my-gateway", Version: "1.0", Prometheus: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer t.Close()

	calls, err := t.MeterProvider().Meter("example").Int64Counter("example.calls")
	if err != nil {
		fmt.Println(err)
		return
	}
	calls.Add(ctx, 3)
	page := httptest.NewRecorder()
	t.Handler().ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "example_calls") {
			fmt.Println(line[strings.LastIndex(line, " ")+1:])
		}
	}
	// Output: 3
}
