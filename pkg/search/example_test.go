package search_test

import (
	"fmt"

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
