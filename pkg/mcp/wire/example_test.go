package wire_test

import (
	"fmt"

	"toolctl.dev/toolctl/pkg/mcp/wire"
)

func ExampleParse() {
	m, err := wire.Parse([]byte(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"get","arguments":{"n":12345678901234567890}}}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	name, _ := m.Params.Text("name")
	fmt.Printf("%s %s %s %s\n", m.ID, m.Method, name, m.Params.Get("arguments"))
	// Output: 7 tools/call get {"n":12345678901234567890}
}
