package authoring_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/authoring"
	"toolctl.dev/toolctl/pkg/registry"
)

func ExampleTools() {
	root, err := os.OpenRoot("testdata")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer root.Close()
	reg, err := registry.New(authoring.Tools(authoring.Options{Root: root}), registry.Options{}) // or gateway.Options.Objects, to serve the tools
	if err != nil {
		fmt.Println(err)
		return
	}
	defer reg.Close()
	args, _ := json.Marshal(map[string]string{"manifest": "apiVersion: toolctl.dev/v1\nkind: Toool\n"})
	res, err := reg.Execute(context.Background(), v1.Call{Tool: "validate", Args: args})
	fmt.Println(string(res.Content), err)
	// Output:
	// {"valid":false,"files":1,"objects":0,"errors":1,"warnings":0,"violations":[{"path":"/kind","expected":"one of Tool, Prompt, MCPServer, ToolPolicy, Toolset, Scenario","got":"\"Toool\"","message":"unknown kind \"Toool\"; did you mean \"Tool\"?","source":{"file":"draft.yaml","line":2,"column":1},"severity":"error"}]} <nil>
}
