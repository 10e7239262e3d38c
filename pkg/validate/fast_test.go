package validate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"toolctl.dev/toolctl/pkg/validate"
)

// fastSchemas are of the common keywords; documents of the first list are found valid by their
// bytes, those of the second are not, be they valid or not.
var fastSchemas = []struct {
	schema       string
	sure, unsure []string
}{
	{`{}`, []string{`null`, ` [1, {"a":"b"}] `, `"\ud83d\ude00"`, `{"a":{"a":1},"b":{"a":1}}`},
		[]string{``, `{`, `[1,]`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a":{"b":1,"b":1}}`, "\"\xff\"", `1e400`, `01`, `nul`, `1 2`, `"a`, "\"\n\"", `{"a"}`, `{"a":}`, `{1:1}`, `]`}},
	{benchSchema, []string{benchDocument, `{"location":"Oslo"}`, `{ "unit" : "celsius" , "location" : "\u00c5s" }`},
		[]string{`{}`, `{"location":""}`, `{"location":"Oslo","days":15}`, `{"location":"Oslo","days":"3"}`, `{"location":"Oslo","location":"Oslo"}`, `{"location":"Oslo","more":1}`, `{"location":"Oslo","unit":"Celsius"}`, `[]`, `null`}},
	{`{"type":["string","null"],"minLength":2,"maxLength":3}`, []string{`null`, `"ab"`, `"äöü"`, `"\u00e4b"`, `"😀😀"`}, []string{`"a"`, `"abcd"`, `"ä"`, `"😀"`, `1`}},
	{`{"type":"string","pattern":"^[a-z]+$"}`, []string{`"abc"`, `"a\u0062c"`}, []string{`"aBc"`, `"a\nb"`}},
	{`{"type":"string","pattern":"^(?!x)"}`, nil, []string{`"abc"`}},
	{`{"type":"integer","minimum":-3,"exclusiveMaximum":10}`, []string{`-3`, `9`, `0`, `-0`}, []string{`10`, `-4`, `5.0`, `1e0`, `5.5`, `true`}},
	{`{"type":"number","exclusiveMinimum":0,"maximum":0.3}`, []string{`0.3`, `0.1`, `1e-9`}, []string{`0`, `0.30000000000000001`, `0.31`, `3e-1`, `-1`}},
	{`{"maximum":9007199254740993}`, []string{`9007199254740991`, `"text"`}, []string{`9007199254740993`, `9007199254740994`}},
	{`{"multipleOf":3}`, []string{`9`, `-9`, `0`}, []string{`10`, `9.0`, `4.5`}},
	{`{"enum":["a\"b",1,1.50,true,null]}`, []string{`"a\"b"`, `1`, `1.50`, `true`, `null`}, []string{`"1"`, `1.0`, `1.5`, `false`, `{}`, `[]`}},
	{`{"const":"x"}`, []string{`"x"`, `"\u0078"`}, []string{`"y"`, `{}`}},
	{`{"type":"array","items":{"type":"boolean"},"minItems":1,"maxItems":2}`, []string{`[true]`, `[ true , false ]`}, []string{`[]`, `[true,true,true]`, `[1]`, `[true`}},
	{`{"items":false}`, []string{`[]`, `{}`}, []string{`[1]`}},
	{`{"properties":{"a":{"type":"object","additionalProperties":{"type":"integer"},"minProperties":1,"maxProperties":2}},"required":["a","b"]}`,
		[]string{`{"a":{"x":1},"b":null}`, `{"b":[],"a":{"x":1,"y":2},"c":1}`}, []string{`{"a":{},"b":1}`, `{"a":{"x":1}}`, `{"a":{"x":1,"y":2,"z":3},"b":1}`, `{"a":{"x":""},"b":1}`, `{"a":{"x":1,"x":1},"b":1}`}},
	{`{"additionalProperties":false,"required":["a"]}`, nil, []string{`{"a":1}`, `{}`}},
	{`{"properties":{"at":{"format":"date"},"n":{"type":"integer"}}}`, []string{`{"n":1}`}, []string{`{"at":"2026-01-01"}`}},
	{`{"anyOf":[{"type":"string","minLength":1},{"type":"null"},{"type":"array","items":{"oneOf":[{"type":"integer"},{"type":"object"}]}}],"default":null,"title":"T","x-order":1}`,
		[]string{`"a"`, `null`, `[1,{}]`}, []string{`""`, `1`, `[""]`, `{}`}},
	{`{"anyOf":[{"type":"integer"},{"type":"number","minimum":5}]}`, nil, []string{`1`, `7`}},
	{`{"anyOf":[{"type":"string"}],"minLength":2}`, nil, []string{`"a"`, `"ab"`}},
	{`{"allOf":[{"type":"string"}]}`, nil, []string{`"a"`, `1`}},
	{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, nil, []string{`"a"`, `1`}},
	{`{"$schema":"http://json-schema.org/draft-04/schema#","minimum":1,"exclusiveMinimum":true}`, nil, []string{`1`, `2`}},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","$id":"https://example.com/a","type":"object","definitions":{"b":{}}}`, []string{`{"a":1.5}`}, []string{`[]`}},
	{`true`, []string{`1`, `{"a":null}`}, []string{`{"a":1,"a":1}`}},
	{`false`, nil, []string{`1`}},
	{`{"type":"text"}`, nil, []string{`"a"`}}, // does not compile
}

