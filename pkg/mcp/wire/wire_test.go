package wire_test

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"toolctl.dev/toolctl/pkg/mcp/wire"
)

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":[1,2,{"b":1e400}]},"_meta":{"progressToken":7,"k":{"z":12345678901234567890}}}}`,
		` {"jsonrpc" : "2.0" , "id":"a\u0041" , "result" : {"content":[],"_meta":{}} } `, `{"jsonrpc":"2.0","method":"x"}`, `[]`, `{`, `{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`,
		`{"jsonrpc":"2.0","id":null,"method":"a","params":[1]}`, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`, `{"jsonrpc":"2.0","id":0,"error":{"code":""}}`, `{"jsonrpc":"2.0","id":1,"method":"\u0061","params":{"n\u0061me":"y"}}`,
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
		sameAsTheSDK(t, text, m)
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
					// Unknown names may occur twice.
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
			if len(meta) > 0 && len(m.Meta) == 0 {
				t.Fatalf("%q: _meta is lost", text)
			}
		}
	})
}

// sameAsTheSDK compares an accepted message with the SDK's reading.
func sameAsTheSDK(t *testing.T, text []byte, m wire.Message) {
	t.Helper()
	if m.Error != nil && json.Unmarshal(m.Error, new(wire.Error)) != nil {
		return // an answer all the same: Failure says that its error cannot be read, and nobody waits for another
	}
	got, err := jsonrpc.DecodeMessage(text)
	if err != nil {
		t.Fatalf("%q: the SDK does not take it: %v", text, err)
	}
	switch r := got.(type) {
	case *jsonrpc.Request:
		if m.Kind() == wire.Reply || r.Method != m.Method || r.IsCall() != (m.Kind() == wire.Call) || string(r.Params) != string(m.Body) && string(r.Params) != "" {
			t.Fatalf("%q: %+v, the SDK reads %+v", text, m, r)
		}
	case *jsonrpc.Response:
		if m.Kind() != wire.Reply || (r.Error != nil) != (m.Error != nil) || string(r.Result) != string(m.Body) {
			t.Fatalf("%q: %+v, the SDK reads %+v", text, m, r)
		}
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]error{
		`{"jsonrpc":"2.0","id":1,"method":"a"}`:                                  nil,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"x":1,"x":2}}`:           nil, // these names have no meaning in JSON-RPC
		`{"jsonrpc":"2.0","id":1,"method":"a","params":{"name":"b","name":"c"}}`: wire.ErrInvalid,
		`{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}`:                           wire.ErrInvalid,
		`{"jsonrpc":"2.0","id":1.5,"method":"a"}`:                                wire.ErrInvalid,
		`{"jsonrpc":"1.0","id":1,"method":"a"}`:                                  wire.ErrInvalid,
		`{"jsonrpc":"2.0","id":1,"result":{},"error":{}}`:                        wire.ErrInvalid,
		`[]`:    wire.ErrBatch,
		`"x"`:   wire.ErrInvalid,
		`{`:     wire.ErrSyntax,
		`{} {}`: wire.ErrSyntax,
		`{"jsonrpc":"2.0","id":1,"method":"a","params":` + strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_001): wire.ErrSyntax,
	} {
		if _, err := wire.Parse([]byte(text)); !errors.Is(err, want) {
			t.Errorf("%.80s: %v, want %v", text, err, want)
		}
	}
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 100<<10)
	for name, tc := range map[string]struct {
		in   string
		want []string
		err  error
	}{
		"blank lines and CRLF":   {"\n\r\na\r\n b \n", []string{"a", "b"}, io.EOF},
		"longer than the buffer": {long + "\nb\n", []string{long, "b"}, io.EOF},
		"too long":               {"a\n" + long + long + "\n", []string{"a"}, wire.LongError(150_000)},
		"cut off":                {"a\nb", []string{"a", "b"}, io.ErrUnexpectedEOF},
	} {
		lines := wire.NewLines(strings.NewReader(tc.in), 150_000)
		var got []string
		var err error
		for err == nil {
			var line []byte
			if line, err = lines.Next(); len(line) > 0 {
				got = append(got, string(line))
			}
		}
		if !slices.Equal(got, tc.want) || !errors.Is(err, tc.err) {
			t.Errorf("%s: %.50q, %v", name, got, err)
		}
	}
}
