package validate

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"toolctl.dev/toolctl/internal/clip"
)

// explain flattens the tree of errors.
func explain(e *jsonschema.ValidationError, doc any) []problem {
	x := explainer{doc: doc}
	return x.walk(e)
}

type explainer struct{ doc any }

func (x *explainer) all(causes []*jsonschema.ValidationError) []problem {
	var out []problem
	for _, c := range causes {
		if len(out) > maxFound {
			break
		}
		out = append(out, x.walk(c)...)
	}
	return out
}

func (x *explainer) walk(e *jsonschema.ValidationError) []problem {
	path := e.InstanceLocation
	p := problem{path: path, value: at(x.doc, path)}
	one := func(keyword, limit string) []problem {
		p.keyword, p.limit = keyword, limit
		return []problem{p}
	}
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.Reference, *kind.AllOf:
		return x.all(e.Causes)
	case *kind.AnyOf:
		return x.choose(e, one)
	case *kind.OneOf:
		if len(k.Subschemas) == 2 {
			p.detail = ", which fits alternatives " + strconv.Itoa(k.Subschemas[0]) + " and " + strconv.Itoa(k.Subschemas[1])
			return one("oneOf", "")
		}
		return x.choose(e, one)
	case *kind.Type:
		p.types = k.Want
		return one(keywordValue, "")
	case *kind.Enum:
		p.allowed = k.Want
		return one(keywordValue, "")
	case *kind.Const:
		p.allowed = []any{k.Want}
		return one(keywordValue, "")
	case *kind.Required:
		return missing("required", path, k.Missing, "")
	case *kind.Dependency:
		return missing("dependentRequired", path, k.Missing, k.Prop)
	case *kind.DependentRequired:
		return missing("dependentRequired", path, k.Missing, k.Prop)
	case *kind.AdditionalProperties:
		var out []problem
		for _, name := range k.Properties {
			at := join(path, name)
			out = append(out, problem{keyword: keywordUnknown, path: at, value: atMember(p.value, name)})
		}
		return out
	case *kind.PropertyNames:
		return x.name(e, k.Property)
	case *kind.FalseSchema:
		if len(path) > 0 && strings.HasSuffix(e.SchemaURL, "/unevaluatedProperties") {
			return one(keywordUnknown, "")
		}
		return one(keywordFalse, "")
	case *kind.Format:
		return one("format", strconv.Quote(k.Want))
	case *kind.Pattern:
		return one("pattern", strconv.Quote(k.Want))
	case *kind.MinLength:
		return one("minLength", strconv.Itoa(k.Want))
	case *kind.MaxLength:
		return one("maxLength", strconv.Itoa(k.Want))
	case *kind.Minimum:
		return one("minimum", number(k.Want))
	case *kind.Maximum:
		return one("maximum", number(k.Want))
	case *kind.ExclusiveMinimum:
		return one("exclusiveMinimum", number(k.Want))
	case *kind.ExclusiveMaximum:
		return one("exclusiveMaximum", number(k.Want))
	case *kind.MultipleOf:
		return one("multipleOf", number(k.Want))
	case *kind.MinItems:
		return one("minItems", strconv.Itoa(k.Want))
	case *kind.MaxItems:
		return one("maxItems", strconv.Itoa(k.Want))
	case *kind.AdditionalItems:
		arr, _ := p.value.([]any)
		return one("additionalItems", strconv.Itoa(len(arr)-k.Count))
	case *kind.MinProperties:
		return one("minProperties", strconv.Itoa(k.Want))
	case *kind.MaxProperties:
		return one("maxProperties", strconv.Itoa(k.Want))
	case *kind.UniqueItems:
		p.detail = equalItems(k.Duplicates[0], k.Duplicates[1])
		return one("uniqueItems", "")
	case *kind.Contains:
		return one("contains", "")
	case *kind.MinContains:
		return one("minContains", strconv.Itoa(k.Want))
	case *kind.MaxContains:
		return one("maxContains", strconv.Itoa(k.Want))
	case *kind.Not:
		return one("not", "")
	case nil:
		return nil
	default:
		return one(strings.Join(k.KeywordPath(), "/"), "")
	}
}

func (x *explainer) choose(e *jsonschema.ValidationError, one func(keyword, limit string) []problem) []problem {
	var branches [][]problem
	for _, c := range e.Causes {
		if b := x.walk(c); len(b) > 0 {
			branches = append(branches, b)
		}
	}
	if len(branches) == 0 {
		return one("anyOf", "")
	}
	return choose(branches, e.InstanceLocation)
}

// name reports a refused property name. The library reuses the memory of the location of such an
// error, so only its length is reliable; [Schema.placeNames] corrects the location by the place of
// the schema.
func (x *explainer) name(e *jsonschema.ValidationError, property string) []problem {
	p := problem{keyword: keywordNames, path: join(e.InstanceLocation, property), schema: e.SchemaURL}
	inner := explainer{doc: property}
	if why := inner.all(e.Causes); len(why) > 0 {
		p.detail = ": expected " + why[0].violation().Expected
	}
	return []problem{p}
}

func atMember(v any, name string) any {
	obj, _ := v.(map[string]any)
	return obj[name]
}

func missing(keyword string, path, names []string, beside string) []problem {
	out := make([]problem, 0, len(names))
	for _, n := range names {
		out = append(out, problem{keyword: keyword, path: join(path, n), limit: beside})
	}
	return out
}

func equalItems(i, j int) string {
	return " in which items " + strconv.Itoa(min(i, j)) + " and " + strconv.Itoa(max(i, j)) + " are equal"
}

// join appends a token to a copy of path, so that the result shares no memory with it.
func join(path []string, tok string) []string {
	return append(slices.Clone(path), tok)
}

func number(r *big.Rat) string {
	if r.IsInt() {
		return clip.Runes(r.Num().String(), maxGot)
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
