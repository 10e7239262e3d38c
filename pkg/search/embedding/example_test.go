package embedding_test

import (
	"context"
	"fmt"
	"log"

	"toolctl.dev/toolctl/pkg/search"
	"toolctl.dev/toolctl/pkg/search/embedding"
)

func Example() {
	embedder, err := embedding.New(embedding.Options{URL: "http://localhost:11434/v1/embeddings", Model: "nomic-embed-text", Transport: &model{}})
	if err != nil {
		log.Fatal(err)
	}
	tools := search.New([]*search.Entry{
		search.Analyse(search.Document{Name: "refund_order", Description: "Pay back what a customer paid."}),
		search.Analyse(search.Document{Name: "get_weather", Description: "The weather of a city."}),
	})
	index := embedder.Index(tools)
	if err := index.Embed(context.Background()); err != nil {
		log.Fatal(err)
	}
	hits, err := index.Search(context.Background(), "Can Ann have her money back?", 1, nil)
	fmt.Println(hits[0].Name, err)
	// Output: refund_order <nil>
}
