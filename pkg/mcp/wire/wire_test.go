package wire_test

import (
	"encoding/json"
	"errors"
	"testing"

	"toolctl.dev/toolctl/pkg/mcp/wire"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,2,{"b":1e400}]},"_meta":{"progressToken":7,"k":{"z":12345678901234567890}}}}`,
		` {"jsonrpc" : "2.0" , "id":"a\u0041" , "result" : {"content":[],"_meta":{}} } `, `{"jsonrpc":"2.0","method":"x"}`, `[]`, `{`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`,
		`{"jsonrpc":"2.0","id":null,"method":"a","params":[1]}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":1,"method":"\u0061","params":{"n\u0061me":"y"}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := wire.Parse(text)
		if valid := json.Valid(text); valid == errors.Is(err, wire.ErrSyntax) {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		var all map[string]json.RawMessage
		if json.Unmarshal(text, &all) != nil {
			t.Fatalf("%q is no object", text)
		}
		var method string
		_ = json.Unmarshal(all["method"], &method)
		if method != m.Method {
			t.Fatalf("%q: method %q, %q", text, method, m.Method)
		}
		for _, name := range []string{"params", "result"} {
			var body, meta map[string]json.RawMessage
			if json.Unmarshal(all[name], &body) != nil || body == nil {
				continue
			}
			_ = json.Unmarshal(body["_meta"], &meta)
			o := m.Params
			if name == "result" {
				o = m.Result
			}
			for k, v := range body {
				if got := o.Get(k); string(got) != string(v) && k != "_meta" {
					// a name that is not ours may come twice
					n := 0
					for _, e := range o {
						if e.Name == k {
							n++
						}
					}
					if n < 2 {
						t.Fatalf("%q: %s is %s, %s", text, k, got, v)
					}
				}
			}
			_ = meta
		}
	})
}
