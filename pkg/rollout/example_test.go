package rollout_test

import (
	"context"
	"fmt"
	"log"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

func ExampleNewUndo() {
	ctx := context.Background()
	st := memory.New(memory.Options{})
	defer st.Close()
	defer st.Close()
	tool := v1.NewObject(v1.KindTool).(*v1.Tool)
	tool.Metadata.Name = "get-weather"
	tool.Spec.InputSchema = []byte(`{"type":"object"}`)
	for _, tool.Spec.Description = range []string{"Weather now.", "Wether now."} {
		if _, err := st.Apply(ctx, []v1.Object{tool}, store.ApplyOptions{Set: "tools"}); err != nil {
			log.Fatal(err)
		}
	}

	undo, err := rollout.NewUndo(ctx, st, "tools", 0, rollout.Options{By: "ann"})
	if err != nil {
		log.Fatal(err)
	}
	changes, err := undo.Apply(ctx, st)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("from revision", undo.From.Number, "to what was", undo.To.Number)
	for _, c := range changes {
		fmt.Println(c.Key, c.Action, c.After.Object.(*v1.Tool).Spec.Description)
	}
	// Output:
	// from revision 2 to what was 1
	// Tool default/get-weather configured Weather now.
}
