package validate_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/validate"
)

// Every test here must end long before this; without the bounds most of them
// would take minutes to years, or end the process.
const longest = 20 * time.Second

func repeat(n int, format, sep string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteString(sep)
		}
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func TestCycles(t *testing.T) {
	const start = "schema leads back to itself without reading any further input, so no value could ever be checked: "
	tests := []struct{ name, schema, want string }{
		{"itself", `{"$ref":"#"}`, `: ` + start + `# → #`},
		{"allOf", `{"allOf":[{"$ref":"#"}]}`, `: ` + start + `# → #/allOf/0 → #`},
		{"anyOf", `{"anyOf":[{},{"$ref":"#"}]}`, `: ` + start + `# → #/anyOf/1 → #`},
		{"oneOf", `{"oneOf":[{"$ref":"#"}]}`, `: ` + start + `# → #/oneOf/0 → #`},
		{"not", `{"not":{"$ref":"#"}}`, `: ` + start + `# → #/not → #`},
		{"if", `{"if":{"$ref":"#"}}`, `: ` + start + `# → #/if → #`},
		{"then", `{"if":true,"then":{"$ref":"#"}}`, `: ` + start + `# → #/then → #`},
		{"else", `{"if":true,"else":{"$ref":"#"}}`, `: ` + start + `# → #/else → #`},
		{"dependencies", `{"dependencies":{"a":{"$ref":"#"}}}`, `: ` + start + `# → #/dependencies/a → #`},
		{"a definition", `{"definitions":{"a":{"$ref":"#/definitions/a"}}}`, `/definitions/a: ` + start + `#/definitions/a → #/definitions/a`},
		{"two definitions", `{"definitions":{"a":{"$ref":"#/definitions/b"},"b":{"allOf":[{"$ref":"#/definitions/a"}]}}}`,
			`/definitions/a: ` + start + `#/definitions/a → #/definitions/b → #/definitions/b/allOf/0 → #/definitions/a`},
		{"through ids", `{"$id":"http://x/a","allOf":[{"$ref":"http://x/b"}],"definitions":{"b":{"$id":"http://x/b","anyOf":[{"$ref":"a"}]}}}`,
			`: ` + start + `# → #/allOf/0 → #/definitions/b → #/definitions/b/anyOf/0 → #`},
		{"where no keyword looks", `{"items":{"$ref":"#/x"},"x":{"$ref":"#/x"}}`, `/x: ` + start + `#/x → #/x`},
	}
	for _, test := range tests {
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			t.Run(test.name+"/"+draft.String(), func(t *testing.T) {
				if got := compileViolations(t, test.schema, draft); len(got) != 1 || got[0] != test.want {
					t.Errorf("got %q\nwant %q", got, test.want)
				}
			})
		}
	}
	for _, test := range []struct {
		schema string
		draft  validate.Draft
	}{
		{`{"dependentSchemas":{"a":{"$ref":"#"}}}`, validate.Draft2019},
		{`{"$recursiveRef":"#"}`, validate.Draft2019},
		{`{"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}`, validate.Draft2020},
		{`{"id":"http://x/","not":{"$ref":"http://x/#"}}`, validate.Draft4},
	} {
		if got := compileViolations(t, test.schema, test.draft); len(got) != 1 || !strings.Contains(got[0], start) {
			t.Errorf("%s: got %q", test.schema, got)
		}
	}
}

func TestRecursionThatReadsInputIsFine(t *testing.T) {
	for _, schema := range []string{
		`{"properties":{"a":{"$ref":"#"}}}`, `{"items":{"$ref":"#"}}`, `{"additionalProperties":{"$ref":"#"}}`, `{"propertyNames":{"$ref":"#"}}`,
		`{"contains":{"$ref":"#"}}`, `{"allOf":[{"properties":{"a":{"$ref":"#"}}}]}`, `{"allOf":[{"$ref":"#/definitions/a"},{"$ref":"#/definitions/a"}],"definitions":{"a":{}}}`,
	} {
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			if _, err := newSchema(t, schema, draft).ValidateJSON([]byte(`{"a":{"a":{"a":[[[1]]]}}}`)); err != nil {
				t.Errorf("%s: %v", schema, err)
			}
		}
	}
}

