package validate_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/xeipuuv/gojsonschema"

	"toolctl.dev/toolctl/pkg/validate"
)

// The small input of a weather tool, as most tools have it.
const (
	benchSchema = `{"type":"object","properties":{"location":{"type":"string","minLength":1},"days":{"type":"integer","minimum":1,"maximum":14},
		"unit":{"type":"string","enum":["celsius","fahrenheit"]}},"required":["location"],"additionalProperties":false}`
	benchDocument = `{"location":"Oslo","days":3,"unit":"celsius"}`
)

func benchDoc(b *testing.B) any {
	doc, err := validate.Decode([]byte(benchDocument))
	if err != nil {
		b.Fatal(err)
	}
	return doc
}

// BenchmarkValidate compares Validate with the bare engines behind it.
func BenchmarkValidate(b *testing.B) {
	doc := benchDoc(b)
	b.Run("2020-12/floor", func(b *testing.B) {
		c := jsonschema.NewCompiler()
		c.AssertFormat()
		root, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(benchSchema)))
		if err != nil {
			b.Fatal(err)
		}
		if err := c.AddResource("https://schema.invalid/bench", root); err != nil {
			b.Fatal(err)
		}
		schema := c.MustCompile("https://schema.invalid/bench")
		b.ReportAllocs()
		for b.Loop() {
			if err := schema.Validate(doc); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("2020-12/validate", func(b *testing.B) { benchValidate(b, validate.Draft2020, doc) })
	b.Run("draft-07/floor", func(b *testing.B) {
		schema, err := gojsonschema.NewSchema(gojsonschema.NewStringLoader(benchSchema))
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if r, err := schema.Validate(gojsonschema.NewRawLoader(doc)); err != nil || !r.Valid() {
				b.Fatal(err, r)
			}
		}
	})
	b.Run("draft-07/validate", func(b *testing.B) { benchValidate(b, validate.Draft7, doc) })
}

func benchValidate(b *testing.B, draft validate.Draft, doc any) {
	schema := validate.NewCache(validate.Options{}).Schema(json.RawMessage(benchSchema), draft)
	if err := schema.Compile(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, changed, violations, err := schema.Check(doc, true); err != nil || changed || len(violations) > 0 {
			b.Fatal(changed, violations, err)
		}
	}
}

// BenchmarkDecode compares Decode with encoding/json, which bounds and refuses less.
func BenchmarkDecode(b *testing.B) {
	raw := []byte(benchDocument)
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber()
			var v any
			if err := d.Decode(&v); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := validate.Decode(raw); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkFirstUse is what the first call of a tool pays: decoding and compiling.
func BenchmarkFirstUse(b *testing.B) {
	b.Run("2020-12/floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			c := jsonschema.NewCompiler()
			root, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(benchSchema)))
			if err != nil {
				b.Fatal(err)
			}
			if err := c.AddResource("https://schema.invalid/bench", root); err != nil {
				b.Fatal(err)
			}
			c.MustCompile("https://schema.invalid/bench")
		}
	})
	b.Run("2020-12/validate", func(b *testing.B) { benchFirstUse(b, validate.Draft2020) })
	b.Run("draft-07/floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := gojsonschema.NewSchema(gojsonschema.NewStringLoader(benchSchema)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("draft-07/validate", func(b *testing.B) { benchFirstUse(b, validate.Draft7) })
}

func benchFirstUse(b *testing.B, draft validate.Draft) {
	cache := validate.NewCache(validate.Options{})
	if err := cache.Schema(json.RawMessage(`true`), draft).Compile(); err != nil { // the metaschema, once a cache
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		s := cache.Schema(json.RawMessage(benchSchema), draft)
		if err := s.Compile(); err != nil {
			b.Fatal(err)
		}
		validate.Forget(cache)
	}
}

// BenchmarkShared is a look-up of a schema that is known already.
func BenchmarkShared(b *testing.B) {
	cache := validate.NewCache(validate.Options{})
	held := cache.Schema(json.RawMessage(benchSchema), validate.Draft2020)
	b.ReportAllocs()
	for b.Loop() {
		if cache.Schema(json.RawMessage(benchSchema), validate.Draft2020) != held {
			b.Fatal("equal schemas are not shared")
		}
	}
}
