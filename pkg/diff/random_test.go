package diff_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sort"
	"strconv"
	"testing"
	"time"

	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/validate"
)

// maker makes random schemas and documents over a small vocabulary, so that what one
// keyword says meets what another says.
type maker struct{ *rand.Rand }

func pick[T any](m maker, all ...T) T { return all[m.IntN(len(all))] }

func (m maker) schema(depth int) any {
	if m.IntN(12) == 0 {
		return m.IntN(4) > 0
	}
	s := map[string]any{}
	if depth > 0 && m.IntN(5) == 0 {
		switch m.IntN(6) {
		case 0:
			s["anyOf"] = m.list(depth)
		case 1:
			s["oneOf"] = m.list(depth)
		case 2:
			s["allOf"] = m.list(depth)
		case 3:
			s["not"] = m.schema(depth - 1)
		case 4:
			s["if"], s["then"] = m.schema(depth-1), m.schema(depth-1)
			if m.IntN(2) == 0 {
				s["else"] = m.schema(depth - 1)
			}
		case 5:
			s["$ref"] = "#/$defs/" + pick(m, "a", "b")
		}
	}
	switch m.IntN(7) {
	case 0:
		s["type"] = pick(m, "integer", "number")
		m.numbers(s)
	case 1:
		s["type"] = "string"
		m.texts(s)
	case 2, 3:
		s["type"] = "object"
		m.object(s, depth)
	case 4:
		s["type"] = "array"
		m.array(s, depth)
	case 5:
		s["enum"] = m.values(1 + m.IntN(3))
	case 6:
		s["type"] = []any{pick(m, "string", "null"), pick(m, "integer", "boolean", "object")}
		if s["type"].([]any)[1] == "object" {
			m.object(s, depth)
		}
		m.texts(s)
	}
	if m.IntN(15) == 0 {
		delete(s, "type")
	}
	return s
}

func (m maker) list(depth int) []any {
	all := make([]any, 1+m.IntN(3))
	for i := range all {
		all[i] = m.schema(depth - 1)
	}
	return all
}

func (m maker) values(n int) []any {
	all := make([]any, n)
	for i := range all {
		all[i] = pick[any](m, "a", "b", "x-1", "", 0, 1, 2, 1.5, true, nil, map[string]any{"a": 1}, []any{1})
	}
	return all
}

func (m maker) numbers(s map[string]any) {
	for _, key := range []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"} {
		if m.IntN(4) == 0 {
			s[key] = pick[any](m, -1, 0, 1, 2, 3, 0.5)
		}
	}
	if m.IntN(5) == 0 {
		s["multipleOf"] = pick[any](m, 1, 2, 3, 0.5)
	}
}

func (m maker) texts(s map[string]any) {
	if m.IntN(3) == 0 {
		s["minLength"] = m.IntN(3)
	}
	if m.IntN(3) == 0 {
		s["maxLength"] = m.IntN(4)
	}
	if m.IntN(4) == 0 {
		s["pattern"] = pick(m, "^[a-b]+$", "^a", "b", "^(a|b)$", `^x-\d+$`, "^$")
	}
}

func (m maker) object(s map[string]any, depth int) {
	props := map[string]any{}
	for _, name := range []string{"a", "b", "c"} {
		if depth > 0 && m.IntN(2) == 0 {
			props[name] = m.schema(depth - 1)
		}
	}
	if len(props) > 0 {
		s["properties"] = props
	}
	var required []any
	for _, name := range []string{"a", "b", "c"} {
		if m.IntN(4) == 0 {
			required = append(required, name)
		}
	}
	if required != nil {
		s["required"] = required
	}
	if m.IntN(3) == 0 {
		s["additionalProperties"] = m.IntN(3) == 0
		if depth > 0 && m.IntN(2) == 0 {
			s["additionalProperties"] = m.schema(depth - 1)
		}
	}
	for key, odds := range map[string]int{"minProperties": 8, "maxProperties": 6} {
		if m.IntN(odds) == 0 {
			s[key] = m.IntN(4)
		}
	}
	if depth > 0 && m.IntN(8) == 0 {
		s["patternProperties"] = map[string]any{pick(m, "^x-", "^[ab]$"): m.schema(depth - 1)}
	}
	if m.IntN(10) == 0 {
		s["propertyNames"] = map[string]any{"maxLength": m.IntN(3)}
	}
	if m.IntN(10) == 0 {
		s["dependentRequired"] = map[string]any{pick(m, "a", "b"): []any{pick(m, "b", "c")}}
	}
	if depth > 0 && m.IntN(12) == 0 {
		s["dependentSchemas"] = map[string]any{pick(m, "a", "b"): m.schema(depth - 1)}
	}
	if m.IntN(10) == 0 {
		s["unevaluatedProperties"] = false
	}
}

func (m maker) array(s map[string]any, depth int) {
	for _, key := range []string{"minItems", "maxItems"} {
		if m.IntN(4) == 0 {
			s[key] = m.IntN(4)
		}
	}
	if m.IntN(5) == 0 {
		s["uniqueItems"] = true
	}
	if depth == 0 {
		return
	}
	if m.IntN(2) == 0 {
		s["items"] = m.schema(depth - 1)
	}
	if m.IntN(4) == 0 {
		s["prefixItems"] = m.list(depth)
	}
	if m.IntN(5) == 0 {
		s["contains"] = m.schema(depth - 1)
		if m.IntN(3) == 0 {
			s["minContains"] = m.IntN(3)
		}
		if m.IntN(3) == 0 {
			s["maxContains"] = 1 + m.IntN(2)
		}
	}
}

