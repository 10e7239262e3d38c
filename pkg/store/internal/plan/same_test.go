package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestSameJSON(t *testing.T) {
	for _, tc := range []struct {
		name, a, b string
		want       bool
	}{
		{"equal", `{"a":1}`, `{"a":1}`, true},
		{"order of keys", `{"a":{"x":1,"y":2},"b":2}`, `{"b":2,"a":{"y":2,"x":1}}`, true},
		{"white space", ` {"a" :1}`, `{"a":1}`, true},
		{"escapes", `"<ü"`, `"\u003c\u00fc"`, true},
		{"order of items", `[1,2]`, `[2,1]`, false},
		{"null and absent", `{"a":null}`, `{}`, false},
		{"digits above 2^53", `9007199254740992`, `9007199254740993`, false},
		{"a number and its text", `1`, `"1"`, false},
		{"broken", `{`, `{ `, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := sameJSON([]byte(tc.a), []byte(tc.b)); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// TestSameJSONProperty: reordering the members of a value does not change its meaning, and changing one member does.
func TestSameJSONProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOfN(rapid.StringN(1, 8, -1), rapid.Int64(), 1, 8).Draw(t, "members")
		keys := rapid.Permutation(slices.Sorted(maps.Keys(members))).Draw(t, "order")
		a, err := json.Marshal(members)
		if err != nil {
			t.Fatal(err)
		}
		text := func() []byte {
			var parts []string
			for _, k := range keys {
				name, _ := json.Marshal(k)
				parts = append(parts, fmt.Sprintf("%s : %d", name, members[k]))
			}
			return []byte("{" + strings.Join(parts, " , ") + "}")
		}
		if b := text(); !sameJSON(a, b) {
			t.Fatalf("%s and %s differ", a, b)
		}
		members[keys[0]]++
		if b := text(); sameJSON(a, b) {
			t.Fatalf("%s and %s are the same", a, b)
		}
	})
}