// bomb is a chain of definitions, each of which applies the next one twice.
func bomb(keyword string, links int) string {
	var b []string
	for i := range links {
		b = append(b, fmt.Sprintf(`"d%d":{%q:[{"$ref":"#/definitions/d%d"},{"$ref":"#/definitions/d%d"}]}`, i, keyword, i+1, i+1))
	}
	return fmt.Sprintf(`{"$ref":"#/definitions/d0","definitions":{%s,"d%d":{"type":"integer"}}}`, strings.Join(b, ","), links)
}

// chain leads each eN on to d(N+1).
func chain(links int) string {
	var b []string
	for i := range links {
		b = append(b, fmt.Sprintf(`"e%d":{"allOf":[{"$ref":"#/definitions/d%d"}]}`, i, i+1))
	}
	return strings.Join(b, ",")
}

func TestHostileSchemas(t *testing.T) {
	tests := []struct{ name, schema, want string }{
		{"allOf that doubles", bomb("allOf", 40), "schema expands to more than 100000 checks of one value"},
		{"anyOf that doubles", bomb("anyOf", 40), "schema expands to more than 100000 checks of one value"},
		{"oneOf that doubles", bomb("oneOf", 400), "schema expands to more than 100000 checks of one value"},
		{"a chain of references", `{"$ref":"#/definitions/d0","definitions":{` + repeat(2000, `"d%d":{"$ref":"#/definitions/e%[1]d"}`, ",") + "," +
			chain(2000) + `,"d2000":{"properties":{"a":{"$ref":"#"}}}}}`, "schema applies more than 100 subschemas to one value"},
		{"nested too deep", strings.Repeat(`{"not":`, 100_000) + "{}" + strings.Repeat("}", 100_000), "nested deeper than 256 levels"},
		{"a nest that is not too deep for JSON", strings.Repeat(`{"not":`, 120) + "{}" + strings.Repeat("}", 120), "schema applies more than 100 subschemas to one value"},
		{"too many bytes", `{"title":"` + strings.Repeat("a", 1<<20) + `"}`, "too large: at most 1048576"},
		{"too many subschemas", `{"properties":{` + repeat(10_001, `"p%d":{}`, ",") + `}}`, "schema has more than 10000 subschemas"},
		{"too many ids", `{"definitions":{` + repeat(1001, `"p%d":{"$id":"http://x/%[1]d"}`, ",") + `}}`, "1000 of them with an $id"},
		{"too many references to unknown places", `{"x":{` + repeat(1001, `"a%d":{}`, ",") + `},"properties":{` + repeat(1001, `"r%d":{"$ref":"#/x/a%[1]d"}`, ",") + `}}`, "outside $defs"},
		{"a long enum", `{"enum":[` + repeat(10_001, `%d`, ",") + `]}`, "/enum: enum has 10001 items: at most 10000"},
		{"a large pattern", `{"pattern":"` + strings.Repeat("a", 20_000) + `{50}"}`, "pattern \"" + strings.Repeat("a", 80) + "…\" cannot be used: it expands to more than 10000 instructions"},
		{"a large pattern of repeats", `{"pattern":"((abcdefghijklmnopqrst){30}){30}"}`, "it expands to more than 10000 instructions"},
		{"a long pattern with lookahead", `{"pattern":"(?=a)` + strings.Repeat("a", 9000) + `"}`, "it is longer than 8192 bytes"},
		{"a deep pattern with lookahead", `{"pattern":"(?=a)` + strings.Repeat("(", 9000) + `"}`, "it is longer than 8192 bytes"},
	}
	for _, test := range tests {
		for _, draft := range []validate.Draft{validate.Draft4, validate.Draft7, validate.Draft2020} {
			t.Run(test.name+"/"+draft.String(), func(t *testing.T) {
				schema := test.schema
				if draft == validate.Draft4 {
					schema = strings.ReplaceAll(schema, `"$id"`, `"id"`)
				}
				begin := time.Now()
				got := compileViolations(t, schema, draft)
				if len(got) == 0 || !strings.Contains(strings.Join(got, "\n"), test.want) {
					t.Errorf("got %.300q, want %q", got, test.want)
				}
				if d := time.Since(begin); d > longest {
					t.Errorf("took %v", d)
				}
			})
		}
	}
}