func TestSurelyValid(t *testing.T) {
	for _, c := range fastSchemas {
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			schema := validate.NewCache(validate.Options{}).Schema(json.RawMessage(c.schema), draft)
			for _, doc := range c.sure {
				if !schema.SurelyValid([]byte(doc)) {
					t.Errorf("%s: %s is not found valid", c.schema, doc)
				}
				sameAsEngine(t, schema, []byte(doc))
			}
			for _, doc := range c.unsure {
				if schema.SurelyValid([]byte(doc)) {
					t.Errorf("%s: %s is found valid", c.schema, doc)
				}
			}
		}
	}
}

// TestSurelyValidBounds: what Decode and the bounds of cost refuse is not found valid.
func TestSurelyValidBounds(t *testing.T) {
	any := validate.NewCache(validate.Options{}).Schema(json.RawMessage(`{}`), 0)
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	members := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `,"m%d":1`, i)
		}
		return "{" + b.String()[1:] + "}"
	}
	for _, c := range []struct {
		name, doc string
		sure      bool
	}{
		{"depth 256", nested(validate.MaxDepth), true}, {"depth 257", nested(validate.MaxDepth + 1), false},
		{"64 members", members(64), true}, {"65 members", members(65), false},
		{"500,000 values", "[" + strings.Repeat("1,", validate.MaxValues-2) + "1]", true}, {"500,001 values", "[" + strings.Repeat("1,", validate.MaxValues-1) + "1]", false},
		{"a text of 16 MiB", `"` + strings.Repeat("x", validate.MaxDocumentBytes-2) + `"`, true}, {"a larger one", `"` + strings.Repeat("x", validate.MaxDocumentBytes) + `"`, false},
		{"a number of 101 digits", strings.Repeat("9", 101), false},
	} {
		if got := any.SurelyValid([]byte(c.doc)); got != c.sure {
			t.Errorf("%s: %t", c.name, got)
		}
	}
	expensive := validate.NewCache(validate.Options{}).Schema(json.RawMessage(`{"items":{"pattern":"(a|b|c|d|e){900}"}}`), 0)
	if expensive.SurelyValid([]byte(`[` + strings.Repeat(`"`+strings.Repeat("a", 1000)+`",`, 1000) + `""]`)) {
		t.Error("a document that is too expensive is found valid")
	}
}

// sameAsEngine fails when a text is found valid by its bytes in which Decode or the engine finds something.
func sameAsEngine(t *testing.T, schema *validate.Schema, raw []byte) {
	if !schema.SurelyValid(raw) {
		return
	}
	doc, err := validate.Decode(raw)
	if err != nil {
		t.Fatalf("%.300s is found valid: %v", raw, err)
	}
	if fixed, changed, violations, err := schema.Check(doc, true); err != nil || changed || len(violations) > 0 {
		t.Fatalf("%.300s is found valid: the engine makes %v of it and says %v %v", raw, fixed, violations, err)
	}
}

// TestLegal: what compiles without its engine is what the engine takes, in each draft and however "$schema" is written;
// what is not legal is said at once.
func TestLegal(t *testing.T) {
	good := []string{
		`{}`, `{"type":["object","null"],"properties":{"a":{"title":"A","format":"date","default":1},"b":true},"required":["a"],"additionalProperties":{"not":{"type":"string"}}}`,
		`{"enum":["a",1,true,null],"const":{},"examples":[1],"multipleOf":0.01,"minimum":-1,"pattern":"^a$","x-a":{"type":1},"example":2,"uniqueItems":true,"$comment":"c"}`,
		`{"items":{"anyOf":[{"minLength":2.0,"maxLength":1},{"oneOf":[false]}]},"$defs":{"a":{"type":"integer"}},"definitions":{"b":{"deprecated":true}}}`,
	}
	bad := []string{
		`{"type":"text"}`, `{"type":[]}`, `{"type":["string","string"]}`, `{"type":null}`, `{"enum":{}}`, `{"enum":1}`, `{"title":1}`, `{"description":null}`, `{"readOnly":"yes"}`, `{"examples":{}}`,
		`{"minimum":"1"}`, `{"multipleOf":0}`, `{"multipleOf":-1}`, `{"minLength":-1}`, `{"maxItems":1.5}`, `{"pattern":"("}`, `{"pattern":1}`, `{"required":"a"}`, `{"required":[1]}`, `{"required":["a","a"]}`,
		`{"items":1}`, `{"additionalProperties":"no"}`, `{"anyOf":[]}`, `{"anyOf":{}}`, `{"allOf":[1]}`, `{"properties":[]}`, `{"properties":{"a":1}}`, `{"$defs":{"a":{"type":1}}}`, `{"definitions":[]}`, `{"not":[]}`, `{"format":1}`, `{"uniqueItems":1}`,
	}
	compile := func(schema, url string, draft validate.Draft) (*validate.Schema, error) {
		if url != "" {
			schema = strings.Replace(`{"$schema":"`+url+`",`+schema[1:], ",}", "}", 1)
		}
		s := validate.NewCache(validate.Options{}).Schema(json.RawMessage(schema), draft)
		return s, s.Compile()
	}
	for d := validate.Draft7; d <= validate.Draft2020; d++ {
		for _, url := range []string{"", d.String(), strings.TrimSuffix(d.String(), "#"), strings.TrimSuffix(strings.Replace(d.String(), "https:", "http:", 1), "#") + "#"} {
			for _, schema := range good {
				s, err := compile(schema, url, d)
				if err != nil {
					t.Errorf("%s %q: %s: %v", d, url, schema, err)
				}
				if _, err := s.Validate(nil); err != nil {
					t.Errorf("%s %q: %s compiles, and its engine says %v", d, url, schema, err)
				}
			}
			for _, schema := range bad {
				if schema == `{"$defs":{"a":{"type":1}}}` && d == validate.Draft7 {
					continue // which does not know it
				}
				if _, err := compile(schema, url, d); err == nil {
					t.Errorf("%s %q: %s compiles", d, url, schema)
				}
			}
		}
	}
}

