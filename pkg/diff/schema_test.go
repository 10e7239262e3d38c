package diff_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/validate"
)

func TestSchemas(t *testing.T) {
	const ab = `"properties":{"a":{"type":"string"},"b":{"type":"string"}}`
	tests := []struct {
		name, before, after string
		input, output       diff.Class
		pointer, witness    string // of the input
	}{
		{"the same", `{"type":"string"}`, `{"type":"string"}`, diff.Neutral, diff.Neutral, "", ""},
		{"an annotation", `{"type":"string"}`, `{"type":"string","title":"T"}`, diff.Neutral, diff.Neutral, "/title", ""},
		{"a property named title", `{"properties":{"title":{"type":"string"}},"additionalProperties":false}`, `{"properties":{"title":{"type":"integer"}},"additionalProperties":false}`,
			diff.Breaking, diff.Breaking, "/properties/title/type", `{"title":"x"}`},
		{"required", `{` + ab + `,"required":["a"]}`, `{` + ab + `,"required":["a","b"]}`, diff.Breaking, diff.Compatible, "/required", `{"a":"x"}`},
		{"an optional property of a closed object", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false}`,
			diff.Compatible, diff.Breaking, "/properties/b", ""},
		{"an optional property of an open object", `{"type":"object","properties":{"a":{}}}`, `{"type":"object","properties":{"a":{},"b":{"type":"string"}}}`, diff.Risky, diff.Compatible, "/properties/b", ""},
		{"an open object is closed", `{"type":"object","properties":{"a":{}}}`, `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, diff.Risky, diff.Compatible, "/additionalProperties", `{"x":"x"}`},
		{"a map is closed", `{"type":"object"}`, `{"type":"object","maxProperties":1}`, diff.Breaking, diff.Compatible, "/maxProperties", ""},
		{"patterns", `{"type":"string","pattern":"^[a-f]{2}$"}`, `{"type":"string","pattern":"^[a-z]+$","maxLength":3}`, diff.Compatible, diff.Breaking, "/maxLength", ""},
		{"a pattern that ends words", `{"type":"string","pattern":"\\bcat\\b"}`, `{"type":"string","pattern":"cat"}`, diff.Compatible, diff.Breaking, "/pattern", ""},
		{"an enum within a pattern", `{"enum":["x-1","x-22"]}`, `{"type":"string","pattern":"^x-\\d+$"}`, diff.Compatible, diff.Breaking, "/enum", ""},
		{"lookahead that stays", `{"type":"string","pattern":"^(?=a)"}`, `{"type":"string","pattern":"^(?=a)","description":"d","minLength":0}`, diff.Unknown, diff.Unknown, "/minLength", ""},
		{"multiples and bounds", `{"type":"integer","multipleOf":6,"minimum":1,"maximum":20}`, `{"enum":[6,12,18]}`, diff.Compatible, diff.Compatible, "", ""},
		{"a range in two", `{"type":"number","minimum":0,"maximum":2}`, `{"anyOf":[{"type":"number","minimum":0,"maximum":1},{"type":"number","exclusiveMinimum":1,"maximum":2}]}`, diff.Compatible, diff.Compatible, "", ""},
		{"large integers", `{"type":"integer","maximum":9007199254740993}`, `{"type":"integer","maximum":9007199254740992}`, diff.Breaking, diff.Compatible, "/maximum", ""},
		{"coerced", `{"type":"object","properties":{"n":{"type":"string","enum":["5"]}},"required":["n"],"additionalProperties":false}`, `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`,
			diff.Breaking, diff.Breaking, "", `{"n":"5"}`},
		{"a tree, unrolled", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}}}`, `{"$ref":"#/$defs/a","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b"}},"b":{"type":"array","items":{"$ref":"#/$defs/a"}}}}`, diff.Compatible, diff.Compatible, "", ""},
		{"a tree that gets a bound", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"}}}}`, `{"$ref":"#/$defs/n","$defs":{"n":{"type":"array","items":{"$ref":"#/$defs/n"},"maxItems":2}}}`, diff.Breaking, diff.Compatible, "/$defs/n/maxItems", ""},
		{"nothing fits the new one", `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"type":"object","properties":{"a":{}},"required":["b"],"additionalProperties":false}`, diff.Breaking, diff.Compatible, "/required", ""},
		{"a dialect that wakes a keyword", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","prefixItems":[{"type":"string"}]}`, `{"type":"array","prefixItems":[{"type":"string"}]}`, diff.Breaking, diff.Compatible, "", ""},
		{"unique items of two values", `{"type":"array","items":{"type":"boolean"},"uniqueItems":true}`, `{"type":"array","maxItems":2}`, diff.Compatible, diff.Breaking, "", ""},
	}
	c := diff.NewChecker()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for as, want := range map[diff.Direction]diff.Class{diff.Input: tt.input, diff.Output: tt.output} {
				got, err := c.Schemas(json.RawMessage(tt.before), json.RawMessage(tt.after), as, validate.Draft2020)
				if err != nil {
					t.Fatal(err)
				}
				if got.Class != want {
					t.Errorf("as %s: got %s, want %s: %+v %s", as, got.Class, want, got, got.Witness)
				}
				if as == diff.Input && (tt.pointer != "" && got.Pointer != tt.pointer || tt.witness != "" && string(got.Witness) != tt.witness) {
					t.Errorf("got %s with %s, want %s with %s", got.Pointer, got.Witness, tt.pointer, tt.witness)
				}
				if wantWitness := want == diff.Breaking || want == diff.Risky; (got.Witness != nil) != wantWitness {
					t.Errorf("as %s: witness %s of a change that is %s", as, got.Witness, want)
				}
				if got.Coerced != (tt.name == "coerced" && as == diff.Input) {
					t.Errorf("as %s: coerced %t", as, got.Coerced)
				}
			}
		})
	}
}

