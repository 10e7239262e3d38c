package memory_test

import (
	"context"
	"fmt"
	"log"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

func Example() {
	ctx := context.Background()
	st := memory.New(memory.Options{})
	defer st.Close()

	weather := v1.NewObject(v1.KindTool).(*v1.Tool)
	weather.Metadata.Name = "get-weather"
	weather.Spec.InputSchema = []byte(`{"type":"object"}`)
	for _, description := range []string{"Current weather for a place", "Current weather for a place", "Weather"} {
		weather.Spec.Description = description
		changes, err := st.Apply(ctx, []v1.Object{weather}, store.ApplyOptions{Set: "tools", Prune: true})
		if err != nil {
			log.Fatal(err)
		}
		for _, c := range changes {
			fmt.Println(c.Key, c.Action, "generation", c.After.Generation)
		}
	}
	list, err := st.List(ctx, store.ListOptions{Kind: v1.KindTool})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(list.Total, "at resourceVersion", list.ResourceVersion)
	// Output:
	// Tool default/get-weather created generation 1
	// Tool default/get-weather unchanged generation 1
	// Tool default/get-weather configured generation 2
	// 1 at resourceVersion 2
}