// TestConcurrentStart: calls at once find a schema that has no engine yet.
func TestConcurrentStart(t *testing.T) {
	for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
		schema := validate.NewCache(validate.Options{}).Schema(json.RawMessage(benchSchema), draft)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if !schema.SurelyValid([]byte(benchDocument)) {
					t.Error("the document is not found valid")
				}
				if violations, err := schema.ValidateJSON([]byte(`{"location":""}`)); err != nil || len(violations) != 1 {
					t.Error(violations, err)
				}
			})
		}
		wg.Wait()
	}
}

// FuzzFastValid compares what is found valid by its bytes with Decode and the engines, and what
// compiles without an engine with what the engine takes.
func FuzzFastValid(f *testing.F) {
	for _, c := range fastSchemas {
		for _, doc := range append(c.sure, c.unsure...) {
			f.Add([]byte(c.schema), []byte(doc), true)
			f.Add([]byte(c.schema), []byte(doc), false)
		}
	}
	f.Fuzz(func(t *testing.T, schema, doc []byte, old bool) {
		draft := validate.Draft2020
		if old {
			draft = validate.Draft7
		}
		s := validate.NewCache(validate.Options{}).Schema(schema, draft)
		sameAsEngine(t, s, doc)
		if s.Compile() == nil {
			if _, err := s.Validate(nil); err != nil {
				t.Fatalf("%.300s compiles, and its engine says %v", schema, err)
			}
		}
	})
}

// BenchmarkFastValid is to be read beside its floor, encoding/json's check that the same bytes
// are JSON: it may take three times as long.
func BenchmarkFastValid(b *testing.B) {
	const row = `{"id":"a-17","name":"Ada Lovelace","role":"admin","score":0.75,"tags":["one","two"],"address":{"city":"Oslo","zip":"0150"},"note":null,"active":true,"visits":1234}`
	const rows = `{"type":"object","properties":{"total":{"type":"integer","minimum":0},"items":{"type":"array","maxItems":1000,"items":{"type":"object","additionalProperties":false,
		"required":["id","name"],"properties":{"id":{"type":"string","pattern":"^[a-z]-[0-9]+$"},"name":{"type":"string","minLength":1,"maxLength":80},"role":{"enum":["admin","user"]},"score":{"type":"number","minimum":0,"maximum":1},
		"tags":{"type":"array","items":{"type":"string"}},"address":{"type":"object","properties":{"city":{"type":"string"},"zip":{"type":"string"}},"required":["city"]},
		"note":{"anyOf":[{"type":"string"},{"type":"null"}]},"active":{"type":"boolean"},"visits":{"type":"integer"}}}}},"required":["items"]}`
	const text = `{"type":"object","properties":{"text":{"type":"string"}}}`
	for _, c := range []struct{ name, schema, doc string }{
		{"args", benchSchema, benchDocument},
		{"rows", rows, `{"total":500,"items":[` + strings.Repeat(row+",", 499) + row + `]}`},
		{"text", text, `{"text":"` + strings.Repeat("some words of a page ", 5000) + `"}`},
	} {
		schema, doc := validate.NewCache(validate.Options{}).Schema(json.RawMessage(c.schema), 0), []byte(c.doc)
		b.Run(c.name+"/floor-json.Valid", func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			for b.Loop() {
				if !json.Valid(doc) {
					b.Fatal("not valid")
				}
			}
		})
		b.Run(c.name+"/bytes", func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				if !schema.SurelyValid(doc) {
					b.Fatal("not found valid")
				}
			}
		})
		b.Run(c.name+"/engine", func(b *testing.B) {
			b.SetBytes(int64(len(doc)))
			b.ReportAllocs()
			for b.Loop() {
				v, err := validate.Decode(doc)
				if err != nil {
					b.Fatal(err)
				}
				if violations, err := schema.Validate(v); err != nil || len(violations) > 0 {
					b.Fatal(violations, err)
				}
			}
		})
	}
}
