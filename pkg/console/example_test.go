package console_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/gateway"
)

// This gateway has a console, which only people who are signed in can see.
func Example() {
	c := console.New(console.Options{})
	defer c.Close()
	g, err := gateway.Open(context.Background(), gateway.Options{OnCall: c.Called, OnPending: c.Waits})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer g.Close()
	c.Attach(g)
	endpoint := httptest.NewServer(g.Handler())
	defer endpoint.Close()

	res, err := http.Get(endpoint.URL + "/ui/api/tools")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer res.Body.Close()
	fmt.Println(res.Status)
	// Output: 401 Unauthorized
}
