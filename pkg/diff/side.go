package diff

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/diff/internal/solve"
	"toolctl.dev/toolctl/pkg/schema"
	"toolctl.dev/toolctl/pkg/validate"
)

// side is one of the two compared schemas.
type side struct {
	raw     any
	draft   schema.Draft
	engines []*validate.Schema // the schema itself, and its translation for the other engine
	formats bool               // the schema has a format; the engines disagree about some formats
}

func (c *Checker) side(raw json.RawMessage, draft validate.Draft) (*side, error) {
	engine := c.cache.Schema(raw, draft)
	if err := engine.Compile(); err != nil {
		return nil, err
	}
	doc, err := validate.Decode(raw)
	if err != nil {
		return nil, err
	}
	s := &side{raw: doc, draft: draft, engines: []*validate.Schema{engine}, formats: strings.Contains(string(raw), `"format"`)}
	if m, ok := doc.(map[string]any); ok {
		name, _ := m["$schema"].(string)
		if d, ok := schema.DraftOf(name); ok {
			s.draft = d
		}
	}
	other, draft := translated(doc, s.draft)
	if other == nil {
		return s, nil
	}
	if second := c.cache.Schema(encode(other), draft); second.Compile() == nil {
		s.engines = append(s.engines, second)
	}
	return s, nil
}

// read returns the schema in the solver's form, for a single search.
func (s *side) read() *solve.Schema { return solve.Read(s.raw, s.draft) }

// translated converts a schema to a draft of the other engine. It returns nil if no equivalent
// exists.
func translated(doc any, from schema.Draft) (any, schema.Draft) {
	t := translator{old: from > schema.Draft7}
	out := t.schema(doc)
	if t.lost {
		return nil, 0
	}
	if m, ok := out.(map[string]any); ok {
		delete(m, "$schema")
	}
	if t.old {
		return out, schema.Draft7
	}
	return out, schema.Draft2020
}

type translator struct {
	old  bool // converts to draft-07
	lost bool
}

// untranslatable are keywords without an equivalent in the other draft, or whose meaning
// depends on more than the schema.
var untranslatable = []string{"unevaluatedProperties", "unevaluatedItems", "minContains", "maxContains", "$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$id", "id"}

func (t *translator) schema(doc any) any {
	m, ok := doc.(map[string]any)
	if !ok {
		return doc
	}
	for _, key := range untranslatable {
		if _, ok := m[key]; ok {
			t.lost = true
		}
	}
	ref, _ := schema.Reference(m)
	if strings.Contains(ref, "tems") || strings.Contains(ref, "depend") || m["exclusiveMinimum"] == true || m["exclusiveMaximum"] == true {
		t.lost = true // the other draft has a different place or form for it
	}
	out := schema.Replaced(m, "", 0, func(s schema.Subschema) any { return t.schema(s.Schema) })
	if t.old {
		t.older(out)
	} else {
		newer(out)
	}
	return out
}

// older converts the keywords of 2020-12 to those of draft-07.
func (t *translator) older(m map[string]any) {
	delete(m, "additionalItems")
	delete(m, "dependencies")
	if prefix, ok := m["prefixItems"]; ok {
		if rest, ok := m["items"]; ok {
			m["additionalItems"] = rest
		}
		m["items"] = prefix
		delete(m, "prefixItems")
	}
	needs := map[string]any{}
	for _, key := range []string{"dependentRequired", "dependentSchemas"} {
		more, _ := m[key].(map[string]any)
		for name, v := range more {
			if _, twice := needs[name]; twice {
				t.lost = true
			}
			needs[name] = v
		}
		delete(m, key)
	}
	if len(needs) > 0 {
		m["dependencies"] = needs
	}
	if ref, ok := m[schema.Ref]; ok && len(m) > 1 { // draft-07 ignores its siblings
		rest := maps.Clone(m)
		delete(rest, schema.Ref)
		defs := map[string]any{}
		for _, key := range []string{"$defs", "definitions", "$schema"} {
			if v, ok := rest[key]; ok {
				defs[key] = v
				delete(rest, key)
			}
		}
		clear(m)
		maps.Copy(m, defs)
		m["allOf"] = []any{map[string]any{schema.Ref: ref}, rest}
	}
}

