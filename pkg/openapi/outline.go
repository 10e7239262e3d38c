package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strconv"

	"github.com/getkin/kin-openapi/openapi3"

	"toolctl.dev/toolctl/pkg/openapi/internal/doc"
	jsonschema "toolctl.dev/toolctl/pkg/schema"
)

// kin-openapi models the objects of OpenAPI. Its schema model would drop unknown fields and round
// large numbers, and a single unreadable operation would make the whole document unreadable.
// Therefore each operation is decoded alone, with its references followed, and with each schema and
// parameter replaced by a ticket that points to the original.

// ticket is the extension that holds the index of a place in outliner.places.
const ticket = "x-toolctl-place"

type place struct {
	at   doc.Location
	node any
}

// outliner copies the skeleton of operations.
type outliner struct {
	set    *doc.Set
	warn   func(doc.Location, string)
	places []place
	left   int // number of values that may still be copied
}

// maxOutline is the maximum number of values in all skeletons together. Shared parameters count at
// each use.
const maxOutline = 5_000_000

var errOutline = fmt.Errorf("the operations are larger than %d values when references are followed", maxOutline)

// A shape selects the fields that are copied from one kind of object.
type shape struct {
	keep  []string
	one   map[string]*shape // field -> object
	list  map[string]*shape // field -> list of objects
	named map[string]*shape // field -> object of objects
	// raw lists fields with schemas, which become tickets.
	raw []string
	// ticketed means that the object itself gets a ticket.
	ticketed bool
	// spare means that an object that cannot be copied is left out with a warning.
	spare bool
}

func operationShape() *shape {
	media := &shape{raw: []string{"schema"}}
	content := map[string]*shape{"content": media}
	parameter := &shape{
		keep:     []string{"name", "in", "description", "required", "deprecated", "style", "explode", "allowReserved"},
		raw:      []string{"schema"},
		named:    content,
		ticketed: true,
	}
	return &shape{
		keep:  []string{"tags", "summary", "description", "operationId", "deprecated", "security", "servers"},
		list:  map[string]*shape{"parameters": parameter},
		one:   map[string]*shape{"requestBody": {keep: []string{"description", "required"}, named: content}},
		named: map[string]*shape{"responses": {keep: []string{"description"}, named: content, spare: true}},
	}
}

func (o *outliner) copy(s *shape, at doc.Location, node any) (map[string]any, error) {
	at, m, err := o.follow(at, node)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if s.ticketed {
		out[ticket] = o.place(at, m)
	}
	for _, k := range s.keep {
		if v, ok := m[k]; ok && v != nil {
			if out[k], err = v, o.spend(v); err != nil {
				return nil, err
			}
		}
	}
	for _, k := range s.raw {
		if v, ok := m[k]; ok {
			out[k] = map[string]any{ticket: o.place(at.Child(k), v)}
		}
	}
	for k, sub := range s.one {
		if v, ok := m[k]; ok && v != nil {
			if out[k], err = o.copy(sub, at.Child(k), v); err != nil {
				return nil, err
			}
		}
	}
	for k, sub := range s.list {
		list, _ := m[k].([]any)
		if list == nil && m[k] != nil {
			return nil, fmt.Errorf("%s must be a list", k)
		}
		var copied []any
		for i, e := range list {
			c, err := o.copy(sub, at.Child(k, strconv.Itoa(i)), e)
			if err != nil {
				return nil, fmt.Errorf("%s[%d]: %w", k, i, err)
			}
			copied = append(copied, c)
		}
		out[k] = copied
	}
	for k, sub := range s.named {
		named, _ := m[k].(map[string]any)
		if named == nil && m[k] != nil {
			return nil, fmt.Errorf("%s must be an object", k)
		}
		copied := map[string]any{}
		for name, e := range named {
			if len(name) > 1 && name[:2] == "x-" {
				continue
			}
			c, err := o.copy(sub, at.Child(k, name), e)
			if err != nil && sub.spare {
				o.warn(at.Child(k, name), err.Error()+": left out")
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("%s[%q]: %w", k, name, err)
			}
			copied[name] = c
		}
		if named != nil {
			out[k] = copied
		}
	}
	return out, nil
}

func (o *outliner) place(at doc.Location, node any) int {
	o.places = append(o.places, place{at, node})
	return len(o.places) - 1
}

// follow follows Reference Objects (OpenAPI 3.1.1, section 4.8.23); their summary
// and description win over those of the target.
func (o *outliner) follow(at doc.Location, node any) (doc.Location, map[string]any, error) {
	var over map[string]any
	for range 32 {
		if o.left--; o.left < 0 {
			return at, nil, errOutline
		}
		m, ok := node.(map[string]any)
		if !ok {
			return at, nil, errors.New("expected an object")
		}
		ref, ok := jsonschema.Reference(m)
		if !ok {
			if over == nil {
				return at, m, nil
			}
			merged := make(map[string]any, len(m)+len(over))
			maps.Copy(merged, m)
			maps.Copy(merged, over)
			return at, merged, nil
		}
		for _, k := range []string{"summary", "description"} {
			if s, ok := m[k].(string); ok && over[k] == nil {
				if over == nil {
					over = map[string]any{}
				}
				over[k] = s
			}
		}
		var err error
		if at, node, err = o.set.Resolve(at, ref); err != nil {
			return at, nil, err
		}
	}
	return at, nil, errors.New("a chain of more than 32 references")
}

// spend counts the values of a tree that a skeleton copies.
func (o *outliner) spend(v any) error {
	if o.left--; o.left < 0 {
		return errOutline
	}
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			if err := o.spend(e); err != nil {
				return err
			}
		}
	case []any:
		for _, e := range v {
			if err := o.spend(e); err != nil {
				return err
			}
		}
	case string:
		o.left -= len(v) / 64 // shared text is written at each use
	}
	return nil
}

// decode decodes a skeleton with kin-openapi.
func decode[T any](skeleton any) (*T, error) {
	b, err := json.Marshal(skeleton)
	if err != nil {
		return nil, err
	}
	var out T
	if err := json.Unmarshal(b, &out); err != nil {
		return nil, err
	}
	return &out, nil
}

func (o *outliner) at(ext map[string]any) (place, bool) {
	n, ok := ext[ticket].(float64)
	if !ok || n < 0 || int(n) >= len(o.places) {
		return place{}, false
	}
	return o.places[int(n)], true
}

// schemaOf returns the raw schema behind a stub.
func (o *outliner) schemaOf(ref *openapi3.SchemaRef) (place, bool) {
	if ref == nil || ref.Value == nil {
		return place{}, false
	}
	return o.at(ref.Value.Extensions)
}
