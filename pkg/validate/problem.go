package validate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/schema"
)

// Bounds of messages for people and models.
const (
	maxViolations = 100
	maxGot        = 80 // characters of a value from the document
	maxChoices    = 20 // names or values in "one of …"
)

// A problem is one finding of an engine in the form that both engines share: the JSON Schema keyword, the place,
// and the requirement of the keyword.
type problem struct {
	// keyword is the keyword that failed. "type", "enum" and "const" are all
	// keywordValue, so that the branches of an anyOf can be reported as one.
	keyword string
	path    []string
	value   any      // the value at path; unset for a missing property
	types   []string // accepted types
	allowed []any    // accepted values
	limit   string   // the bound, format, pattern or other property
	detail  string   // a complete clause
	schema  string   // the URL of the failed subschema, for propertyNames only
}

const (
	keywordValue   = "value"
	keywordUnknown = "additionalProperties"
	keywordLate    = "late" // a pattern that could not be checked in time
	keywordNames   = "propertyNames"
	keywordFalse   = "false"
	keywordCost    = "cost"
)

// wording is the text after "expected" for a keyword with a limit.
var wording = map[string]string{
	"minimum":          "a number of at least %s",
	"maximum":          "a number of at most %s",
	"exclusiveMinimum": "a number above %s",
	"exclusiveMaximum": "a number below %s",
	"multipleOf":       "a multiple of %s",
	"minLength":        "a string of at least %s characters",
	"maxLength":        "a string of at most %s characters",
	"minItems":         "at least %s items",
	"maxItems":         "at most %s items",
	"additionalItems":  "at most %s items",
	"minProperties":    "at least %s properties",
	"maxProperties":    "at most %s properties",
	"format":           "a string in the format %s",
	"pattern":          "a string that matches the pattern %s",
	"contains":         "at least one item that fits the schema under \"contains\"",
	"minContains":      "at least %s items that fit the schema under \"contains\"",
	"maxContains":      "at most %s items that fit the schema under \"contains\"",
	"uniqueItems":      "items that differ from each other",
	"not":              "a value that does not fit the schema under \"not\"",
	"anyOf":            "a value that fits one of the alternatives",
	"oneOf":            "a value that fits exactly one of the alternatives",
	keywordFalse:       "no value here",
	keywordLate:        "a string on which the pattern %s can be checked in time",
}

var singular = strings.NewReplacer("%s characters", "%s character", "%s properties", "%s property",
	"%s items that fit", "%s item that fits", "%s items", "%s item")

// worded returns the wording of a keyword with its limit.
func worded(wording, limit string) string {
	if limit == "1" {
		wording = singular.Replace(wording)
	}
	return fmt.Sprintf(wording, limit)
}

// violation converts a problem to a violation. Only Got contains a value of the document. If the message contains
// it too, it is the exact text of Got, so that a caller that must hide the value can replace it in both.
func (p *problem) violation() v1.Violation {
	f := v1.Violation{Path: v1.Pointer("", p.path...), Got: describe(p.value)}
	last := ""
	if len(p.path) > 0 {
		last = clip.Runes(p.path[len(p.path)-1], maxGot)
	}
	switch p.keyword {
	case "required", "dependentRequired":
		f.Expected, f.Got = "a value", "nothing"
		f.Message = fmt.Sprintf("required property %q is missing", last)
		if p.limit != "" {
			f.Message = fmt.Sprintf("property %q is missing: it is required together with %q", last, clip.Runes(p.limit, maxGot))
		}
		f.Message += p.detail
		return f
	case keywordUnknown:
		f.Expected, f.Got = "a property of the schema", fmt.Sprintf("property %q", last)
		f.Message = fmt.Sprintf("unknown property %q", last) + p.detail
		return f
	case keywordNames:
		f.Expected, f.Got = "another property name", fmt.Sprintf("property %q", last)
		f.Message = fmt.Sprintf("property name %q is not allowed", last) + p.detail
		return f
	case keywordCost:
		f.Expected, f.Message = p.limit, p.detail
		return f
	case keywordValue:
		f.Expected = p.expectedValue()
	case "minLength", "maxLength":
		f.Expected = worded(wording[p.keyword], p.limit)
		if s, ok := p.value.(string); ok {
			f.Got = plural("%d character", utf8.RuneCountInString(s))
		}
	default:
		w, ok := wording[p.keyword]
		switch {
		case !ok:
			f.Expected = fmt.Sprintf("a value that satisfies the rule %q of the schema", p.keyword)
		case strings.Contains(w, "%s"):
			f.Expected = worded(w, clip.Runes(p.limit, 3*maxGot))
		default:
			f.Expected = w
		}
	}
	f.Message = fmt.Sprintf("expected %s, got %s%s", f.Expected, f.Got, p.detail)
	return f
}

var typeOrder = []string{"boolean", "integer", "number", "string", "array", "object", "null"}