func TestSchemasThatCannotBeRead(t *testing.T) {
	_, err := diff.NewChecker().Schemas(json.RawMessage(`{"type":"object"}`), json.RawMessage(`{"type":"integr"}`), diff.Input, validate.Draft2020)
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) || !strings.HasPrefix(err.Error(), "new schema: ") {
		t.Errorf("got %v, want an error of the new schema", err)
	}
}

// Hostile schemas end within the bounds, without a wrong proof.
func TestSchemasOfManyBranches(t *testing.T) {
	branch := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, `{"type":"object","properties":{"k":{"const":`+string(rune('0'+i%10))+`},"a":{"type":"integer","minimum":`+string(rune('0'+i%10))+`}},"required":["k"]}`)
		}
		return `{"oneOf":[` + strings.Join(all, ",") + `]}`
	}
	got, err := diff.NewChecker().Schemas(json.RawMessage(branch(40)), json.RawMessage(branch(39)), diff.Input, validate.Draft2020)
	if err != nil || got.Class == diff.Neutral {
		t.Errorf("got %v, %v", got, err)
	}
}

// The pairs of a file that TOOLCTL_SCHEMA_CHANGES names: none wrong, few unknown.
func TestSchemaChanges(t *testing.T) {
	path := os.Getenv("TOOLCTL_SCHEMA_CHANGES")
	if path == "" {
		t.Skip("TOOLCTL_SCHEMA_CHANGES names no file of pairs")
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Pairs []struct {
			ID, Input, Output string
			Old, New          json.RawMessage
		}
	}
	if err := json.Unmarshal(raw, &file); err != nil || len(file.Pairs) == 0 {
		t.Fatalf("no pairs in %s: %v", path, err)
	}
	c, unknown := diff.NewChecker(), 0
	for _, p := range file.Pairs {
		for as, want := range map[diff.Direction]string{diff.Input: p.Input, diff.Output: p.Output} {
			got, err := c.Schemas(p.Old, p.New, as, validate.Draft2020)
			switch {
			case err != nil:
				t.Errorf("%s: %v", p.ID, err)
			case got.Class == diff.Unknown:
				unknown++
			case string(got.Class) != want && (got.Class != diff.Risky || want != "breaking") && (got.Class != diff.Neutral || want != "compatible"):
				t.Errorf("%s as %s: got %s, want %s: %s", p.ID, as, got.Class, want, got.Witness)
			}
		}
	}
	if unknown*100 > 8*2*len(file.Pairs) {
		t.Errorf("%d of %d are unknown, want at most 8 in 100", unknown, 2*len(file.Pairs))
	}
	t.Logf("%d pairs both ways, %d unknown", len(file.Pairs), unknown)
}

// The pairs of testdata/schema-changes.jsonl, whose classes were written down before they were
// judged: none wrong, at most 8 in 100 unknown, and with each break a witness that the engines
// confirm: the old side takes it and the new refuses, or for results the other way round.
func TestOwnSchemaChanges(t *testing.T) {
	raw, err := os.ReadFile("testdata/schema-changes.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	c, schemas := diff.NewChecker(), validate.NewCache(validate.Options{})
	takes := func(schema, instance json.RawMessage) bool {
		violations, err := schemas.Schema(schema, validate.Draft2020).ValidateJSON(instance)
		return err == nil && len(violations) == 0
	}
	var unknown []string
	all := 0
	for line := range strings.Lines(string(raw)) {
		var p struct {
			ID            string
			Old, New      json.RawMessage
			Input, Output diff.Class
		}
		if err := json.Unmarshal([]byte(line), &p); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for as, want := range map[diff.Direction]diff.Class{diff.Input: p.Input, diff.Output: p.Output} {
			all++
			got, err := c.Schemas(p.Old, p.New, as, validate.Draft2020)
			switch {
			case err != nil:
				t.Errorf("%s: %v", p.ID, err)
			case got.Class == diff.Unknown:
				unknown = append(unknown, p.ID+" as "+string(as))
			case got.Class != want && (got.Class != diff.Neutral || want != diff.Compatible):
				t.Errorf("%s as %s: got %s, want %s: %s", p.ID, as, got.Class, want, got.Witness)
			case got.Class == diff.Breaking || got.Class == diff.Risky:
				took, refuses := p.Old, p.New
				if as == diff.Output {
					took, refuses = p.New, p.Old
				}
				if !takes(took, got.Witness) || takes(refuses, got.Witness) {
					t.Errorf("%s as %s: the witness %s shows nothing", p.ID, as, got.Witness)
				}
			}
		}
	}
	if all < 2*92 || len(unknown)*100 > 8*all {
		t.Errorf("%d of %d are unknown, want at most 8 in 100: %q", len(unknown), all, unknown)
	}
	t.Logf("%d judged, %d unknown: %q", all, len(unknown), unknown)
}
