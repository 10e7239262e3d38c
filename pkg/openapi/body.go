package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"mime"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"toolctl.dev/toolctl/pkg/openapi/internal/doc"
	"toolctl.dev/toolctl/pkg/openapi/internal/schema"
	jsonschema "toolctl.dev/toolctl/pkg/schema"
)

// jsonMedia returns the media type of JSON content: application/json if present, else a type that ends in +json
// (RFC 6839), else a wildcard type.
func jsonMedia(content openapi3.Content) (string, *openapi3.MediaType) {
	best, rank := "", 0
	for _, name := range slices.Sorted(maps.Keys(content)) {
		base, params, err := mime.ParseMediaType(name)
		if err != nil {
			base = strings.ToLower(strings.TrimSpace(name))
		}
		r := 0
		switch {
		case base == "application/json" && len(params) == 0:
			r = 4
		case base == "application/json":
			r = 3
		case strings.HasSuffix(base, "+json"):
			r = 2
		case base == "*/*" || base == "application/*":
			r = 1
		}
		if r > rank {
			best, rank = name, r
		}
	}
	if rank == 0 {
		return "", nil
	}
	return best, content[best]
}

// mediaHeader returns the media type as a header value, or "" for a wildcard.
func mediaHeader(name string) string {
	notPlain := func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune("*${}", r) }
	if strings.ContainsFunc(name, notPlain) {
		return ""
	}
	return name
}

// body adds the request body to the tool. skip is the reason why no tool can be made.
func (b *builder) body(ref *openapi3.RequestBodyRef) (skip string) {
	if ref == nil || ref.Value == nil || len(ref.Value.Content) == 0 {
		return ""
	}
	body := ref.Value
	name, media := jsonMedia(body.Content)
	if media == nil {
		if b.emptyForms(body.Content) {
			return ""
		}
		return "its request body is " + strings.Join(slices.Sorted(maps.Keys(body.Content)), " or ") + ": only JSON bodies can be sent"
	}
	place, ok := b.doc.outline.schemaOf(media.Schema)
	if ok && b.isEmpty(place) {
		if body.Required && b.method != "GET" && b.method != "HEAD" {
			b.mapping = "@" // sends {}, which a tool without a body mapping would not send
		}
		return ""
	}
	if b.method == "GET" || b.method == "HEAD" {
		if body.Required {
			return "its " + b.method + " request needs a body, and such a request has none"
		}
		b.note("the optional body of a " + b.method + " request is left out")
		return ""
	}
	if h := mediaHeader(name); h != "" && h != "application/json" {
		b.headers["Content-Type"] = h
	}
	if !ok {
		place.node = true // any JSON value
	}
	if parts, ok := b.flatten(place); ok {
		b.flatBody(parts, body.Required)
		if b.method == "DELETE" && b.mapping == "" {
			b.mapping = "@" // a DELETE request has a body only with a mapping
		}
		return ""
	}
	f := b.doc.schemas.Convert(place.at, place.node, schema.Request)
	arg := &argument{source: "body", in: "body", order: afterParameters, required: true, schema: describe(b.use(f), body.Description)}
	b.args.add(arg)
	b.mapping = arg.name
	if !body.Required && b.isObject(place) {
		// A mapping with a null result sends no body. not_null sends {} instead.
		arg.required, b.mapping = false, "not_null("+arg.name+", `{}`)"
	} else if !body.Required {
		b.note("the body is optional in the document but required here, because this body cannot be omitted")
	}
	return ""
}

// isObject reports whether a schema describes objects.
func (b *builder) isObject(p place) bool {
	_, node, err := b.doc.schemas.Follow(p.at, p.node)
	m, ok := node.(map[string]any)
	return err == nil && ok && (m["type"] == "object" || m["type"] == nil && m["properties"] != nil)
}

func describe(s any, text string) any {
	m, ok := s.(map[string]any)
	if !ok || text == "" || m["description"] != nil {
		return s
	}
	m = maps.Clone(m)
	m["description"] = text
	return m
}