// root makes a schema with definitions, which may lead to each other.
func (m maker) root() map[string]any {
	s, ok := m.schema(3).(map[string]any)
	for !ok {
		s, ok = m.schema(3).(map[string]any)
	}
	s["$defs"] = map[string]any{"a": m.schema(2), "b": map[string]any{"type": "object", "properties": map[string]any{"a": map[string]any{"$ref": "#/$defs/a"}}}}
	return s
}

// change changes one place of a schema.
func (m maker) change(schema any) any {
	var s any
	raw, _ := json.Marshal(schema)
	_ = json.Unmarshal(raw, &s)
	var places []map[string]any
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			places = append(places, v)
			keys := make([]string, 0, len(v))
			for key := range v {
				keys = append(keys, key)
			}
			sort.Strings(keys)
			for _, key := range keys {
				if key != "enum" {
					walk(v[key])
				}
			}
		case []any:
			for _, sub := range v {
				walk(sub)
			}
		}
	}
	walk(s)
	at := places[m.IntN(len(places))]
	switch m.IntN(3) {
	case 0:
		keys := make([]string, 0, len(at))
		for key := range at {
			keys = append(keys, key)
		}
		sort.Strings(keys)
		for _, key := range keys {
			if key != "$defs" && key != "a" && key != "b" && m.IntN(3) == 0 {
				delete(at, key)
				break
			}
		}
	case 1:
		m.texts(at)
		m.numbers(at)
	case 2:
		if more, ok := m.schema(1).(map[string]any); ok {
			for key, v := range more {
				if key != "$ref" {
					at[key] = v
				}
			}
		}
	}
	return s
}

func (m maker) document(depth int) any {
	switch n := m.IntN(9); {
	case n < 3 && depth > 0:
		doc := map[string]any{}
		for _, name := range []string{"a", "b", "c", "x-1", "dd", ""} {
			if m.IntN(3) == 0 {
				doc[name] = m.document(depth - 1)
			}
		}
		return doc
	case n < 5 && depth > 0:
		doc := make([]any, m.IntN(4))
		for i := range doc {
			doc[i] = m.document(depth - 1)
		}
		return doc
	}
	return pick[any](m, "a", "b", "ab", "x-1", "", "xxxx", json.Number("0"), json.Number("1"), json.Number("2"), json.Number("3"), json.Number("6"), json.Number("1.5"), json.Number("-1"), json.Number("0.25"), true, false, nil)
}

// Random pairs: what is called compatible has no counterexample, what is called breaking
// has a witness that a schema engine confirms.
func TestRandomPairs(t *testing.T) {
	pairs, documents := 300, 200
	if n, err := strconv.Atoi(os.Getenv("TOOLCTL_DIFF_PAIRS")); err == nil {
		pairs, documents = n, 2000
	}
	c, cache := diff.NewChecker(), validate.NewCache(validate.Options{})
	count := map[diff.Class]int{}
	var times []time.Duration
	for seed := range pairs {
		m := maker{rand.New(rand.NewPCG(uint64(seed), 7))}
		before := m.root()
		var after any = m.root()
		if m.IntN(10) > 0 {
			after = m.change(before)
		}
		rawOld, _ := json.Marshal(before)
		rawNew, _ := json.Marshal(after)
		old, fresh := cache.Schema(rawOld, validate.Draft2020), cache.Schema(rawNew, validate.Draft2020)
		if old.Compile() != nil || fresh.Compile() != nil {
			continue
		}
		began := time.Now()
		got, err := c.Schemas(rawOld, rawNew, diff.Input, validate.Draft2020)
		if err != nil {
			t.Fatal(err)
		}
		times = append(times, time.Since(began))
		count[got.Class]++
		switch got.Class {
		case diff.Compatible, diff.Neutral:
			for range documents {
				doc := m.document(3)
				if v, err := old.Validate(doc); err != nil || len(v) > 0 {
					continue
				}
				if v, err := fresh.Validate(doc); err == nil && len(v) > 0 {
					raw, _ := json.Marshal(doc)
					t.Fatalf("seed %d: %s, but %s stops working: %v\nold %s\nnew %s", seed, got.Class, raw, v, rawOld, rawNew)
				}
			}
		case diff.Unknown:
			if testing.Verbose() && count[diff.Unknown] < 15 {
				t.Logf("unknown, seed %d:\nold %s\nnew %s", seed, rawOld, rawNew)
			}
		default:
			doc, err := validate.Decode(got.Witness)
			if err != nil {
				t.Fatal(err)
			}
			if v, _ := old.Validate(doc); len(v) > 0 {
				t.Fatalf("seed %d: the witness %s was refused before", seed, got.Witness)
			}
		}
	}
	slices.Sort(times)
	t.Log(fmt.Sprint(count), "median", times[len(times)/2], "p99", times[len(times)*99/100], "most", times[len(times)-1])
}
