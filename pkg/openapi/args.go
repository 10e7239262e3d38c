package openapi

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/openapi/internal/schema"
)

// An argument is one property of a tool's input schema.
type argument struct {
	name     string // name of the argument
	source   string // name of the parameter or body property
	in       string // path, query, header or body
	order    int    // position among the parameters; body properties come after them
	required bool
	schema   any
	fallback string // default of an optional header, as a Go template string
	list     bool   // path or header parameter: items are joined by commas
	style    string // query parameter: a value of query_styles
}

// template renders the argument in the URL or in a header.
func (a *argument) template() string {
	switch {
	case a.fallback != "":
		return "{{default " + a.fallback + " ." + a.name + "}}"
	case a.list:
		return `{{join "," .` + a.name + "}}"
	}
	return "{{." + a.name + "}}"
}

// arguments gives every parameter and body property a unique name. A query parameter keeps its name, because the
// request uses it. A body property keeps its name unless a query parameter has the same one. Names of path and
// header parameters may change, because only templates use them.
type arguments struct {
	list  []*argument
	taken map[string]*argument
	note  func(string)
}

func (a *arguments) add(arg *argument) {
	name := arg.source
	if arg.in == "path" || arg.in == "header" {
		name = fieldName(name)
	}
	if other := a.taken[name]; other != nil {
		was := name
		name = arg.in + "_" + name
		for a.taken[name] != nil {
			name += "_"
		}
		a.note(arg.in + " " + quote(arg.source) + " is the argument " + quote(name) + ", because the " + other.in + " has " + quote(was) + " too")
	}
	arg.name = name
	a.taken[name] = arg
	a.list = append(a.list, arg)
}

// from returns the arguments of one location, in document order.
func (a *arguments) from(in string) []*argument {
	var out []*argument
	for _, arg := range a.list {
		if arg.in == in {
			out = append(out, arg)
		}
	}
	return out
}

// by finds the argument of a parameter.
func (a *arguments) by(in, source string) *argument {
	for _, arg := range a.list {
		if arg.in == in && arg.source == source {
			return arg
		}
	}
	return nil
}

// wireName matches the property names that model providers accept.
var wireName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`) })

// mergeParameters joins the parameters of a path and of an operation; those of the operation win (OpenAPI 3.1.1,
// section 4.8.9).
func mergeParameters(path, own openapi3.Parameters) []*openapi3.Parameter {
	var out []*openapi3.Parameter
	at := map[[2]string]int{}
	for _, list := range []openapi3.Parameters{path, own} {
		for _, ref := range list {
			if ref == nil || ref.Value == nil {
				continue
			}
			p := ref.Value
			key := [2]string{p.In, p.Name}
			if i, ok := at[key]; ok {
				out[i] = p
				continue
			}
			at[key] = len(out)
			out = append(out, p)
		}
	}
	return out
}

// parameter adds one parameter to the tool. order is its position in the document's list.
func (b *builder) parameter(p *openapi3.Parameter, order int) {
	what := p.In + " parameter " + quote(p.Name)
	switch p.In {
	case "path":
		if !slices.Contains(b.pathParams, p.Name) {
			b.note(what + " is not in the path: left out")
			return
		}
	case "query":
		if !wireName().MatchString(p.Name) {
			b.note(what + ": some model providers refuse a property of that name")
		}
	case "header":
		if slices.Contains([]string{"accept", "content-type", "authorization"}, strings.ToLower(p.Name)) {
			return // such a parameter is ignored (OpenAPI 3.1.1, section 4.8.12.1)
		}
		if !isToken(p.Name) {
			b.note(what + " is not the name of a header that can be set: left out")
			return
		}
		if v1.IsTransportHeader(p.Name) {
			b.note(what + " is left out: toolctl sets it itself")
			return
		}
	case "cookie":
		b.note(what + " is left out: cookies are not sent")
		if p.Required {
			b.note("the tool cannot work without the " + what)
		}
		return
	default:
		b.note(what + " has an unknown location: left out")
		return
	}
	arg := &argument{source: p.Name, in: p.In, order: order, required: p.Required || p.In == "path"}
	place, ok := b.doc.outline.schemaOf(p.Schema)
	arg.schema = map[string]any{}
	if len(p.Content) > 0 {
		arg.schema = b.contentParameter(p.Content)
	} else if ok {
		arg.schema = b.use(b.doc.schemas.Convert(place.at, place.node, schema.Request))
		b.style(p, what, arg, place)
	}
	if p.In == "header" && !p.Required {
		arg.fallback = b.headerDefault(p)
		b.omitEmpty = b.omitEmpty || arg.fallback == ""
	}
	raw, _ := b.doc.outline.at(p.Extensions)
	arg.schema = annotate(arg.schema, p, raw.node)
	b.args.add(arg)
}

// headerDefault returns the default of a header parameter as a Go template string, or "" if there is no default or
// a template cannot contain it.
func (b *builder) headerDefault(p *openapi3.Parameter) string {
	place, ok := b.doc.outline.schemaOf(p.Schema)
	if !ok {
		return ""
	}
	_, node, err := b.doc.schemas.Follow(place.at, place.node)
	m, _ := node.(map[string]any)
	if err != nil || m["default"] == nil {
		return ""
	}
	value := text(m["default"])
	if flag, ok := m["default"].(bool); ok {
		value = strconv.FormatBool(flag)
	}
	// Text from the document must not look like a template action or a variable.
	odd := func(r rune) bool { return r < ' ' || r > '~' || strings.ContainsRune("${}`\"\\", r) }
	if value == "" || strings.ContainsFunc(value, odd) {
		return ""
	}
	return strconv.Quote(value)
}

