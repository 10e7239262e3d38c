package schema

import (
	"maps"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

// A Keyword describes a keyword with subschemas: their places in its value, and the values to which they apply.
type Keyword struct {
	Name     string
	shape    shape
	Role     Role
	from, to Draft
}

// In reports whether a draft has the keyword.
func (k Keyword) In(d Draft) bool { return d == 0 || d >= k.from && d <= k.to }

// shape is the way in which the value of a keyword holds its subschemas.
type shape int

const (
	one       shape = iota // the value is a schema
	list                   // an array of schemas
	oneOrList              // either; an array only until draft 2019-09
	members                // an object whose members are schemas, or (dependencies) lists of names
)

// Role is the part of the instance to which the subschemas of a keyword apply. Every role except Same consumes input,
// so a cycle through it ends with the document.
type Role int

// The roles.
const (
	Unused  Role = iota // only a place for definitions
	Same                // the same value ("in-place applicator")
	ByName              // the member of the same name
	AnyName             // some or all members
	Names               // the member names themselves
	ByIndex             // the item at the same index
	AnyItem             // some or all items
)

// Keywords are all keywords that hold subschemas.
var Keywords = []Keyword{
	{"allOf", list, Same, Draft4, Draft2020},
	{"anyOf", list, Same, Draft4, Draft2020},
	{"oneOf", list, Same, Draft4, Draft2020},
	{"not", one, Same, Draft4, Draft2020},
	{"if", one, Same, Draft7, Draft2020},
	{"then", one, Same, Draft7, Draft2020},
	{"else", one, Same, Draft7, Draft2020},
	{"dependencies", members, Same, Draft4, Draft2020}, // both engines keep it in the later drafts
	{"dependentSchemas", members, Same, Draft2019, Draft2020},
	{"properties", members, ByName, Draft4, Draft2020},
	{"patternProperties", members, AnyName, Draft4, Draft2020},
	{"additionalProperties", one, AnyName, Draft4, Draft2020},
	{"unevaluatedProperties", one, AnyName, Draft2019, Draft2020},
	{"propertyNames", one, Names, Draft6, Draft2020},
	{"items", oneOrList, AnyItem, Draft4, Draft2020}, // a list is ByIndex
	{"prefixItems", list, ByIndex, Draft2020, Draft2020},
	{"additionalItems", one, AnyItem, Draft4, Draft2019},
	{"contains", one, AnyItem, Draft6, Draft2020},
	{"unevaluatedItems", one, AnyItem, Draft2019, Draft2020},
	{"contentSchema", one, Unused, Draft2019, Draft2020},
	{"definitions", members, Unused, Draft4, Draft2020},
	{"$defs", members, Unused, Draft2019, Draft2020},
}

// A Subschema is a schema directly inside another one.
type Subschema struct {
	Pointer string
	Role    Role
	Token   string // the member name or the index; "" if the keyword's value is the schema
	Schema  any    // a boolean or an object
}

// Subschemas returns the schemas directly inside a schema whose pointer is at, in a fixed order. It leaves out values
// that are not schemas, because the metaschema reports them.
func Subschemas(schema any, at string, draft Draft) []Subschema {
	obj := ObjectOf(schema)
	if obj == nil {
		return nil
	}
	var subs []Subschema
	for _, kw := range Keywords {
		if v, ok := obj.Get(kw.Name); ok && kw.In(draft) {
			kw.replace(v, at, draft, func(s Subschema) any {
				subs = append(subs, s)
				return nil
			})
		}
	}
	return subs
}

// Replaced returns a copy of a schema in which f replaces each schema directly inside it.
func Replaced(schema map[string]any, at string, draft Draft, f func(Subschema) any) map[string]any {
	out := maps.Clone(schema)
	for _, kw := range Keywords {
		if v, ok := schema[kw.Name]; ok && kw.In(draft) {
			out[kw.Name] = kw.replace(v, at, draft, f)
		}
	}
	return out
}

// replace returns the value of a keyword with its subschemas replaced by f. at is the pointer of the schema.
func (k Keyword) replace(v any, at string, draft Draft, f func(Subschema) any) any {
	items, isList := v.([]any)
	obj := ObjectOf(v)
	at = v1.Pointer(at, k.Name)
	switch {
	case isList && (k.shape == list || k.shape == oneOrList && draft < Draft2020):
		role := k.Role
		if k.shape == oneOrList {
			role = ByIndex
		}
		out := slices.Clone(items)
		for i, item := range items {
			if isSchema(item) {
				token := strconv.Itoa(i)
				out[i] = f(Subschema{v1.Pointer(at, token), role, token, item})
			}
		}
		return out
	case obj != nil && k.shape == members:
		out := obj.Clone()
		for _, name := range obj.Names() {
			if member, _ := obj.Get(name); isSchema(member) {
				out.Set(name, f(Subschema{v1.Pointer(at, name), k.Role, name, member}))
			}
		}
		return plain(out)
	case isSchema(v) && (k.shape == one || k.shape == oneOrList):
		return f(Subschema{at, k.Role, "", v})
	}
	return v
}

func isSchema(v any) bool {
	_, ok := v.(bool)
	return ok || ObjectOf(v) != nil
}

// Vocabulary lists by name the keywords of JSON Schema, drafts 4 to 2020-12, and the keywords of OpenAPI 3.0 that
// often occur with them.
var Vocabulary = []string{
	"$anchor", "$comment", "$defs", "$dynamicAnchor", DynamicRef, "$id", RecursiveRef, "$recursiveAnchor", Ref, "$schema", "$vocabulary",
	"additionalItems", "additionalProperties", "allOf", "anyOf", "const", "contains", "contentEncoding", "contentMediaType", "contentSchema",
	"default", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "deprecated", "description", "discriminator", "else", "enum",
	"example", "examples", "exclusiveMaximum", "exclusiveMinimum", "externalDocs", "format", "id", "if", "items", "maxContains", "maxItems", "maxLength",
	"maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum", "multipleOf", "not", "nullable", "oneOf",
	"pattern", "patternProperties", "prefixItems", "properties", "propertyNames", "readOnly", "required", "then", "title", "type",
	"unevaluatedItems", "unevaluatedProperties", "uniqueItems", "writeOnly", "xml",
}

// Known reports whether a name is in the [Vocabulary].
func Known(keyword string) bool { return slices.Contains(Vocabulary, keyword) }
