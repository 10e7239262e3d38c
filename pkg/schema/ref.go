package schema

import (
	"net/url"
	"strings"
)

// The keywords of references. The target of a dynamic reference depends on the schemas around it.
const (
	Ref          = "$ref"
	DynamicRef   = "$dynamicRef"   // draft 2020-12
	RecursiveRef = "$recursiveRef" // draft 2019-09
)

// Reference returns the reference of a schema.
func Reference(schema any) (ref string, ok bool) {
	if o := ObjectOf(schema); o != nil {
		v, _ := o.Get(Ref)
		ref, ok = v.(string)
	}
	return ref, ok
}

// maxSteps is the maximum number of schemas that one [Document] visits, and maxHops the maximum length of a chain
// of references.
const (
	maxSteps = 20_000
	maxHops  = 32
)

// A Document is a decoded document whose references are followed. References may form many cycles, so one Document
// visits a limited number of schemas and finds nothing after that.
type Document struct {
	Root any
	left int
}

// NewDocument returns a document.
func NewDocument(root any) *Document { return &Document{root, maxSteps} }

// Again resets the number of visited schemas.
func (d *Document) Again() { d.left = maxSteps }

// Resolve returns the part of a document that a reference names, and its JSON Pointer: "#" followed by a JSON
// Pointer, which may be percent-encoded (RFC 6901, section 6), "#" followed by an anchor, or the id of a schema in
// the document. It does not follow a reference at that place.
func (d *Document) Resolve(ref string) (part any, pointer string, ok bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	if text, err := url.PathUnescape(fragment); err == nil {
		fragment = text
	}
	if local && (fragment == "" || fragment[0] == '/') {
		part, _, ok = At(d.Root, fragment)
		return part, fragment, ok
	}
	if !local {
		fragment = ""
	}
	return d.find(d.Root, "", fragment, ref)
}

// find returns the schema with an anchor or, if anchor is empty, with an id.
func (d *Document) find(schema any, at, anchor, id string) (part any, pointer string, ok bool) {
	o := ObjectOf(schema)
	if d.left--; o == nil || d.left < 0 {
		return nil, "", false
	}
	own, _ := o.Get("$id")
	if anchor == "" && own == id {
		return schema, at, true
	}
	if anchor != "" {
		for _, keyword := range []string{"$anchor", "$dynamicAnchor"} {
			if name, _ := o.Get(keyword); name == anchor {
				return schema, at, true
			}
		}
		if own == "#"+anchor { // up to draft-07
			return schema, at, true
		}
		if name, _ := own.(string); at != "" && name != "" && name[0] != '#' {
			return nil, "", false // anchors inside belong to another id
		}
	}
	for _, sub := range Subschemas(schema, at, 0) {
		if part, pointer, ok = d.find(sub.Schema, sub.Pointer, anchor, id); ok {
			return part, pointer, true
		}
	}
	return nil, "", false
}

// Target returns the target of a schema's reference. ok is false for a schema without a reference, and for a
// reference without a target.
func (d *Document) Target(schema any) (target any, ok bool) {
	if ref, has := Reference(schema); has {
		target, _, ok = d.Resolve(ref)
	}
	return target, ok
}

// Whole returns a schema as one object: it follows references, and joins their targets with the sibling keywords
// and the schemas of allOf. It returns nil if the schema is not an object.
func (d *Document) Whole(schema any) Object { return d.whole(schema, maxHops) }

func (d *Document) whole(schema any, hops int) Object {
	o := ObjectOf(schema)
	if o == nil || hops == 0 {
		return o
	}
	if d.left--; d.left < 0 {
		return nil
	}
	if target, ok := d.Target(schema); ok {
		if base := d.whole(target, hops-1); base != nil {
			rest := o.Clone()
			rest.Drop(Ref)
			o = Join(base, rest)
		}
	}
	list, _ := o.Get("allOf")
	if all, ok := list.([]any); ok {
		rest := o.Clone()
		rest.Drop("allOf")
		for i := len(all) - 1; i >= 0; i-- {
			if part := d.whole(all[i], hops-1); part != nil {
				rest = Join(part, rest)
			}
		}
		o = rest
	}
	return o
}
