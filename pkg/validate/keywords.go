package validate

import (
	"sort"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

// A keyword that holds subschemas: where they lie in its value and what they are applied to.
type keyword struct {
	name     string
	shape    shape
	role     role
	from, to Draft
}

// shape says how the value of a keyword holds its subschemas.
type shape int

const (
	one       shape = iota // the value is a schema
	list                   // an array of schemas
	oneOrList              // either
	members                // an object whose members are schemas, or (dependencies) lists of names
)

// role says what of the instance the subschemas of a keyword see. Everything
// but same consumes input, so a cycle through it ends with the document.
type role int

const (
	unused  role = iota // only a place for definitions
	same                // the same value ("in-place applicator")
	byName              // the member of the same name
	anyName             // some or all members
	names               // the member names themselves
	byIndex             // the item at the same index
	anyItem             // some or all items
)

var keywords = []keyword{
	{"allOf", list, same, Draft4, Draft2020},
	{"anyOf", list, same, Draft4, Draft2020},
	{"oneOf", list, same, Draft4, Draft2020},
	{"not", one, same, Draft4, Draft2020},
	{"if", one, same, Draft7, Draft2020},
	{"then", one, same, Draft7, Draft2020},
	{"else", one, same, Draft7, Draft2020},
	{"dependencies", members, same, Draft4, Draft2020}, // both engines keep it in the later drafts
	{"dependentSchemas", members, same, Draft2019, Draft2020},
	{"properties", members, byName, Draft4, Draft2020},
	{"patternProperties", members, anyName, Draft4, Draft2020},
	{"additionalProperties", one, anyName, Draft4, Draft2020},
	{"unevaluatedProperties", one, anyName, Draft2019, Draft2020},
	{"propertyNames", one, names, Draft6, Draft2020},
	{"items", oneOrList, anyItem, Draft4, Draft2019}, // a list is byIndex
	{"items", one, anyItem, Draft2020, Draft2020},
	{"prefixItems", list, byIndex, Draft2020, Draft2020},
	{"additionalItems", one, anyItem, Draft4, Draft2019},
	{"contains", one, anyItem, Draft6, Draft2020},
	{"unevaluatedItems", one, anyItem, Draft2019, Draft2020},
	{"contentSchema", one, unused, Draft2019, Draft2020},
	{"definitions", members, unused, Draft4, Draft2020},
	{"$defs", members, unused, Draft2019, Draft2020},
}

// subschema is one schema inside another one.
type subschema struct {
	ptr    string // from the root of the document
	role   role
	token  string // the member name or index, "" for shape one
	schema any    // bool or map
}

// subschemas lists the schemas directly inside obj, in a fixed order. What is no
// schema where one belongs is left out: the metaschema reports it.
func subschemas(obj map[string]any, ptr string, draft Draft) []subschema {
	var subs []subschema
	add := func(role role, schema any, kw string, tokens ...string) {
		switch schema.(type) {
		case bool, map[string]any:
			s := subschema{ptr: v1.Pointer(v1.Pointer(ptr, kw), tokens...), role: role, schema: schema}
			if len(tokens) > 0 {
				s.token = tokens[0]
			}
			subs = append(subs, s)
		}
	}
	for _, kw := range keywords {
		v, ok := obj[kw.name]
		if !ok || draft < kw.from || draft > kw.to {
			continue
		}
		switch v := v.(type) {
		case []any:
			if kw.shape != list && kw.shape != oneOrList {
				continue
			}
			role := kw.role
			if kw.shape == oneOrList {
				role = byIndex
			}
			for i, item := range v {
				add(role, item, kw.name, strconv.Itoa(i))
			}
		case map[string]any:
			switch kw.shape {
			case one, oneOrList:
				add(kw.role, v, kw.name)
			case members:
				for _, k := range sortedKeys(v) {
					add(kw.role, v[k], kw.name, k)
				}
			}
		case bool:
			if kw.shape == one || kw.shape == oneOrList {
				add(kw.role, v, kw.name)
			}
		}
	}
	return subs
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
