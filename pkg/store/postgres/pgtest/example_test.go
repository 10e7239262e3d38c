package pgtest_test

import (
	"context"
	"errors"
	"log"

	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/postgres"
	"toolctl.dev/toolctl/pkg/store/postgres/pgtest"
)

func ExampleStart() {
	server, err := pgtest.Start()
	if errors.Is(err, pgtest.ErrNotInstalled) {
		return // a test reports that it was skipped
	}
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	ctx := context.Background()
	dsn, err := server.NewStore(ctx)
	if err != nil {
		log.Fatal(err)
	}
	st, err := postgres.Open(ctx, dsn, store.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()
}