func TestHostileDocuments(t *testing.T) {
	const tooDear = "document is too large for this schema: checking it would take too long"
	branching := `{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},{"properties":{"a":{"$ref":"#"}},"required":["y"]}]}`
	tests := []struct{ name, schema, doc, want string }{
		{"recursion that branches", branching, strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), tooDear},
		{"recursion that branches, shallow", branching, `{"a":{}}`, `required property "x" is missing`},
		{"a long text for a wide pattern", `{"pattern":"^(a?){900}$"}`, `"` + strings.Repeat("a", 1<<20) + `"`, tooDear},
		{"a pattern that backtracks", `{"items":{"pattern":"^(?=a)(a+)+$"}}`, `[` + repeat(50, `"`+strings.Repeat("a", 40)+`b%d"`, ",") + `]`,
			`expected a string on which the pattern "^(?=a)(a+)+$" can be checked in time, got string "aaaa`},
		{"a pattern that backtracks, refused", `{"not":{"pattern":"^(?=a)(a+)+$"}}`, `"` + strings.Repeat("a", 40) + `b"`,
			`document takes too long to check with the pattern "^(?=a)(a+)+$"`},
		{"a name that makes a pattern backtrack", `{"patternProperties":{"^(?=a)(a+)+$":{}}}`, `{"` + strings.Repeat("a", 40) + `b":1}`,
			`document takes too long to check with the pattern "^(?=a)(a+)+$"`},
		{"many numbers in a long enum", `{"items":{"enum":[` + repeat(10_000, `%d`, ",") + `]}}`, `[` + repeat(2000, `9%d`, ",") + `]`, tooDear},
		{"items that collide", `{"$schema":"https://json-schema.org/draft/2020-12/schema","uniqueItems":true}`, colliding(10_000), tooDear},
		{"many items that differ", `{"uniqueItems":true}`, `[` + repeat(40_000, `{"a":%d}`, ",") + `]`, ""},
		{"many items that are equal", `{"uniqueItems":true}`, `[` + strings.Repeat(`{"a":1},`, 50_000) + `{"a":1}]`, "items 0 and 1 are equal"},
		{"as deep as may be, in schema and document", `{"$ref":"#/definitions/d0","definitions":{` + repeat(32, `"d%d":{"$ref":"#/definitions/e%[1]d"}`, ",") + "," +
			chain(32) + `,"d32":{"properties":{"a":{"$ref":"#"},"b":{"type":"integer"}}}}}`,
			strings.Repeat(`{"a":`, 250) + `{"b":"x"}` + strings.Repeat("}", 250), "expected integer, got string \"x\""},
		{"many errors", `{"items":{"type":"integer"}}`, `[` + repeat(100_000, `"%d"`, ",") + `]`, `/0: expected integer, got string "0"`},
		{"as many errors as fit", `{"properties":{"a":{"items":{"type":"integer"},"maxItems":1},"b":{"minItems":3}},"required":["b"]}`, `{"a":[` + strings.Repeat(`true,`, 100_000) + `1]}`,
			"/a/0: expected integer, got boolean true"},
		{"nested lists that are all wrong", `{"$ref":"#/definitions/list","definitions":{"list":{"type":"array","items":{"$ref":"#/definitions/list"},"minItems":2}}}`,
			`[` + strings.Repeat(`[[]],`, 40_000) + `[]]`, "/0: expected at least 2 items, got array of 1 item"},
		{"members that are all wrong", `{"additionalProperties":{"type":"integer"}}`, `{` + repeat(60_000, `"m%d":""`, ",") + `}`, `: expected integer, got string ""`},
		{"branches that are all wrong", `{"items":{"anyOf":[{"type":"integer"},{"type":"boolean"},{"type":"array"}]}}`, `[` + strings.Repeat(`"x",`, 60_000) + `1]`,
			`/0: expected boolean or integer or array, got string "x"`},
		{"an error behind all that is looked at", `{"items":{"type":"integer"},"minItems":100000}`, `[` + strings.Repeat(`1,`, 100_000) + `"x"]`,
			`/100000: expected integer, got string "x"`},
		{"an error that depends on what is elsewhere", `{"anyOf":[{"properties":{"a":{"items":{"type":"integer"}}},"required":["b"]},{"maxProperties":1}]}`,
			`{"a":[` + strings.Repeat(`1,`, 60_000) + `"x"],"b":2}`, `/a/60000: expected integer, got string "x"`},
		{"a large list that is too long, beside a member that is missing", `{"properties":{"a":{"items":{"type":"integer"},"maxItems":10}},"required":["b","a"]}`, `{"a":[` + strings.Repeat(`1,`, 60_000) + `1]}`,
			"/a: expected at most 10 items, got array of 60001 items\n/b: required property \"b\" is missing"},
		{"a large list where none is expected", `{"properties":{"a":{"type":"integer"}},"items":{"type":"integer"}}`, `{"a":[` + strings.Repeat(`1,`, 60_000) + `1]}`,
			"/a: expected integer, got array of 60001 items"},
		{"a valid one in the second branch", `{"anyOf":[{"items":{"type":"string"}},{"items":{"type":"integer"},"minItems":100000}]}`, `[` + strings.Repeat(`1,`, 100_000) + `1]`, ""},
		{"names that are all wrong", `{"propertyNames":{"maxLength":1}}`, `{` + repeat(60_000, `"m%d":1`, ",") + `}`, `property name "m1`},
		{"lists of names that are all wrong", `{"items":{"propertyNames":{"maxLength":1}}}`, `[` + repeat(5_000, `{"m%d":1}`, ",") + `]`, `/0/m0: property name "m0" is not allowed`},
		{"a large valid document", `{"items":{"type":"object","properties":{"a":{"type":"integer"}}}}`, `[` + repeat(40_000, `{"a":%d}`, ",") + `]`, ""},
	}
	for _, test := range tests {
		for _, draft := range []validate.Draft{validate.Draft7, validate.Draft2020} {
			t.Run(test.name+"/"+draft.String(), func(t *testing.T) {
				doc, err := validate.Decode([]byte(test.doc))
				if err != nil {
					t.Fatal(err)
				}
				s := newSchema(t, test.schema, draft)
				var before runtime.MemStats
				runtime.ReadMemStats(&before)
				begin := time.Now()
				_, changed, violations, err := s.Check(doc, true)
				if err != nil || changed {
					t.Fatal(changed, err)
				}
				if got := strings.Join(lines(violations), "\n"); !strings.Contains(got, test.want) || (test.want == "") != (got == "") {
					t.Errorf("got %.300q, want %q", got, test.want)
				}
				if d := time.Since(begin); d > longest {
					t.Errorf("took %v", d)
				}
				var after runtime.MemStats
				runtime.ReadMemStats(&after)
				if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 700 { // most of it not at once
					t.Errorf("%d MB were used", used)
				}
			})
		}
	}
}