// emptyForms reports whether the content of other media types consists of forms without fields.
func (b *builder) emptyForms(content openapi3.Content) bool {
	for _, media := range content {
		if media == nil {
			continue
		}
		place, ok := b.doc.outline.schemaOf(media.Schema)
		if !ok || !b.isEmpty(place) {
			return false
		}
	}
	return true
}

// isEmpty reports whether a schema describes an object without properties.
func (b *builder) isEmpty(p place) bool {
	_, node, err := b.doc.schemas.Follow(p.at, p.node)
	m, ok := node.(map[string]any)
	if err != nil || !ok || m["type"] != "object" {
		return false
	}
	props, has := m["properties"].(map[string]any)
	for k := range m {
		switch k {
		case "type", "properties", "title", "description", "additionalProperties", "required":
		default:
			if !strings.HasPrefix(k, "x-") {
				return false
			}
		}
	}
	extra, closed := m["additionalProperties"]
	return len(props) == 0 && (has && !closed || closed && extra == false)
}

// A part is one of the object schemas that make up a body.
type part struct {
	at    doc.Location
	props map[string]any // unconverted
	need  []string
	extra any // unconverted additionalProperties; nil if absent
}

// flattened lists the keywords of a schema whose properties become separate arguments. Any other keyword is a
// rule for the whole object.
var flattened = map[string]bool{
	"type": true, "properties": true, "required": true, "additionalProperties": true, "allOf": true, jsonschema.Ref: true,
	"title": true, "description": true, "example": true, "examples": true, "default": true, "nullable": true, "deprecated": true,
	"discriminator": true, "externalDocs": true, "xml": true, "readOnly": true, "writeOnly": true,
	"$comment": true, "$schema": true, "$id": true, "$anchor": true, "$defs": true, "definitions": true,
}

// flatten returns the parts of a body whose properties can be arguments beside the parameters. ok is false for
// all other bodies, which become the single argument "body": arrays, scalars, choices (oneOf, anyOf), maps, and
// objects with rules about the whole object. Model providers refuse choices at the root of a schema, and a closed
// part would refuse the parameters beside it.
func (b *builder) flatten(p place) (parts []part, ok bool) {
	if !b.collect(p, &parts, map[doc.Location]bool{}) {
		return nil, false
	}
	count, extras := 0, 0
	for _, part := range parts {
		for name, prop := range part.props {
			if !b.doc.schemas.Absent(part.at.Child("properties", name), prop, schema.Request) {
				count++
			}
		}
		if part.extra != nil && part.extra != true {
			extras++
		}
	}
	return parts, count > 0 && (extras == 0 || len(parts) == 1)
}

const maxParts = 100

func (b *builder) collect(p place, parts *[]part, seen map[doc.Location]bool) bool {
	at, node, err := b.doc.schemas.Follow(p.at, p.node)
	m, ok := node.(map[string]any)
	if err != nil || !ok || seen[at] || len(*parts) >= maxParts {
		return false
	}
	seen[at] = true
	for k := range m {
		if !flattened[k] && !strings.HasPrefix(k, "x-") {
			return false
		}
	}
	if ref, ok := jsonschema.Reference(m); ok { // a reference with sibling keywords
		target, node, err := b.doc.set.Resolve(at, ref)
		if err != nil || !b.collect(place{target, node}, parts, seen) {
			return false
		}
	}
	switch t := m["type"].(type) {
	case nil:
	case string:
		ok = t == "object"
	case []any:
		ok = slices.Contains(t, any("object")) && !slices.ContainsFunc(t, func(e any) bool { return e != "object" && e != "null" })
	default:
		ok = false
	}
	props, isMap := m["properties"].(map[string]any)
	need, good := textList(m["required"])
	if !ok || !good || m["properties"] != nil && !isMap {
		return false
	}
	all, isList := m["allOf"].([]any)
	if m["allOf"] != nil && !isList || m["type"] == nil && props == nil && len(all) == 0 && m[jsonschema.Ref] == nil && len(need) == 0 {
		return false
	}
	if props != nil || need != nil || m["additionalProperties"] != nil {
		*parts = append(*parts, part{at, props, need, m["additionalProperties"]})
	}
	for i, e := range all {
		if !b.collect(place{at.Child("allOf", strconv.Itoa(i)), e}, parts, seen) {
			return false
		}
	}
	return true
}

