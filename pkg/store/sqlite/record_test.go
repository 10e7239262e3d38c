package sqlite_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

// TestRoundTrip stores an object of every kind with every field set, and with
// none, and reads it back.
func TestRoundTrip(t *testing.T) {
	for _, kind := range v1.Kinds() {
		for _, full := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/full=%t", kind, full), func(t *testing.T) {
				o := v1.NewObject(kind)
				if full {
					n := 0
					fill(reflect.ValueOf(o).Elem(), &n)
					if n < 15 {
						t.Fatalf("only %d fields were set", n)
					}
					o.Head().Files["chart.png"] = []byte("\x89PNG\r\n\x00\xff<&>")
				} else {
					raw(o)
				}
				o.Head().Kind, o.Head().Metadata.Name = kind, "x"
				st := open(t, ":memory:")
				want := *mustApply(t, st, []v1.Object{o}, store.ApplyOptions{Set: "s"})[0].After
				got, err := st.Get(t.Context(), o.Head().Key())
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("-applied +read:\n%s", diff)
				}
				if diff := cmp.Diff(want, mustList(t, st, store.ListOptions{Layout: true}).Records[0]); diff != "" {
					t.Errorf("-applied +listed:\n%s", diff)
				}
			})
		}
	}
}

// raw sets the required raw JSON of a tool, which JSON cannot write when it is nil.
func raw(o v1.Object) {
	if x, ok := o.(*v1.Tool); ok {
		x.Spec.InputSchema = []byte(`null`)
	}
}

// fill sets every field to a value that is not its zero value, and counts them.
func fill(v reflect.Value, n *int) {
	*n++
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.SetBytes([]byte(`{"big":9007199254740993,"dear":1.0,"html":"<a&b>\u2028","text":"ü","none":null}`))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d <&> \"ü\" ${X}", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1<<53 + int64(*n))
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.1)
	case reflect.Uint8:
		v.SetUint(0xFE)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			fill(v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 2 {
			key, elem := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(key, n)
			fill(elem, n)
			v.SetMapIndex(key, elem)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Interface: // a tool's Go function, which no manifest has
	default:
		panic("fill: " + v.Type().String())
	}
}

// TestTextIsKept: what the store writes holds templates and digits as they are.
func TestTextIsKept(t *testing.T) {
	path := filled(t, 1)
	st := open(t, path)
	x := tool("x", "a")
	x.Spec.MockTemplate = `{"a": "<{{.b}}> & c"}`
	x.Spec.MockResult = []byte("{\n  \"n\": 12345678901234567890.10\n}")
	mustApply(t, st, []v1.Object{x}, store.ApplyOptions{})
	text := query(t, path, "SELECT CAST(manifest AS TEXT) FROM objects WHERE name = 'x'")
	for _, want := range []string{`<{{.b}}> & c`, `{"n":12345678901234567890.10}`} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: does not hold %s", text, want)
		}
	}
}

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
			if got := sqlite.SameJSON([]byte(tc.a), []byte(tc.b)); got != tc.want {
				t.Errorf("got %t, want %t", got, tc.want)
			}
		})
	}
}

// TestSameJSONProperty: writing a value in another order says the same, and
// changing one member says another thing.
func TestSameJSONProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		members := rapid.MapOfN(rapid.StringN(1, 8, -1), rapid.Int64(), 1, 8).Draw(t, "members")
		keys := rapid.Permutation(sortedKeys(members)).Draw(t, "order")
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
		if b := text(); !sqlite.SameJSON(a, b) {
			t.Fatalf("%s and %s differ", a, b)
		}
		members[keys[0]]++
		if b := text(); sqlite.SameJSON(a, b) {
			t.Fatalf("%s and %s are the same", a, b)
		}
	})
}