// expectedValue returns "integer or null", "one of 1, 2" or both.
func (p *problem) expectedValue() string {
	var parts []string
	for _, t := range typeOrder { // the engines use different orders
		if slices.Contains(p.types, t) {
			parts = append(parts, t)
		}
	}
	if len(p.allowed) > 0 {
		var values []string
		for i, a := range p.allowed {
			if i == maxChoices {
				values = append(values, fmt.Sprintf("… (%d in all)", len(p.allowed)))
				break
			}
			text, _ := json.Marshal(a) // decoded JSON can always be encoded
			values = append(values, clip.Runes(string(text), maxGot))
		}
		text := strings.Join(values, ", ")
		if len(p.allowed) > 1 {
			text = "one of " + text
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "no value at all: the enum is empty"
	}
	return strings.Join(parts, " or ")
}

// nearest returns "; did you mean …?" for a string similar to an allowed one, or "".
func (p *problem) nearest() string {
	s, ok := p.value.(string)
	if !ok || p.keyword != keywordValue {
		return ""
	}
	var candidates []string
	for _, a := range p.allowed {
		if c, ok := a.(string); ok {
			candidates = append(candidates, c)
		}
	}
	if near := v1.Nearest(s, candidates); near != "" {
		return fmt.Sprintf("; did you mean %q?", clip.Runes(near, maxGot))
	}
	return ""
}

// violations converts problems to distinct violations, sorted by path and at most maxViolations. known returns
// the property names that the schema declares at a path of doc.
func violations(doc any, problems []problem, known func(path []string) []string) []v1.Violation {
	if len(problems) == 0 {
		return nil
	}
	slices.SortStableFunc(problems, func(a, b problem) int { return comparePaths(a.path, b.path) })
	var out []v1.Violation
	more := 0
	for i := range problems {
		p := &problems[i]
		if len(out) == maxViolations {
			more++
			continue
		}
		switch p.keyword {
		case keywordValue:
			p.detail += p.nearest()
		case "required":
			p.detail = p.given(doc, problems, known)
		case keywordUnknown:
			last := len(p.path) - 1
			names := known(p.path[:last])
			if near := v1.Nearest(p.path[last], names); near != "" {
				p.detail = fmt.Sprintf("; did you mean %q?", clip.Runes(near, maxGot))
			} else if len(names) > 0 && len(names) <= maxChoices {
				p.detail = ": the schema knows " + strings.Join(quoted(names), ", ")
			}
		}
		if f := p.violation(); !slices.Contains(out, f) {
			out = append(out, f)
		}
	}
	if more > 0 {
		out = append(out, v1.Violation{Expected: "a valid document", Got: "more errors", Message: "and " + clip.Count(more, "more error")})
	}
	return out
}

// given returns the name of a property that may be a misspelling of the missing one: it has a similar name, the
// schema does not declare it, and it was accepted because the schema is open.
func (p *problem) given(doc any, problems []problem, known func(path []string) []string) string {
	const most = 100 // maximum number of members to compare
	last := len(p.path) - 1
	object, _ := at(doc, p.path[:last]).(map[string]any)
	if len(object) == 0 || len(object) > most || p.path[last] == "" {
		return ""
	}
	names := known(p.path[:last])
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(object)), func(name string) bool {
		return slices.Contains(names, name) || slices.ContainsFunc(problems, func(q problem) bool {
			return q.keyword == keywordUnknown && slices.Equal(q.path, join(p.path[:last], name))
		})
	})
	near := v1.Nearest(p.path[last], others)
	if near == "" || !strings.EqualFold(near[:1], p.path[last][:1]) { // single letters such as a and b are always similar
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", clip.Runes(near, maxGot))
}

func quoted(names []string) []string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = strconv.Quote(clip.Runes(n, maxGot))
	}
	return q
}

// comparePaths compares paths by tokens, and indexes as numbers, so that /items/2 comes before /items/10.
func comparePaths(a, b []string) int {
	return slices.CompareFunc(a, b, func(x, y string) int {
		if m, err := strconv.Atoi(x); err == nil {
			if n, err := strconv.Atoi(y); err == nil && m != n {
				return m - n
			}
		}
		return strings.Compare(x, y)
	})
}

// describe describes a value briefly: string "five", number 5, array of 3 items.
func describe(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return fmt.Sprintf("boolean %t", v)
	case string:
		return "string " + strconv.Quote(clip.Runes(v, maxGot))
	case json.Number:
		return "number " + clip.Runes(string(v), maxGot)
	case []any:
		return plural("array of %d item", len(v))
	case map[string]any:
		return "object with " + clip.Count(len(v), "property")
	}
	return fmt.Sprintf("a Go %T", v)
}

func plural(format string, n int) string {
	if n != 1 {
		format += "s"
	}
	return fmt.Sprintf(format, n)
}

// at returns the value at a path of a document.
func at(doc any, path []string) any {
	if v, _, ok := schema.AtPath(doc, path); ok {
		return v
	}
	return nil
}
