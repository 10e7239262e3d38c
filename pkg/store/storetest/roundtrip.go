package storetest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// TestRoundTrip stores an object of every kind with every field set, and one with no fields set, and reads them back.
func testRoundTrip(t *testing.T, backend Backend) {
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
				st := backend.open(t)
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

// raw sets the required raw JSON of a tool, which cannot be encoded when it is nil.
func raw(o v1.Object) {
	if x, ok := o.(*v1.Tool); ok {
		x.Spec.InputSchema = []byte(`null`)
	}
}

// fill sets every field to a value other than its zero value, and counts the fields.
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
	case reflect.Interface: // a tool's Go function, which manifests cannot have
	default:
		panic("fill: " + v.Type().String())
	}
}
