package registry_test

import (
	"context"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

func ExampleFunc() {
	type In struct {
		City string `json:"city" description:"name of the city"`
		Days *int   `json:"days" description:"how many days ahead"`
	}
	type Out struct {
		Sky string `json:"sky"`
	}
	forecast := registry.Func("forecast", "Weather of the next days", func(ctx context.Context, in In) (Out, error) {
		registry.Session(ctx).Logger.Info("asked", "city", in.City)
		return Out{"clear over " + in.City}, nil
	})
	reg, err := registry.New([]v1.Object{forecast}, registry.Options{})
	if err != nil {
		panic(err)
	}
	defer reg.Close()

	res, _ := reg.Execute(context.Background(), v1.Call{Tool: "forecast", Args: []byte(`{"city":"Oslo"}`)})
	fmt.Println(string(res.Content))
	_, err = reg.Execute(context.Background(), v1.Call{Tool: "forecast", Args: []byte(`{"days":"many"}`)})
	fmt.Println(err)
	// Output:
	// {"sky":"clear over Oslo"}
	// tool "forecast": invalid arguments: /city: required property "city" is missing; /days: expected integer or null, got string "many"
}
