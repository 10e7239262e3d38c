package server

import (
	"encoding/json"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestDeclared has capabilities read as the SDK reads them. What it reads otherwise, or not
// at all, is left to it.
func TestDeclared(t *testing.T) {
	for text, plain := range map[string]bool{
		`{}`:                                                   true,
		`{"roots":{}}`:                                         true,
		`{"roots":{"listChanged":true}}`:                       true,
		`{"roots":{"listChanged":false}}`:                      true,
		`{"sampling":{}}`:                                      true,
		`{"sampling":{"tools":{},"context":{}}}`:               true,
		`{"elicitation":{}}`:                                   true,
		`{"elicitation":{"form":{}}}`:                          true,
		`{"elicitation":{"url":{}}}`:                           true,
		`{"elicitation":{"url":{},"form":{"x":1}}}`:            true,
		`{"experimental":{"a":1},"extensions":{"b/c":{}}}`:     true,
		`{"tasks":{"list":{}},"elicitation":{},"roots":{}}`:    true,
		`{"elicitation":null,"sampling":null,"roots":null}`:    false,
		`{"elicitation":{"form":null,"url":{}},"sampling":{}}`: false,
		`{"elicitation":[]}`:                                   false,
		`{"roots":true}`:                                       false,
		`{"roots":{"listChanged":"yes"}}`:                      false,
		`{"sampling":{"tools":1}}`:                             false,
		`{"experimental":[]}`:                                  false,
		`{"extensions":"none"}`:                                false,
		`null`:                                                 false,
		`[]`:                                                   false,
		`"all"`:                                                false,
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		meta := map[string]any{metaCapabilities: v}
		got, ok := declared(meta)
		if ok != plain {
			t.Errorf("%s: plain is %v", text, ok)
		}
		r := &sdk.CallToolRequest{Params: &sdk.CallToolParamsRaw{Meta: meta}}
		if want := capabilities(r.ClientCapabilities()); ok && got != want {
			t.Errorf("%s: %+v, and the SDK reads %+v", text, got, want)
		}
	}
	if _, ok := declared(nil); ok {
		t.Error("capabilities that nobody declared")
	}
}
