// Command gen writes the JSON Schemas of the manifest kinds and their reference
// pages from the Go source of api/v1. Run it with
//
//	go generate ./schemas
package main

import (
	"fmt"
	"os"

	"toolctl.dev/toolctl/internal/schemagen"
)

func main() {
	// go generate runs in the folder of the directive, schemas/.
	if err := schemagen.Write(".."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
