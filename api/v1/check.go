package v1

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// checkFields walks a struct and returns a violation for each `check` tag that does not hold.
func checkFields(v any) []Violation {
	var fs []Violation
	checkValue(reflect.ValueOf(v), "", &fs)
	return fs
}

type fieldRule struct {
	index    int
	name     string // JSON name; "" for an embedded struct
	required bool
	min, max *float64
	oneof    []string
	// text is a rule for texts. It returns what is wrong with the values of a field at a path.
	text func(path string, texts map[string]string) []Violation
	deep bool // may hold further structs
}

// texts are the rules for texts, by name.
var texts = map[string]func(path string, texts map[string]string) []Violation{
	"pattern":           patternRule("tool"),
	"pattern=principal": patternRule("principal"),
	"pattern=server":    patternRule("server"),
	"pattern=prompt":    patternRule("prompt"),
	"url":               urlViolations,
	"env":               bareVariables,
}

// ruled is a struct with rules that a tag cannot express.
type ruled interface{ rules(path string) []Violation }

// checks reports whether the field itself has rules.
func (r *fieldRule) checks() bool {
	return r.required || r.min != nil || r.max != nil || r.oneof != nil || r.text != nil
}

var ruleCache sync.Map // reflect.Type -> []fieldRule

func rulesOf(t reflect.Type) []fieldRule {
	if r, ok := ruleCache.Load(t); ok {
		return r.([]fieldRule)
	}
	var rules []fieldRule
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		r := fieldRule{index: i, name: name, deep: holdsStruct(f.Type)}
		if tag := f.Tag.Get("check"); tag != "" {
			for rule := range strings.SplitSeq(tag, ",") {
				key, val, _ := strings.Cut(rule, "=")
				switch key {
				case "required":
					r.required = true
				case "min":
					r.min = parseBound(val)
				case "max":
					r.max = parseBound(val)
				case "oneof":
					switch r.oneof = strings.Split(val, "|"); val {
					case "@assertions":
						r.oneof = AssertionNames()
					case "@modes": // which there are depends on the program; see Tool.UnknownMode
						r.oneof = nil
					}
				case "path", "null", "single": // for the reader of manifests, see the package comment
				default:
					check := texts[rule]
					if check == nil {
						panic("api/v1: unknown check rule " + rule + " on " + t.Name() + "." + f.Name)
					}
					r.text = and(r.text, check)
				}
			}
		}
		rules = append(rules, r)
	}
	ruleCache.Store(t, rules)
	return rules
}

func parseBound(s string) *float64 {
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		panic("api/v1: bad bound in a check tag: " + s)
	}
	return &f
}

var rawMessage = reflect.TypeFor[json.RawMessage]()

func holdsStruct(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return t != rawMessage && holdsStruct(t.Elem())
	case reflect.Struct:
		return true
	}
	return false
}

func checkValue(v reflect.Value, path string, fs *[]Violation) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			checkValue(v.Elem(), path, fs)
		}
	case reflect.Slice:
		for i := range v.Len() {
			checkValue(v.Index(i), Pointer(path, strconv.Itoa(i)), fs)
		}
	case reflect.Map:
		for it := v.MapRange(); it.Next(); {
			checkValue(it.Value(), Pointer(path, it.Key().String()), fs)
		}
	case reflect.Struct:
		if v.CanAddr() {
			if r, ok := v.Addr().Interface().(ruled); ok {
				*fs = append(*fs, r.rules(path)...)
			}
		}
		for _, r := range rulesOf(v.Type()) {
			f := v.Field(r.index)
			if !r.checks() && (!r.deep || isEmpty(f)) { // most fields of most objects
				continue
			}
			p := path
			if r.name != "" {
				p = Pointer(path, r.name)
			}
			r.check(f, p, fs)
			if r.deep {
				checkValue(f, p, fs)
			}
		}
	}
}

func (r *fieldRule) check(f reflect.Value, path string, fs *[]Violation) {
	if isEmpty(f) {
		if r.required && f.Kind() != reflect.Struct {
			*fs = append(*fs, Violation{Path: path, Expected: "a value", Got: "nothing", Message: fmt.Sprintf("required field %q is missing", r.name)})
		}
		if f.Kind() == reflect.Pointer || r.oneof != nil || f.Kind() == reflect.String {
			return
		}
	}
	if f.Kind() == reflect.Pointer {
		f = f.Elem()
	}
	if r.oneof != nil {
		checkOneOf(f, path, r.oneof, fs)
	}
	if r.min != nil || r.max != nil {
		r.checkBounds(f, path, fs)
	}
	if r.text != nil {
		*fs = append(*fs, r.text(path, textsOf(f))...)
	}
}

// textsOf returns the texts of a field by their tokens below it; a field that is a text has the token "".
func textsOf(f reflect.Value) map[string]string {
	switch v := f.Interface().(type) {
	case map[string]string:
		return v
	case []string:
		m := make(map[string]string, len(v))
		for i, s := range v {
			m[strconv.Itoa(i)] = s
		}
		return m
	}
	return map[string]string{"": f.String()}
}

