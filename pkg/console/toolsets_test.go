package console_test

import (
	"net/http"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/console"
)

// A toolset has a page with its tools and its cost, for those who may use it.
func TestToolsets(t *testing.T) {
	const toolsets = `
---
apiVersion: toolctl.dev/v1
kind: Toolset
metadata: {name: desk}
spec:
  description: Help <customers>.
  include: [{tools: [look]}, {prompts: [gr*]}]
  groups: [support]
---
apiVersion: toolctl.dev/v1
kind: Toolset
metadata: {name: all}
spec: {discovery: search, pinned: [look]}
---
apiVersion: toolctl.dev/v1
kind: Toolset
metadata: {name: broken}
spec: {discovery: serach}
`
	s := serve(t, options{manifests: heldPay + "---" + greet + toolsets, principals: []string{"ann", "bob:support", "eve"}, console: console.Options{Operators: v1.Approvers{Principals: []string{"ann"}}}})
	for _, tt := range []struct {
		path, as string
		code     int
		has, not []string
	}{
		{"", "bob", 200, []string{`href="./toolsets/default/desk"`, `href="./toolsets/default/all"`}, []string{"default/broken"}},
		{"", "eve", 200, []string{`href="./toolsets/default/all"`}, []string{"default/desk"}},
		{"", "ann", 200, []string{`href="./toolsets/default/desk"`, `href="./toolsets/default/broken"`, "not ready"}, nil},
		{"toolsets/default/desk", "bob", 200, []string{"Help &lt;customers&gt;.", `href="../../tools/default/look"`, "MCP clients connect to <code>/mcp/desk</code>. Tools: 1. A list of all costs a model about 1", "Prompts: greet"}, []string{"default/pay", "Groups: ", "Prompts: greet,", "Clients see"}},
		{"toolsets/default/desk", "ann", 200, []string{"Groups: <code>support</code>"}, nil},
		{"toolsets/default/desk", "eve", 404, nil, []string{"customers"}},
		{"toolsets/default/none", "eve", 404, nil, nil},
		{"toolsets/default/all", "eve", 200, []string{"Tools: 1. ", "Clients see the pinned tools (1) and search for the others"}, []string{"default/pay"}},
		{"toolsets/default/broken", "ann", 200, []string{"did you mean &#34;search&#34;?"}, nil},
		{"toolsets/default/broken", "bob", 404, nil, nil},
		{"api/toolsets", "bob", 200, []string{`"name":"desk"`, `"discovery":"list","tools":1`, `"name":"all"`, `"discovery":"search","tools":2,"pinned":1`}, []string{`"name":"broken"`, "support"}},
		{"api/toolsets", "eve", 200, []string{`"total":1`}, []string{"desk"}},
	} {
		code, body := s.ask("GET", tt.path, tt.as, "")
		if code != tt.code {
			t.Errorf("%s as %s: %d %s", tt.path, tt.as, code, http.StatusText(code))
		}
		for _, text := range tt.has {
			if !strings.Contains(body, text) {
				t.Errorf("%s as %s has no %q: %s", tt.path, tt.as, text, body)
			}
		}
		for _, text := range tt.not {
			if strings.Contains(body, text) {
				t.Errorf("%s as %s has %q", tt.path, tt.as, text)
			}
		}
	}
}
