package validate

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"strconv"
	"strings"

	"github.com/xeipuuv/gojsonreference"
	"github.com/xeipuuv/gojsonschema"
)

// gojson runs a bundled schema on gojsonschema. It may be used by many goroutines.
type gojson struct{ schema *gojsonschema.Schema }

// closed is a loader of one decoded document that refuses all others. A bundle refers to nothing
// outside itself; if it did by mistake, nothing would be fetched.
type closed struct{ gojsonschema.JSONLoader }

func (closed) LoaderFactory() gojsonschema.JSONLoaderFactory { return refusal{} }

type refusal struct{ gojsonschema.JSONLoader }

func (refusal) New(string) gojsonschema.JSONLoader { return refusal{} }
func (refusal) LoadJSON() (any, error)             { return nil, errOutside }
func (refusal) JsonSource() any                    { return nil }
func (refusal) JsonReference() (gojsonreference.JsonReference, error) {
	return gojsonreference.JsonReference{}, errOutside
}
func (refusal) LoaderFactory() gojsonschema.JSONLoaderFactory { return refusal{} }

func newGojson(bundle any, draft Draft) (*gojson, error) {
	l := gojsonschema.NewSchemaLoader()
	l.AutoDetect = false // otherwise it would read "$schema"
	l.Draft = map[Draft]gojsonschema.Draft{Draft4: gojsonschema.Draft4, Draft6: gojsonschema.Draft6, Draft7: gojsonschema.Draft7}[draft]
	schema, err := l.Compile(closed{gojsonschema.NewRawLoader(bundle)})
	if err != nil {
		return nil, err
	}
	return &gojson{schema}, nil
}

// metaschemaText returns the metaschema of draft-04, -06 or -07. The library has
// them built in and reads nothing for these URLs.
func metaschemaText(d Draft) (any, error) {
	return gojsonschema.NewReferenceLoader(d.String()).LoadJSON()
}

func (e *gojson) check(doc any) (problems []problem, unclear bool) {
	result, err := e.schema.Validate(gojsonschema.NewRawLoader(doc))
	if err != nil { // only a loader can fail, and this one does not
		return []problem{{keyword: "internal"}}, false
	}
	if result.Valid() {
		return nil, false
	}
	var vague []problem
	for _, r := range result.Errors() {
		kind, isVague := vagueErrors[r.Type()]
		unclear = unclear || kind == explainable
		if isVague {
			vague = append(vague, gojsonProblem(r))
		} else {
			problems = append(problems, gojsonProblem(r))
		}
		unclear = unclear || r.Type() == "missing_dependency" // it does not name the other property
	}
	for _, p := range vague {
		if len(problems) == 0 || p.keyword != "allOf" && p.keyword != "then" && p.keyword != "else" {
			problems = append(problems, p)
		}
	}
	return problems, unclear
}

// vagueErrors are the errors after which the library lists the errors of subschemas without naming
// the subschema to which an error belongs.
var vagueErrors = map[string]int{
	"number_any_of": explainable, "number_one_of": explainable, "contains": explainable, "invalid_property_name": explainable,
	"number_all_of": needless, "condition_then": needless, "condition_else": needless, "number_not": needless,
}

const (
	needless    = iota // the errors that follow are sufficient
	explainable        // the other engine explains it better
)

// gojsonProblem converts one error of the library to the form that both engines share.
func gojsonProblem(r gojsonschema.ResultError) problem {
	const separator = "\xff" // cannot be in a member name, which is UTF-8
	path := strings.Split(r.Context().String(separator), separator)[1:]
	details := r.Details()
	p := problem{path: path, value: r.Value()}
	text := func(key string) string { return fmt.Sprint(details[key]) }
	switch r.Type() {
	case "invalid_type":
		p.keyword = keywordValue
		p.types = strings.Split(strings.Trim(text("expected"), "[]"), ",")
	case "enum", "const":
		p.keyword = keywordValue
		allowed := text("allowed")
		if r.Type() == "enum" {
			allowed = "[" + allowed + "]"
		}
		v, _ := Decode([]byte(allowed)) // the library wrote it, so it is valid JSON
		if list, ok := v.([]any); ok && r.Type() == "enum" {
			p.allowed = list
		} else {
			p.allowed = []any{v}
		}
	case "required":
		p = problem{keyword: "required", path: join(path, text("property"))}
	case "missing_dependency":
		p = problem{keyword: "required", path: join(path, text("dependency"))}
	case "additional_property_not_allowed":
		p.keyword, p.path = keywordUnknown, join(path, text("property"))
	case "invalid_property_name":
		p = problem{keyword: keywordNames, path: join(path, text("property"))}
	case "false":
		p.keyword = keywordFalse
	case "unique":
		p.keyword = "uniqueItems"
		i, _ := details["i"].(int)
		j, _ := details["j"].(int)
		p.detail = equalItems(i, j)
	case "pattern":
		p.keyword = "pattern"
		if re, ok := details["pattern"].(*regexp.Regexp); ok {
			p.limit = strconv.Quote(re.String())
		}
	case "format":
		p.keyword, p.limit = "format", strconv.Quote(text("format"))
	default:
		if l, ok := gojsonLimits[r.Type()]; ok {
			p.keyword = l.keyword
			p.limit = limitText(details[l.detail])
		} else {
			p.keyword = r.Type()
		}
	}
	return p
}

// gojsonLimits maps the types of errors about one bound to their keyword and detail.
var gojsonLimits = map[string]struct{ keyword, detail string }{
	"number_gte":                {"minimum", "min"},
	"number_gt":                 {"exclusiveMinimum", "min"},
	"number_lte":                {"maximum", "max"},
	"number_lt":                 {"exclusiveMaximum", "max"},
	"multiple_of":               {"multipleOf", "multiple"},
	"string_gte":                {"minLength", "min"},
	"string_lte":                {"maxLength", "max"},
	"array_min_items":           {"minItems", "min"},
	"array_max_items":           {"maxItems", "max"},
	"array_min_properties":      {"minProperties", "min"},
	"array_max_properties":      {"maxProperties", "max"},
	"array_no_additional_items": {"additionalItems", ""},
	"contains":                  {"contains", ""},
	"number_any_of":             {"anyOf", ""},
	"number_one_of":             {"oneOf", ""},
	"number_all_of":             {"allOf", ""},
	"number_not":                {"not", ""},
	"condition_then":            {"then", ""},
	"condition_else":            {"else", ""},
}

func limitText(v any) string {
	switch v := v.(type) {
	case *big.Float:
		r, _ := v.Rat(nil)
		if r == nil {
			return v.Text('g', 15)
		}
		if r.IsInt() {
			return number(r)
		}
		f, _ := v.Float64()
		return strconv.FormatFloat(f, 'g', -1, 64)
	case int:
		return strconv.Itoa(v)
	case json.Number:
		return string(v)
	}
	return ""
}
