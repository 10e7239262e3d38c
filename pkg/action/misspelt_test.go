package action

import (
	"encoding/json"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

func TestMisspelt(t *testing.T) {
	tests := []struct{ name, schema, args, want string }{
		{"open", `{"properties":{"X_Depot":{}}}`, `{"X-Depot":1}`, `"X-Depot"; did you mean "X_Depot"?`},
		{"given too", `{"properties":{"X_Depot":{}}}`, `{"X-Depot":1,"X_Depot":2}`, ""},
		{"closed", `{"properties":{"X_Depot":{}},"additionalProperties":false}`, `{"X-Depot":1}`, ""},
		{"far", `{"properties":{"X_Depot":{}}}`, `{"colour":1}`, ""},
		{"one letter", `{"properties":{"a":{}}}`, `{"b":1}`, ""},
		{"patterns", `{"properties":{"name":{}},"patternProperties":{"^nam":{}}}`, `{"nama":1}`, ""},
		{"no object", `true`, `{"a":1}`, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tool := v1.NewObject(v1.KindTool).(*v1.Tool)
			tool.Spec.InputSchema = json.RawMessage(tt.schema)
			got := strings.Join(misspelt(tool, json.RawMessage(tt.args)), "\n")
			if tt.want == "" && got != "" || !strings.HasSuffix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
