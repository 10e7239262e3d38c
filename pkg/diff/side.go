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
	raw    any
	draft  schema.Draft
	engine *validate.Schema
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
	s := &side{raw: doc, draft: draft, engine: engine}
	if m, ok := doc.(map[string]any); ok {
		name, _ := m["$schema"].(string)
		if d, ok := schema.DraftOf(name); ok {
			s.draft = d
		}
	}
	return s, nil
}

// read returns the schema in the solver's form, for a single search.
func (s *side) read() *solve.Schema { return solve.Read(s.raw, s.draft) }

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
