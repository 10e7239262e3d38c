package backends_test

import (
	"context"
	"fmt"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/backends"
)

func ExampleAll() {
	for _, dsn := range []string{"memory:", "mysql://ann:s3cret@db/tools"} {
		st, err := backends.All().Open(context.Background(), dsn, store.Options{})
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Printf("%T\n", st)
		st.Close()
	}
	// Output:
	// *memory.Store
	// store: unknown kind of store "mysql": expected a file's path or "file:…" or "memory:…" or "postgres:…" or "postgresql:…" or "sqlite:…"
}
