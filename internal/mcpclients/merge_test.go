package mcpclients

import (
	"bytes"
	"encoding/json"
	"testing"
)

func TestSetJSON(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"empty", "", "{\n  \"a\": {\n    \"b\": 1\n  }\n}\n"},
		{"one line", `{"x": 2}`, "{\"x\": 2,\n  \"a\": {\n    \"b\": 1\n  }\n}"},
		{"replaced", `{"a": {"b": {"c": "}"}, "d": 1}} // end`, `{"a": {"b": 1, "d": 1}} // end`},
		{"beside", "{\n  \"a\": {\n    \"d\": 1\n  }\n}", "{\n  \"a\": {\n    \"d\": 1,\n    \"b\": 1\n  }\n}"},
		{"comma at the end", "{\n  \"a\": {\n    \"d\": 1,\n  },\n}", "{\n  \"a\": {\n    \"d\": 1,\n    \"b\": 1\n  },\n}"},
		{"comments", "/* { */ {\"a\": { // }\n\"d\": [1, \"]\"] /* , */ }}", "/* { */ {\"a\": { // }\n\"d\": [1, \"]\"], /* , */\n    \"b\": 1\n  }}"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := setJSON([]byte(tt.file), []string{"a", "b"}, 1)
			if err != nil || string(got) != tt.want {
				t.Errorf("got %q, %v; want %q", got, err, tt.want)
			}
		})
	}
	for _, bad := range []string{"[]", "{", `{"a": 1}`, `{"a" {}}`, `{"x": 1 "a": 2}`, "x", `{"a`, `{"a": {"b": "`} {
		if got, err := setJSON([]byte(bad), []string{"a", "b"}, 1); err == nil {
			t.Errorf("%q: made %q of it", bad, got)
		}
	}
}

func FuzzSetJSON(f *testing.F) {
	f.Add([]byte(`{"a": {"b": [1, {"c": "\\""}]}}`))
	f.Add([]byte(`{"x": 1}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		got, err := setJSON(file, []string{"a", "b"}, "v")
		if err != nil || !json.Valid(file) || bytes.Contains(file, []byte("/")) {
			return
		}
		if !json.Valid(got) {
			t.Errorf("made %q of %q", got, file)
		}
	})
}
