package scenario

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/schema"
	"toolctl.dev/toolctl/pkg/validate"
)

// Bounds of generated values.
const (
	generateTries = 200
	generateDepth = 8
	maxItems      = 50
	maxText       = 1000
)

// Generate returns a result that fits the tool's output schema. The same seed gives the same result. If every attempt
// fails, the error names the violated rules of the schema.
func Generate(tool *v1.Tool, seed int64) (json.RawMessage, error) {
	if len(tool.Spec.OutputSchema) == 0 {
		return nil, fmt.Errorf("tool %q has no output_schema to make a result from", tool.Metadata.Name)
	}
	root, err := validate.Decode(tool.Spec.OutputSchema)
	if err != nil {
		return nil, fmt.Errorf("tool %q: output_schema: %w", tool.Metadata.Name, err)
	}
	draft := validate.Draft2020
	if tool.FromPromptKit() {
		draft = validate.Draft7
	}
	checked := validate.NewCache(validate.Options{}).Schema(tool.Spec.OutputSchema, draft)
	name := fnv.New64a()
	name.Write([]byte(tool.Namespace() + "/" + tool.Metadata.Name))
	g := &generator{doc: schema.NewDocument(root), random: rand.New(rand.NewPCG(uint64(seed), name.Sum64()))}
	var violations []v1.Violation
	for range generateTries {
		g.doc.Again()
		value := g.value(root, 0)
		if violations, err = checked.Validate(value); err != nil {
			return nil, err
		}
		if len(violations) == 0 {
			return jsontext.Of(value), nil
		}
	}
	return nil, fmt.Errorf("tool %q: cannot generate a result that fits output_schema: %s; write one by hand", tool.Metadata.Name, violations[0])
}

// generator creates values that are likely to fit a schema. The caller validates them.
type generator struct {
	doc    *schema.Document
	random *rand.Rand
}

func (g *generator) value(node any, depth int) any {
	s := schema.Map(g.doc.Whole(node))
	if s == nil || depth > generateDepth {
		return nil
	}
	if v, ok := s["const"]; ok {
		return v
	}
	for _, key := range []string{"enum", "examples"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			return list[g.random.IntN(len(list))]
		}
	}
	if v, ok := s["default"]; ok {
		return v
	}
	for _, key := range []string{"anyOf", "oneOf"} {
		if list, ok := s[key].([]any); ok && len(list) > 0 {
			rest := maps.Clone(s)
			delete(rest, key)
			return g.value(map[string]any{"allOf": []any{rest, list[g.random.IntN(len(list))]}}, depth+1)
		}
	}
	switch g.kind(s) {
	case "object":
		return g.object(s, depth)
	case "array":
		return g.array(s, depth)
	case "string":
		return g.text(s)
	case "integer":
		return g.number(s, true)
	case "number":
		return g.number(s, false)
	case "boolean":
		return g.random.IntN(2) == 0
	}
	return nil
}

func (g *generator) kind(s map[string]any) string {
	types := schema.Types(schema.ObjectOf(s))
	names := slices.DeleteFunc(slices.Clone(types), func(t string) bool { return t == "null" })
	_, isList := s["type"].([]any)
	switch {
	case len(names) > 0 && isList:
		return names[g.random.IntN(len(names))]
	case len(names) > 0:
		return names[0]
	case len(types) > 0 || isList:
		return "null"
	}
	return "string"
}

// object returns an object with all properties. Deep objects lack the optional properties, so that a recursive schema
// ends.
func (g *generator) object(s map[string]any, depth int) any {
	out := map[string]any{}
	properties, _ := s["properties"].(map[string]any)
	required, _ := s["required"].([]any)
	for _, name := range sortedKeys(properties) {
		if depth < 4 || slices.Contains(required, any(name)) {
			out[name] = g.value(properties[name], depth+1)
		}
	}
	for _, item := range required {
		name, ok := item.(string)
		if _, has := out[name]; ok && !has {
			other, ok := s["additionalProperties"].(map[string]any)
			if !ok {
				other = map[string]any{"type": "string"}
			}
			out[name] = g.value(other, depth+1)
		}
	}
	return out
}

func (g *generator) array(s map[string]any, depth int) any {
	low, high := bound(s, "minItems", 0), bound(s, "maxItems", maxItems)
	n := 1 + g.random.IntN(3)
	if depth >= 4 {
		n = 0
	}
	n = min(max(n, int(low)), int(high), maxItems)
	out := make([]any, 0, n)
	prefix, _ := s["prefixItems"].([]any)
	for i := range max(n, len(prefix)) {
		if i < len(prefix) {
			out = append(out, g.value(prefix[i], depth+1))
			continue
		}
		item := s["items"]
		if item == nil {
			item = map[string]any{"type": "string"}
		}
		out = append(out, g.value(item, depth+1))
	}
	return out
}

func bound(s map[string]any, key string, otherwise float64) float64 {
	n, ok := s[key].(json.Number)
	if !ok {
		return otherwise
	}
	f, err := n.Float64()
	if err != nil {
		return otherwise
	}
	return f
}

func (g *generator) number(s map[string]any, whole bool) any {
	low, high := bound(s, "minimum", math.Inf(-1)), bound(s, "maximum", math.Inf(1))
	step := bound(s, "multipleOf", 0)
	unit := 0.5
	if whole {
		unit = 1
	}
	low = max(low, bound(s, "exclusiveMinimum", math.Inf(-1))+unit)
	high = min(high, bound(s, "exclusiveMaximum", math.Inf(1))-unit)
	switch {
	case math.IsInf(low, -1) && math.IsInf(high, 1):
		low, high = 0, 100
	case math.IsInf(low, -1):
		low = high - 100
	case math.IsInf(high, 1):
		high = low + 100
	}
	v := low + g.random.Float64()*(high-low)
	if step > 0 {
		v = math.Floor(v/step) * step
		if v < low {
			v += step
		}
	}
	if whole {
		return json.Number(fmt.Sprintf("%.0f", math.Floor(v)))
	}
	if step == 0 {
		if rounded := math.Round(v*100) / 100; rounded >= low && rounded <= high {
			v = rounded
		}
	}
	return json.Number(string(jsontext.Of(v)))
}
