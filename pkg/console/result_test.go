package console

import (
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

// TestTables checks that a table of a part of a result is not shown as the whole result.
func TestTables(t *testing.T) {
	for _, tt := range []struct {
		content, of string
		table, part bool
	}{
		{`[{"a":1}]`, "", true, false},
		{`{"orders":[{"a":1}]}`, "orders", true, false},
		{`{"title":"Ghosts","cast":[{"role":"Oswald"}]}`, "cast", true, true},
		{`{"a":[{"b":1}],"c":[{"d":1}]}`, "", false, false},
	} {
		v := viewResult(v1.Result{Content: []byte(tt.content)})
		if (v.Table != nil) != tt.table {
			t.Errorf("%s: table %+v", tt.content, v.Table)
			continue
		}
		if v.Table != nil && (v.Table.Of != tt.of || v.Table.Part != tt.part) {
			t.Errorf("%s: table %+v", tt.content, v.Table)
		}
		for _, one := range v.Tree.Many {
			if tt.part && one.Open != (one.Key != tt.of) {
				t.Errorf("%s: %s is open: %t", tt.content, one.Key, one.Open)
			}
		}
	}
}
