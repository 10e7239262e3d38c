package validate_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/validate"
)

// Documents of more values than can be checked with a list of all that may be wrong are
// coerced like others, wherever in them the slips are.
func TestLargeDocumentsAreCoerced(t *testing.T) {
	rows := func(n int, slips map[int]string) string {
		var b strings.Builder
		for i := range n {
			row := fmt.Sprintf(`{"id":%d,"on":true}`, i)
			if s, ok := slips[i]; ok {
				row = s
			}
			b.WriteString("," + row)
		}
		return b.String()[1:]
	}
	table := `{"type":"object","properties":{"rows":{"items":{"type":"object","properties":{"id":{"type":"integer"},"on":{"type":"boolean"},"note":{"type":"string"}},"required":["id"],"additionalProperties":false}},"z":{"type":"integer"}},"required":["z"]}`
	slips, fixes := map[int]string{}, map[int]string{}
	for i := 0; i < 40_000; i += 97 {
		slips[i], fixes[i] = fmt.Sprintf(`{"id":"%d","on":"yes","note":null}`, i), fmt.Sprintf(`{"id":%d,"on":true}`, i)
	}
	cell := func(n int, at int, slip string) string {
		cells := make([]string, n)
		for i := range cells {
			cells[i] = "1"
		}
		cells[at] = slip
		return "[" + strings.Join(cells, ",") + "]"
	}
	members := func(n int, at int, slip string) string {
		var b strings.Builder
		for i := range n {
			v := "1"
			if i == at {
				v = slip
			}
			fmt.Fprintf(&b, `,"m%d":%s`, i, v)
		}
		return "{" + b.String()[1:] + "}"
	}
	for _, test := range []struct{ name, schema, doc, want string }{
		{"rows", table, `{"rows":[` + rows(40_000, slips) + `],"z":"5"}`, `{"rows":[` + rows(40_000, fixes) + `],"z":5}`},
		{"the last item", `{"items":{"type":"integer"}}`, cell(60_000, 59_999, `"7"`), cell(60_000, 59_999, "7")},
		{"lists in lists", `{"items":{"items":{"type":"integer"}}}`, "[[1]," + cell(50_000, 49_999, `"7"`) + "," + cell(50_000, 3, `"8"`) + `,["9"]]`, "[[1]," + cell(50_000, 49_999, "7") + "," + cell(50_000, 3, "8") + ",[9]]"},
		{"members", `{"additionalProperties":{"type":"integer"}}`, members(60_000, 41_234, `"7"`), members(60_000, 41_234, "7")},
		{"a text that is a large list", `{"properties":{"a":{"type":"array","items":{"type":"integer"}}}}`, `{"a":"` + cell(60_000, 5, "1") + `"}`, `{"a":` + cell(60_000, 5, "1") + `}`},
		{"a text with slips of its own", `{"properties":{"a":{"type":"array","items":{"type":"integer"}}}}`, `{"a":"` + strings.ReplaceAll(cell(60_000, 50_000, `"1"`), `"`, `\"`) + `"}`, `{"a":` + cell(60_000, 5, "1") + `}`},
		{"one value for a large list", `{"items":{"type":"array","items":{"type":"integer"}}}`, `[` + strings.Repeat(`[1],`, 60_000) + `2]`, `[` + strings.Repeat(`[1],`, 60_000) + `[2]]`},
	} {
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			t.Run(test.name+"/"+draft.String(), func(t *testing.T) {
				doc, err := validate.Decode([]byte(test.doc))
				if err != nil {
					t.Fatal(err)
				}
				want, err := validate.Decode([]byte(test.want))
				if err != nil {
					t.Fatal(err)
				}
				fixed, changed, violations, err := newSchema(t, test.schema, draft).Check(doc, true)
				if err != nil || !changed || len(violations) > 0 {
					t.Fatal(changed, lines(violations), err)
				}
				if !reflect.DeepEqual(fixed, want) {
					t.Error("it is coerced to something else")
				}
				if again, _ := validate.Decode([]byte(test.doc)); !reflect.DeepEqual(doc, again) {
					t.Error("the document itself was changed")
				}
			})
		}
	}
}

// What is said of a large document is true of it: the same value is wrong when it is alone.
func TestLargeDocuments(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	schema := `{"items":{"items":{"type":"object","properties":{"a":{"type":"integer"},"b":{"items":{"type":"string"}}},"required":["a"],"additionalProperties":false}}}`
	var doc []any
	wrong := map[string]bool{}
	for i := range 300 {
		var list []any
		for j := range random.IntN(200) {
			item := map[string]any{"a": json.Number("1"), "b": []any{"x", "y"}}
			at := fmt.Sprintf("/%d/%d", i, j)
			switch random.IntN(1000) {
			case 0:
				delete(item, "a")
				wrong[at+"/a"] = true
			case 1:
				item["c"] = []any{"z"}
				wrong[at+"/c"] = true
			case 2:
				item["b"] = []any{"x", json.Number("5")}
				wrong[at+"/b/1"] = true
			}
			list = append(list, item)
		}
		doc = append(doc, list)
	}
	if len(wrong) == 0 || len(wrong) > 100 {
		t.Fatal(len(wrong))
	}
	violations, err := newSchema(t, schema, validate.Draft2020).Validate(any(doc))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range violations {
		if !wrong[v.Path] {
			t.Errorf("not wrong, or told twice: %s", v.String())
		}
		delete(wrong, v.Path)
	}
	for at := range wrong {
		t.Errorf("%s is not told", at)
	}
}