// colliding writes n arrays that all differ and that the 2020-12 engine hashes alike.
func colliding(n int) string {
	var items []string
	var forest func(nodes int, done func(string) bool) bool
	forest = func(nodes int, done func(string) bool) bool {
		if nodes == 0 {
			return done("")
		}
		for first := 1; first <= nodes; first++ {
			if !forest(first-1, func(inside string) bool {
				return forest(nodes-first, func(after string) bool {
					if after != "" {
						after = "," + after
					}
					return done("[" + inside + "]" + after)
				})
			}) {
				return false
			}
		}
		return true
	}
	forest(14, func(s string) bool {
		items = append(items, "["+s+"]")
		return len(items) < n
	})
	return "[" + strings.Join(items, ",") + "]"
}

// TestLateKeepsOthersOut: after a document that took too long, the next one is checked as ever.
func TestLateKeepsOthersOut(t *testing.T) {
	s := newSchema(t, `{"pattern":"^(?=a)(a+)+$"}`, validate.Draft7)
	for _, text := range []string{strings.Repeat("a", 40) + "b", "aaa"} {
		raw, _ := json.Marshal(text)
		violations, err := s.ValidateJSON(raw)
		if err != nil || (len(violations) == 0) != (text == "aaa") {
			t.Errorf("%q: %v, %v", text, violations, err)
		}
	}
}
