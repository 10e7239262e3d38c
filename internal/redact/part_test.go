package redact

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
)

// fill sets every string below v to a text, and every JSON value to a document with that text.
func fill(v reflect.Value, text string) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), text)
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), text)
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			v.SetBytes([]byte(`{"a":"` + text + `"}`))
		}
	}
}

// TestPartHidesEveryField checks that a value is masked in every field of a part, including future fields.
func TestPartHidesEveryField(t *testing.T) {
	var p v1.Part
	fill(reflect.ValueOf(&p).Elem(), secret)
	p.Type = v1.PartImage // the type has few allowed values
	before, _ := json.Marshal(p)
	out, _ := json.Marshal(New(nil, secret).Part(p))
	if strings.Contains(string(out), secret) {
		t.Errorf("it shows in %s", out)
	}
	if after, _ := json.Marshal(p); string(after) != string(before) {
		t.Errorf("the part itself was changed: %s", after)
	}
}
