package executors

import (
	"strings"
	"testing"
)

func TestMappingError(t *testing.T) {
	for expr, want := range map[string]string{
		"{":              "column 2: expected a quoted name or a name",
		"a.b]":           "column 4: unexpected token at the end of the expression: ']'",
		"{a: b":          "column 6: expected a quoted name or a name",
		"'é'.b]":         "column 6: unexpected token at the end of the expression: ']'",
		"items[?a == 'b": "column 15: unclosed delimiter: '",
		"a[1":            "column 4: expected ']', got the end",
		"":               "column 1: ",
	} {
		_, err := compileMapping("body_mapping", expr)
		if err == nil || !strings.Contains(err.Error(), "not a JMESPath expression: "+want) || tokenName.MatchString(err.Error()) {
			t.Errorf("%q: %v; want %q", expr, err, want)
		}
	}
}
