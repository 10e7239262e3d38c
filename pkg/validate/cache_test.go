package validate_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/validate"
)

func TestCacheShares(t *testing.T) {
	cache := validate.NewCache(validate.Options{MaxSchemaBytes: 100})
	a := cache.Schema(json.RawMessage(`{"type": "object"}`), validate.Draft7)
	tests := []struct {
		name  string
		raw   string
		draft validate.Draft
		same  bool
	}{
		{"equal bytes", `{"type": "object"}`, validate.Draft7, true},
		{"other white space", "{\n\t\"type\":\"object\" }", validate.Draft7, true},
		{"white space inside a string", `{"type": "obj ect"}`, validate.Draft7, false},
		{"another draft", `{"type": "object"}`, validate.Draft2020, false},
		{"another schema", `{"type": "array"}`, validate.Draft7, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := cache.Schema(json.RawMessage(test.raw), test.draft) == a; got != test.same {
				t.Errorf("shared: %t, want %t", got, test.same)
			}
		})
	}
	err := cache.Schema(json.RawMessage(`{"title":"`+strings.Repeat("a", 100)+`"}`), validate.Draft7).Compile()
	if want := "invalid manifest: JSON text of 112 bytes is too large: at most 100"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	runtime.KeepAlive(a)
}

// TestCacheKeepsItsOwnBytes: the caller may reuse the memory of a schema.
func TestCacheKeepsItsOwnBytes(t *testing.T) {
	raw := []byte(`{"type":"object"}`)
	s := validate.NewCache(validate.Options{}).Schema(raw, validate.Draft7)
	copy(raw, `{"type":"xxxxxx"}`)
	if err := s.Compile(); err != nil {
		t.Error(err)
	}
}

// TestCacheForgets: what nobody holds is released, what somebody holds is not.
func TestCacheForgets(t *testing.T) {
	cache := validate.NewCache(validate.Options{})
	held := cache.Schema(json.RawMessage(`{"title":"held"}`), validate.Draft7)
	for i := range 1000 {
		if err := cache.Schema(fmt.Appendf(nil, `{"title":"%d"}`, i), validate.Draft7).Compile(); err != nil {
			t.Fatal(err)
		}
	}
	for range 100 { // cleanups run some time after a collection
		runtime.GC()
		if validate.Schemas(cache) == 1 {
			break
		}
	}
	if n := validate.Schemas(cache); n > 10 {
		t.Errorf("%d schemas are kept that nobody holds", n-1)
	}
	if cache.Schema(json.RawMessage(`{"title":"held"}`), validate.Draft7) != held {
		t.Error("a schema that is held was forgotten")
	}
}
