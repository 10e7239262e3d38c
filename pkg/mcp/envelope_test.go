package mcp

import (
	"encoding/json"
	"testing"
)

// FuzzSplit holds split to encoding/json on whatever is valid JSON.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{`{}`, ` { } `, `{"jsonrpc":"2.0","id":1,"result":{"a":[1,"]}\""]}}`, `{"id":"x","method":"m","params":null}`,
		`{"id":1,"error":{"code":-1,"message":"}"}}`, `{"result":"\\","id":-1.5e3}`, `[]`, `{"id":1,}`, `{"id"`, `{"id":1 "x"}`, `{"`, `{"a":"`, `{"a\"b":1}`, "{\"id\":1}\n", `{"id":}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, ok := split(data)
		var want map[string]json.RawMessage
		if json.Unmarshal(data, &want) != nil || want == nil {
			return // split checks nothing; it must only end
		}
		for key := range want {
			if key != "id" && key != "params" && key != "result" && key != "error" {
				continue
			}
			got := map[string]json.RawMessage{"id": m.id, "params": m.params, "result": m.result, "error": m.failure}[key]
			if string(got) != string(want[key]) && !escaped(data) {
				t.Fatalf("%q: %s is %q, want %q", data, key, got, want[key])
			}
		}
		if raw, has := want["method"]; has && !escaped(data) {
			var method string
			if bad := json.Unmarshal(raw, &method) != nil; bad == ok || !bad && m.method != method && string(raw) != "null" {
				t.Fatalf("%q: method %q, ok %v", data, m.method, ok)
			}
		} else if !ok && !has {
			t.Fatalf("%q is an object and was refused", data)
		}
	})
}

// escaped reports whether a key may be written with escapes, which split does not
// read, or twice.
func escaped(data []byte) bool {
	seen := map[string]int{}
	for i, c := range data {
		if c == '\\' {
			return true
		}
		if c == '"' {
			for _, k := range []string{`"id"`, `"params"`, `"result"`, `"error"`, `"method"`} {
				if len(data) >= i+len(k) && string(data[i:i+len(k)]) == k {
					seen[k]++
				}
			}
		}
	}
	for _, n := range seen {
		if n > 1 {
			return true
		}
	}
	return false
}
