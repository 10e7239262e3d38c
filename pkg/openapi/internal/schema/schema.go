// Package schema converts the schemas of OpenAPI 3.0 and 3.1 to JSON Schema 2020-12. A referenced
// schema becomes a definition: its references read "#/$defs/Name", so recursive schemas stay
// recursive.
//
// It works on the raw tree and not on a typed model: no keyword is lost, and
// numbers keep every digit.
package schema

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"toolctl.dev/toolctl/pkg/openapi/internal/doc"
	jsonschema "toolctl.dev/toolctl/pkg/schema"
)

// Direction tells who writes the value that a schema describes.
type Direction int

// The directions.
const (
	// Request: the caller writes the value; readOnly properties are left out.
	Request Direction = iota + 1
	// Response: the server writes the value; writeOnly properties are not required.
	Response
)

// A Fragment is a converted schema. It is shared and never changed.
type Fragment struct {
	// Value is the schema: an object or a boolean.
	Value any
	// Refs are the names of the definitions to which Value refers directly, sorted.
	Refs []string
	// Size is the length of Value as JSON.
	Size int
	// Violations are references without a target. A schema with violations must not be used.
	Violations []string
}

// A Converter converts the schemas of one document. It is not safe for use by
// several goroutines.
type Converter struct {
	set   *doc.Set
	v30   bool
	words map[string]keyword
	warn  func(at doc.Location, message string)
	names map[string]doc.Location
	defs  map[defKey]*Fragment
	steps int
}

// maxSteps is the maximum number of schemas visited for one document. It is far above the largest
// public documents, and stops documents that are built to be expensive.
const maxSteps = 5_000_000

// step counts n schemas, and reports whether the limit allows them.
func (c *Converter) step(n int) bool {
	c.steps += n
	return c.steps <= maxSteps
}

type defKey struct {
	name string
	dir  Direction
}

// New returns a converter. v30 means that the document is OpenAPI 3.0, where keywords beside a
// reference are ignored. warn is called once for each place where a schema could not be kept as
// written.
func New(set *doc.Set, v30 bool, warn func(at doc.Location, message string)) *Converter {
	return &Converter{set: set, v30: v30, words: keywords(), warn: warn, names: map[string]doc.Location{}, defs: map[defKey]*Fragment{}}
}

// Convert converts the schema at a place.
func (c *Converter) Convert(at doc.Location, node any, dir Direction) *Fragment {
	w := &walk{c: c, dir: dir, refs: map[string]bool{}}
	f := &Fragment{Value: w.schema(at, node, nil)}
	f.Refs = slices.Sorted(maps.Keys(w.refs))
	f.Violations = w.violations
	f.Size = Size(f.Value)
	return f
}

// Size returns the length of a tree as JSON.
func Size(v any) int { return len(Encode(v)) }

// Def returns the definition of a name found in [Fragment.Refs].
func (c *Converter) Def(name string, dir Direction) *Fragment {
	key := defKey{name, dir}
	if f, ok := c.defs[key]; ok {
		return f
	}
	at := c.names[name]
	_, node, err := c.set.Resolve(doc.Location{File: at.File}, "#"+escapeFragment(at.Pointer))
	if err != nil { // the target existed when the name was made
		panic("schema: a definition vanished: " + err.Error())
	}
	f := c.Convert(at, node, dir)
	c.defs[key] = f
	return f
}

func escapeFragment(p string) string { return strings.ReplaceAll(p, "%", "%25") }

// Defs returns the definitions that the given names need, directly and indirectly. If they are
// larger than limit bytes, the most distant ones are replaced by a schema that accepts anything,
// and cut is their number.
func (c *Converter) Defs(names []string, dir Direction, limit int) (defs map[string]any, cut int, violations []string) {
	defs = map[string]any{}
	queue := slices.Clone(names)
	size := 0
	for len(queue) > 0 {
		name := queue[0]
		queue = queue[1:]
		if _, ok := defs[name]; ok {
			continue
		}
		f := c.Def(name, dir)
		if size += f.Size + len(name) + 4; size > limit {
			size -= f.Size
			defs[name] = map[string]any{"description": "Left out: the schema would be too large."}
			cut++
			continue
		}
		defs[name] = f.Value
		violations = append(violations, f.Violations...)
		queue = append(queue, f.Refs...)
	}
	return defs, cut, violations
}

const components = "/components/schemas/"

// name returns the name of the definition for a target. It depends only on the target, so it is the
// same in every import.
func (c *Converter) name(target doc.Location) string {
	last := target.Pointer[strings.LastIndexByte(target.Pointer, '/')+1:]
	if target.Pointer == "" {
		last = strings.TrimSuffix(path.Base(target.File.Name), path.Ext(target.File.Name))
	}
	name := legal(last)
	plain := target.File == c.set.Main && target.Pointer == components+name
	if !plain || name == "" {
		sum := sha256.Sum256([]byte(target.String()))
		name += "_" + hex.EncodeToString(sum[:4])
	}
	c.names[name] = target
	return name
}

func legal(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-', r == '.':
			return r
		}
		return '_'
	}, s)
	return s[:min(len(s), 100)]
}

// Follow follows the references at a place until it finds a schema that is not only a reference. In
// OpenAPI 3.1, a reference with sibling keywords is a schema of its own.
func (c *Converter) Follow(at doc.Location, node any) (doc.Location, any, error) {
	for range maxHops {
		m, ok := node.(map[string]any)
		if !ok {
			return at, node, nil
		}
		ref, ok := jsonschema.Reference(m)
		if !ok || !c.v30 && c.hasConstraint(m) {
			return at, node, nil
		}
		var err error
		if at, node, err = c.set.Resolve(at, ref); err != nil {
			return at, nil, err
		}
	}
	return at, nil, fmt.Errorf("a chain of more than %d references", maxHops)
}

const maxHops = 64

// apart are the constraints that are missing from the table of keywords.
var apart = map[string]bool{"required": true, "nullable": true, "exclusiveMinimum": true, "exclusiveMaximum": true, jsonschema.DynamicRef: true}

// hasConstraint reports whether a reference has a sibling keyword other than an annotation.
func (c *Converter) hasConstraint(m map[string]any) bool {
	for k := range m {
		if kw, known := c.words[k]; known && !kw.annotation || apart[k] {
			return true
		}
	}
	return false
}
