package sqlite_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	st, err := sqlite.Open(ctx, filepath.Join(dir, "state.db"), store.Options{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer st.Close()

	if err := st.AppendAudit(ctx, v1.AuditRecord{CallID: "c1", Tool: "get-weather", Namespace: "default", Status: v1.StatusComplete}); err != nil {
		log.Fatal(err)
	}
	check, err := st.VerifyAudit(ctx, "")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(check.Lines, "line, intact:", check.Broken == nil)
	// Output: 1 line, intact: true
}
