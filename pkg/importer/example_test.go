package importer_test

import (
	"context"
	"fmt"
	"log"
	"os"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/importer"
)

func ExampleResult_Write() {
	dir, err := os.MkdirTemp("", "tools")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	server := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	server.Metadata.Name, server.Spec.Command = "notes", "notes-server"
	r := &importer.Result{Manifests: []importer.Manifest{{Origin: "notes", Object: server}}}
	if err := r.Write(context.Background(), dir, importer.WriteOptions{}); err != nil {
		log.Fatal(err)
	}
	for _, c := range r.Changes {
		fmt.Println(c.Action, c.File)
	}
	// Output: created notes.yaml
}
