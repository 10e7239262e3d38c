package plan_test

import (
	"context"
	"fmt"
	"log"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/plan"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

func ExamplePlan() {
	ctx := context.Background()
	st := memory.New(memory.Options{})
	defer st.Close()
	defer st.Close()
	tool := v1.NewObject(v1.KindTool).(*v1.Tool)
	tool.Metadata.Name = "get-weather"
	tool.Spec.Description, tool.Spec.InputSchema = "Weather now.", []byte(`{"type":"object"}`)
	objects := []v1.Object{tool}

	changes, err := st.Apply(ctx, objects, store.ApplyOptions{Set: "tools", DryRun: true})
	if err != nil {
		log.Fatal(err)
	}
	report, err := plan.Compare(ctx, st, objects, changes)
	if err != nil {
		log.Fatal(err)
	}
	p, err := plan.New(report, changes)
	if err != nil {
		log.Fatal(err)
	}
	p.Set = "tools"

	// Somebody else applies first.
	if _, err := st.Apply(ctx, objects, store.ApplyOptions{Set: "theirs"}); err != nil {
		log.Fatal(err)
	}
	_, err = p.Apply(ctx, st, objects, store.ApplyOptions{})
	fmt.Println(err)
	// Output:
	// the plan is out of date, and nothing was applied:
	//   Tool default/get-weather: the plan creates it, and the store has it at resourceVersion 1
	// create a new one with 'toolctl diff -o plan'
}