// contentParameter returns the schema of a parameter whose value is a document in a media type: a text that
// contains the document.
func (b *builder) contentParameter(content openapi3.Content) any {
	name, media := jsonMedia(content)
	if media == nil {
		name = slices.Sorted(maps.Keys(content))[0]
		return map[string]any{"type": "string", "contentMediaType": name}
	}
	s := map[string]any{"type": "string", "contentMediaType": name}
	if place, ok := b.doc.outline.schemaOf(media.Schema); ok {
		s["contentSchema"] = b.use(b.doc.schemas.Convert(place.at, place.node, schema.Request))
	}
	return s
}

// style selects how the request encodes an array or an object (OpenAPI 3.1.1, section 4.8.12.4), and adds a note if
// it cannot follow the document's style.
func (b *builder) style(p *openapi3.Parameter, what string, arg *argument, at place) {
	list, object := b.mayBe(at, "array"), b.mayBe(at, "object")
	explode := p.Explode == nil && (p.Style == "" || p.Style == "form") || p.Explode != nil && *p.Explode
	written := true
	switch {
	case !list && !object:
	case p.In != "query":
		// Only values that are always arrays are joined, because a template cannot determine the type of a value.
		arg.list = list && !object && !b.mayBe(at, "string") && p.Style != "label" && p.Style != "matrix"
		written = arg.list
	case p.Style == "deepObject":
		arg.style = v1.StyleDeepObject
		written = !list
	case p.Style == "" || p.Style == "form":
		if !explode {
			arg.style = v1.StyleComma
		} else if object {
			arg.style = v1.StyleMembers
		}
	case p.Style == "spaceDelimited" && !explode:
		arg.style = v1.StyleSpace
	case p.Style == "pipeDelimited" && !explode:
		arg.style = v1.StylePipe
	default: // with explode, each style sends one parameter per item
		written = !object
	}
	if !written {
		b.note(what + " has a form (style " + cmp.Or(p.Style, "default") + ") that the request may not be able to write: check spec.http")
	}
}

// mayBe reports whether a schema names a type at its root or in one of its choices.
func (b *builder) mayBe(p place, typ string) bool { return b.hasType(p, typ, 0) }

func (b *builder) hasType(p place, typ string, depth int) bool {
	at, node, err := b.doc.schemas.Follow(p.at, p.node)
	m, ok := node.(map[string]any)
	if err != nil || !ok || depth > maxChoices {
		return false
	}
	types, _ := m["type"].([]any)
	if m["type"] == nil && m["properties"] != nil && typ == "object" || m["type"] == typ || slices.Contains(types, any(typ)) {
		return true
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		choices, _ := m[key].([]any)
		for i, c := range choices {
			if b.hasType(place{at.Child(key, strconv.Itoa(i)), c}, typ, depth+1) {
				return true
			}
		}
	}
	return false
}

// maxChoices is the depth of nested choices in which a parameter's type is searched.
const maxChoices = 3

// annotate adds a parameter's own description and example to its schema.
func annotate(s any, p *openapi3.Parameter, raw any) any {
	m, ok := s.(map[string]any)
	if !ok {
		if s == true {
			m = map[string]any{}
		} else {
			return s
		}
	}
	m = maps.Clone(m)
	if p.Description != "" {
		m["description"] = p.Description
	}
	if p.Deprecated {
		m["deprecated"] = true
	}
	r, _ := raw.(map[string]any)
	if ex, ok := r["example"]; ok && m["examples"] == nil {
		m["examples"] = []any{ex}
	}
	return m
}

// inputSchema joins all arguments into one schema (MCP specification, server/tools: the root type is object).
func (b *builder) inputSchema() map[string]any {
	var props schema.Properties
	var required []any
	for _, arg := range b.args.list {
		props = append(props, schema.Property{Name: arg.name, Schema: arg.schema})
		if arg.required {
			required = append(required, arg.name)
		}
	}
	root := map[string]any{"type": "object", "properties": props, "additionalProperties": false}
	if b.additional != nil {
		root["additionalProperties"] = b.additional
	} else if b.open {
		delete(root, "additionalProperties")
	}
	slices.SortFunc(required, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	if len(required) > 0 {
		root["required"] = required
	}
	if len(b.dependent) > 0 {
		root["dependentRequired"] = b.dependent
	}
	return root
}

func quote(s string) string {
	return string(jsontext.Quote(clip.Bytes(s, 80)))
}