func and(a, b func(string, map[string]string) []Violation) func(string, map[string]string) []Violation {
	if a == nil {
		return b
	}
	return func(path string, texts map[string]string) []Violation {
		return append(a(path, texts), b(path, texts)...)
	}
}

func isEmpty(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice, reflect.Map, reflect.String:
		return v.Len() == 0
	case reflect.Pointer, reflect.Interface:
		return v.IsNil()
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}

func checkOneOf(f reflect.Value, path string, allowed []string, fs *[]Violation) {
	if f.Kind() == reflect.Slice {
		for i := range f.Len() {
			checkOneOf(f.Index(i), Pointer(path, strconv.Itoa(i)), allowed, fs)
		}
		return
	}
	if f.Kind() == reflect.Map {
		for it := f.MapRange(); it.Next(); {
			checkOneOf(it.Value(), Pointer(path, it.Key().String()), allowed, fs)
		}
		return
	}
	s := f.String()
	if slices.Contains(allowed, s) {
		return
	}
	const many = 20
	expected := "one of " + strings.Join(allowed, ", ")
	if len(allowed) > many {
		expected = fmt.Sprintf("one of the %d names that 'toolctl explain' lists", len(allowed))
	}
	msg := fmt.Sprintf("unknown value %q: expected %s", s, expected)
	msg += DidYouMean(s, allowed)
	*fs = append(*fs, Violation{Path: path, Expected: expected, Got: quote(s), Message: msg})
}

func (r *fieldRule) checkBounds(f reflect.Value, path string, fs *[]Violation) {
	var n float64
	switch f.Kind() {
	case reflect.Int, reflect.Int64:
		n = float64(f.Int())
	case reflect.Float64:
		n = f.Float()
	default:
		panic("api/v1: bounds on a field that is not a number: " + path)
	}
	num := strconv.FormatFloat(n, 'f', -1, 64)
	if r.min != nil && n < *r.min {
		want := "at least " + strconv.FormatFloat(*r.min, 'f', -1, 64)
		*fs = append(*fs, Violation{Path: path, Expected: want, Got: num, Message: fmt.Sprintf("%s is too small: expected %s", num, want)})
	}
	if r.max != nil && n > *r.max {
		want := "at most " + strconv.FormatFloat(*r.max, 'f', -1, 64)
		*fs = append(*fs, Violation{Path: path, Expected: want, Got: num, Message: fmt.Sprintf("%s is too large: expected %s", num, want)})
	}
}

// DidYouMean returns the end of a message about an unknown word, which suggests the nearest known one. It is empty if none
// is near.
func DidYouMean(word string, known []string) string {
	if near := Nearest(word, known); near != "" {
		return fmt.Sprintf("; did you mean %q?", near)
	}
	return ""
}

// Nearest returns the candidate that s was probably meant to be: one with the same letters in another case, one in which
// at most a third of the letters differ, or the only one that begins with s (timeout_ms for timeout) or has it as a word
// (get-book for book). It returns "" if none is near.
func Nearest(s string, candidates []string) string {
	best, bestDist := "", max(1, len(s)/3)+1
	for _, c := range candidates {
		if strings.EqualFold(squash(s), squash(c)) {
			return c
		}
		if d := editDistance(strings.ToLower(s), strings.ToLower(c), bestDist); d < bestDist {
			best, bestDist = c, d
		}
	}
	if best != "" || len(s) < 3 {
		return best
	}
	for _, c := range candidates {
		if rest, ok := strings.CutPrefix(c, strings.ToLower(s)); ok && (rest[0] == '_' || rest[0] == '-') {
			if best != "" {
				return "" // two begin so
			}
			best = c
		}
	}
	if best != "" {
		return best
	}
	for _, c := range candidates {
		if hasWord(c, strings.ToLower(s)) {
			if best != "" {
				return ""
			}
			best = c
		}
	}
	return best
}

// hasWord reports whether a name contains a word. In a longer word one letter may differ.
func hasWord(name, word string) bool {
	words := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return r == '-' || r == '_' || r == '.' })
	return len(words) > 1 && slices.ContainsFunc(words, func(w string) bool {
		return w == word || len(word) > 4 && editDistance(word, w, 2) < 2
	})
}

// Near reports whether s is at most that many slips away from want: letters too many, too
// few, wrong, or swapped with the next.
func Near(s, want string, slips int) bool { return editDistance(s, want, slips+1) <= slips }

func squash(s string) string { return strings.NewReplacer("_", "", "-", "").Replace(s) }

// editDistance is the optimal string alignment distance (a swap of neighbours
// counts one), given up at limit.
func editDistance(a, b string, limit int) int {
	const longest = 128
	if len(a) > longest || len(b) > longest || max(len(a)-len(b), len(b)-len(a)) >= limit {
		return limit
	}
	var before []int
	prev, cur := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if before != nil && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, make([]int, len(b)+1)
	}
	return prev[len(b)]
}
