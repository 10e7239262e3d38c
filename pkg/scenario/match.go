package scenario

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
)

// Difference is one place where a value differs from the expected value.
type Difference struct {
	// Path is the place in the value as a JSONPath (RFC 9535); "$" for the whole value.
	Path string
	// Expected and Got are texts for people; Got has a bounded length.
	Expected, Got string
	// field is the JSON pointer in the expectation.
	field string
	// observed is the actual value; absent means that the value is missing.
	observed any
	absent   bool
}

// operators are the operators of a condition, in the order of evaluation.
var operators = []string{"exists", "equals", "matches", "contains", "gt", "lt"}

// Expectations that reveal no value.
const (
	anyValue = "a value"
	noValue  = "nothing"
)

// absent stands for a missing value.
type absentValue struct{}

// maxDifferences is the maximum number of differences of one comparison.
const maxDifferences = 50

// compare returns the differences between two values of [validate.Decode]. An object matches if
// it has the expected members. Other values must be equal, and [v1.Expect.Result] describes
// conditions and JSONPaths.
func compare(expected, got any) []Difference {
	m := &matcher{}
	m.value(expected, got, "$", "")
	return m.found
}

type matcher struct {
	found []Difference
	// exact compares all members of objects, and treats conditions as plain objects.
	exact bool
}

func (m *matcher) differ(path, field, expected string, got any) {
	if len(m.found) >= maxDifferences {
		return
	}
	d := Difference{Path: path, field: field, Expected: expected, Got: "nothing", observed: got}
	if _, d.absent = got.(absentValue); !d.absent {
		d.Got = show(got)
	}
	m.found = append(m.found, d)
}

func (m *matcher) value(expected, got any, path, field string) {
	if want, ok := expected.(map[string]any); ok && !m.exact {
		switch {
		case isCondition(want):
			m.condition(want, got, path, field)
			return
		case hasAddress(want):
			m.addresses(want, got, path, field)
			return
		}
	}
	switch want := expected.(type) {
	case map[string]any:
		m.object(want, got, path, field)
	case []any:
		m.array(want, got, path, field)
	default:
		if !equalScalar(expected, got) {
			m.differ(path, field, show(expected), got)
		}
	}
}

func (m *matcher) object(want map[string]any, got any, path, field string) {
	have, ok := got.(map[string]any)
	if !ok {
		m.differ(path, field, "an object "+show(want), got)
		return
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		value, ok := have[key]
		if !ok {
			value = absentValue{}
		}
		m.value(want[key], value, member(path, key), v1.Pointer(field, key))
	}
	if !m.exact {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(have)) {
		if _, ok := want[key]; !ok {
			m.differ(member(path, key), field, noValue, have[key])
		}
	}
}

func (m *matcher) array(want []any, got any, path, field string) {
	have, ok := got.([]any)
	if !ok {
		m.differ(path, field, "an array "+show(want), got)
		return
	}
	if len(want) != len(have) {
		m.differ(path, field, fmt.Sprintf("an array of length %d %s", len(want), show(want)), got)
		return
	}
	for i := range want {
		m.value(want[i], have[i], fmt.Sprintf("%s[%d]", path, i), v1.Pointer(field, strconv.Itoa(i)))
	}
}

// isCondition reports whether every member of an object is an operator.
func isCondition(want map[string]any) bool {
	for key := range want {
		if !slices.Contains(operators, key) {
			return false
		}
	}
	return len(want) > 0
}

func (m *matcher) condition(want map[string]any, got any, path, field string) {
	_, gone := got.(absentValue)
	for _, op := range operators {
		arg, ok := want[op]
		if !ok {
			continue
		}
		at := v1.Pointer(field, op)
		if op == "exists" {
			yes, isBool := arg.(bool)
			switch {
			case !isBool:
				m.differ(path, at, "a condition exists: true or exists: false", got)
			case yes && gone:
				m.differ(path, at, anyValue, got)
			case !yes && !gone:
				m.differ(path, at, noValue, got)
			}
			continue
		}
		if ok, expected := holds(op, arg, got); !ok || gone {
			m.differ(path, at, expected, got)
		}
	}
}

// holds evaluates one operator other than exists. expected describes a value that fits.
func holds(op string, arg, got any) (ok bool, expected string) {
	switch op {
	case "equals":
		return equal(arg, got), "exactly " + show(arg)
	case "matches":
		pattern, isText := arg.(string)
		re, err := regexp.Compile(pattern)
		if !isText || err != nil {
			return false, fmt.Sprintf("a match of %s, which is not a regular expression (RE2)", show(arg))
		}
		return re.MatchString(text(got)), "a match of " + show(arg)
	case "contains":
		return contains(arg, got), "something that contains " + show(arg)
	case "gt", "lt":
		c, comparable := order(got, arg)
		if op == "gt" {
			return comparable && c > 0, "above " + show(arg)
		}
		return comparable && c < 0, "below " + show(arg)
	}
	return false, op
}

func contains(arg, got any) bool {
	switch have := got.(type) {
	case string:
		part, ok := arg.(string)
		return ok && strings.Contains(have, part)
	case []any:
		return slices.ContainsFunc(have, func(item any) bool { return len(compare(arg, item)) == 0 })
	case map[string]any:
		if key, ok := arg.(string); ok {
			_, ok = have[key]
			return ok
		}
		return len(compare(arg, have)) == 0
	}
	return false
}

// order compares two numbers or two strings.
func order(a, b any) (c int, comparable bool) {
	switch x := a.(type) {
	case json.Number:
		if y, ok := b.(json.Number); ok {
			return compareNumbers(x, y)
		}
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), true
		}
	}
	return 0, false
}

// compareNumbers compares two JSON numbers with all their digits, which validate.Decode limits.
// Both are read with the same precision: else 0.1 and 0.10 would be rounded differently.
func compareNumbers(a, b json.Number) (c int, comparable bool) {
	precision := uint(64 + 4*max(len(a), len(b)))
	x, _, errX := big.ParseFloat(string(a), 10, precision, big.ToNearestEven)
	y, _, errY := big.ParseFloat(string(b), 10, precision, big.ToNearestEven)
	if errX != nil || errY != nil {
		return 0, false
	}
	return x.Cmp(y), true
}

func equalScalar(want, got any) bool {
	if w, ok := want.(json.Number); ok {
		g, ok := got.(json.Number)
		c, comparable := compareNumbers(w, g)
		return ok && comparable && c == 0
	}
	switch got.(type) {
	case map[string]any, []any, absentValue:
		return false
	}
	return want == got
}

// text returns a value as text: a string without quotes, any other value as JSON.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return string(jsontext.Of(v))
}

// member appends a member to a JSONPath.
func member(path, key string) string {
	for i, r := range key {
		if r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (i == 0 || r < '0' || r > '9') {
			return path + "[" + quotePath(key) + "]"
		}
	}
	if key == "" {
		return path + "['']"
	}
	return path + "." + key
}

func quotePath(key string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(key) + "'"
}

// maxShown is the maximum length of a value in a message, in characters.
const maxShown = 200

func show(v any) string {
	return clip.Runes(string(jsontext.Of(v)), maxShown)
}
