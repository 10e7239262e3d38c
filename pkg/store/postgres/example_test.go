package postgres_test

import (
	"context"
	"log"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
)

// Parts missing in the address come from PGHOST, PGUSER, PGPASSWORD and similar variables.
func ExampleOpen() {
	st, err := postgres.Open(context.Background(), "postgres://db1,db2/toolctl?sslmode=verify-full", store.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
}
