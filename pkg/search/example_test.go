package search_test

import (
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/search"
)

func ExampleLibrary() {
	library := search.NewLibrary(100_000)
	index := library.Index([]search.Document{
		{Name: "refund_order", Description: "Pays back what a customer paid."},
		{Name: "get_weather", Description: "The weather of a city, today and tomorrow.", Asks: []string{"will it rain?"}},
	})
	const query = "Can you tell me whether we get rain tomorrow?"
	for _, hit := range index.Search(query, 5, nil) {
		fmt.Println(hit.Name, hit.Matches(query))
	}
	// Output: get_weather [{get [name]} {rain [asks]} {tomorrow [description]}]
}

func ExampleContains() {
	support := &v1.Toolset{Spec: v1.ToolsetSpec{
		Include: []v1.ToolsetMatch{{Servers: []string{"crm"}}},
		Exclude: []v1.ToolsetMatch{{Tools: []string{"crm__delete_*"}}},
	}}
	for _, name := range []string{"find_customer", "delete_customer"} {
		tool := policy.Subject{Namespace: "default", Name: "crm__" + name, Server: "crm", Remote: name}
		fmt.Println(name, search.Contains(support, v1.KindTool, tool))
	}
	// Output:
	// find_customer true
	// delete_customer false
}