// newer converts the keywords of draft-07 and older to those of 2020-12.
func newer(m map[string]any) {
	if ref, ok := m[schema.Ref]; ok {
		for key := range m {
			if key != "$defs" && key != "definitions" {
				delete(m, key)
			}
		}
		m[schema.Ref] = ref
		return
	}
	for _, key := range []string{"prefixItems", "dependentRequired", "dependentSchemas"} {
		delete(m, key)
	}
	if list, ok := m["items"].([]any); ok {
		delete(m, "items")
		m["prefixItems"] = list
		if rest, ok := m["additionalItems"]; ok {
			m["items"] = rest
		}
	}
	delete(m, "additionalItems")
	needs, _ := m["dependencies"].(map[string]any)
	required, schemas := map[string]any{}, map[string]any{}
	for name, v := range needs {
		if _, list := v.([]any); list {
			required[name] = v
		} else {
			schemas[name] = v
		}
	}
	delete(m, "dependencies")
	if len(required) > 0 {
		m["dependentRequired"] = required
	}
	if len(schemas) > 0 {
		m["dependentSchemas"] = schemas
	}
}

// formats decides with the schema engine whether a text has a format.
type formats struct {
	cache   *validate.Cache
	mu      sync.Mutex
	schemas map[string]*format
}

type format struct {
	schema *validate.Schema
	known  bool // the engine checks the format: it refuses some text
}

func (f *formats) has(name, text string) (has, known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one, ok := f.schemas[name]
	if !ok {
		if len(f.schemas) > 1000 {
			clear(f.schemas)
		}
		one = &format{schema: f.cache.Schema(encode(map[string]any{"type": "string", "format": name}), schema.Draft2020)}
		one.known = !one.takes("\x00 <not> a {format") || !one.takes("") || !one.takes("x(")
		f.schemas[name] = one
	}
	return !one.known || one.takes(text), one.known
}

func (f *format) takes(text string) bool {
	violations, err := f.schema.Validate(text)
	return err == nil && len(violations) == 0
}

// changes lists the JSON pointers at which two documents differ, as deep as possible.
func changes(at string, a, b any) []string {
	ma, oka := a.(map[string]any)
	mb, okb := b.(map[string]any)
	if !oka || !okb {
		if string(encode(a)) == string(encode(b)) {
			return nil
		}
		return []string{at}
	}
	keys := slices.Collect(maps.Keys(ma))
	for key := range mb {
		if _, ok := ma[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var all []string
	for _, key := range keys {
		va, ina := ma[key]
		vb, inb := mb[key]
		next := v1.Pointer(at, key)
		if ina != inb {
			all = append(all, next)
		} else {
			all = append(all, changes(next, va, vb)...)
		}
	}
	return all
}

// pointerOf returns the change that a violation is about.
func pointerOf(changed []string, v v1.Violation) string {
	if strings.HasPrefix(v.Message, "required property ") {
		// The change is in "required" of the object, not in the missing property.
		var required []string
		for _, at := range changed {
			if strings.HasSuffix(at, "/required") {
				required = append(required, at)
			}
		}
		if len(required) > 0 {
			return nearest(required, v.Path[:strings.LastIndexByte(v.Path, '/')])
		}
	}
	return nearest(changed, v.Path)
}

// nearest returns the change in the schema that is nearest to a path in a document.
func nearest(changed []string, path string) string {
	best, score := changed[0], -1
	var want []string
	if path != "" {
		want = strings.Split(path, "/")[1:]
	}
	for _, at := range changed {
		keys := strings.Split(at, "/")[1:]
		n, i := 0, 0
		for ; i < len(keys); i++ {
			if keys[i] == "properties" && i+1 < len(keys) && n < len(want) && keys[i+1] == want[n] {
				n++
				i++
			}
		}
		if n > score {
			best, score = at, n
		}
	}
	return best
}