func textList(v any) ([]string, bool) {
	if v == nil {
		return nil, true
	}
	l, ok := v.([]any)
	out := make([]string, 0, len(l))
	for _, e := range l {
		s, isText := e.(string)
		ok = ok && isText
		out = append(out, s)
	}
	return out, ok
}

// afterParameters is greater than the position of any parameter.
const afterParameters = 1 << 30

// flatBody adds the properties of the body as arguments.
func (b *builder) flatBody(parts []part, bodyRequired bool) {
	props := map[string][]any{}
	absent := map[string]bool{}
	needed := map[string]bool{}
	for _, part := range parts {
		for name, prop := range part.props {
			at := part.at.Child("properties", name)
			if b.doc.schemas.Absent(at, prop, schema.Request) {
				absent[name] = true
			}
		}
		for _, n := range part.need {
			needed[n] = true
		}
	}
	for _, part := range parts {
		for _, name := range slices.Sorted(maps.Keys(part.props)) {
			if !absent[name] {
				f := b.doc.schemas.Convert(part.at.Child("properties", name), part.props[name], schema.Request)
				props[name] = append(props[name], b.use(f))
			}
		}
	}
	b.open = true
	if len(parts) == 1 && parts[0].extra != nil && parts[0].extra != true {
		f := b.doc.schemas.Convert(parts[0].at.Child("additionalProperties"), parts[0].extra, schema.Request)
		b.additional = b.use(f)
	}
	for n := range needed {
		if props[n] == nil && !absent[n] {
			props[n] = []any{map[string]any{}} // required but not described
		}
	}
	order := map[string]int{}
	for _, part := range parts {
		for _, name := range part.at.File.Names(part.props) {
			if order[name] == 0 {
				order[name] = afterParameters + len(order)
			}
		}
	}
	renamed := false
	for _, name := range slices.Sorted(maps.Keys(props)) { // sorted, so that name clashes are resolved the same way in each import
		s := props[name][0]
		if len(props[name]) > 1 {
			s = map[string]any{"allOf": props[name]}
		}
		arg := &argument{source: name, in: "body", order: cmp.Or(order[name], math.MaxInt), required: bodyRequired && needed[name], schema: s}
		b.args.add(arg)
		renamed = renamed || arg.name != arg.source
	}
	if !bodyRequired {
		b.requireTogether(needed)
	}
	if renamed {
		b.mapping = mapBody(b.args.from("body"))
		if b.additional != false {
			b.note("properties of the body that the document does not name are not sent, because others are renamed")
		}
	}
}

// requireTogether keeps the rule of an optional body: it may be omitted, but if any of its properties is given,
// its required properties must be given too.
func (b *builder) requireTogether(needed map[string]bool) {
	args := b.args.from("body")
	var need []any
	for _, a := range args { // already sorted by name
		if needed[a.source] {
			need = append(need, a.name)
		}
	}
	b.dependent = map[string]any{}
	for _, a := range args {
		rest := slices.DeleteFunc(slices.Clone(need), func(n any) bool { return n == a.name })
		if len(rest) > 0 {
			b.dependent[a.name] = rest
		}
	}
}

// mapBody returns the JMESPath expression that restores the names of renamed properties. Absent arguments stay
// absent and are not sent as null.
func mapBody(args []*argument) string {
	pieces := make([]string, len(args))
	for i, a := range args {
		name, source := identifier(a.name), identifier(a.source)
		pieces[i] = fmt.Sprintf("%s != `null` && {%s: %s} || `{}`", name, source, name)
	}
	return "merge(" + strings.Join(pieces, ", ") + ")"
}

// identifier returns a quoted JMESPath identifier, which is a JSON string.
func identifier(s string) string {
	b, _ := json.Marshal(s) // a string can always be marshaled
	return string(b)
}
