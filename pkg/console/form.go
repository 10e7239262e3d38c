package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// Kinds of a [field].
const (
	kindObject  = "object"
	kindList    = "list"
	kindChoice  = "choice"
	kindText    = "text"
	kindNumber  = "number"
	kindBoolean = "boolean"
	kindEnum    = "enum"
	kindFixed   = "fixed"
	kindJSON    = "json"
	kindNothing = "nothing"
)

// field is a field of a form, ready to be rendered. Name identifies its controls in the form; Pointer is
// the place of its value in the arguments.
type field struct {
	Kind, Name, Pointer string
	Label, Description  string
	Required, Nullable  bool
	Open                bool // an optional object, list or choice is present
	Null                bool // the value is null
	Text                string
	Empty               bool   // the value is "", although the field is optional
	Input               string // the type of an <input>
	Hint                string
	Options             []option
	Fields              []*field
	Key                 string // key of an entry with a free name
	Keyed               bool   // the field is such an entry
	Removable           bool
	Adds                string // label of the button that adds an entry; empty for no button
	Count               int    // number of entries
	Suggestions         []string
	Violations          []v1.Violation
	Depth               int
}

type option struct {
	Value, Label string
	Selected     bool
}

// ID returns the HTML id of the field.
func (f *field) ID() string {
	return "f" + strings.NewReplacer("/", "-", "~", "_", " ", "_").Replace(f.Name)
}

// Place returns the path of the field in the arguments, such as "customer.name".
func (f *field) Place() string {
	return strings.ReplaceAll(strings.TrimPrefix(f.Pointer, "/"), "/", ".")
}

// Limits of a form. Fields beyond them are edited as JSON.
const (
	maxFields  = 1500
	maxDepth   = 12
	maxChoices = 60
)

// form draws schemas as fields.
type form struct {
	posted url.Values // the submitted form; nil for a new one
	fields int
}

// drawForm returns the root field of a form with a value.
func drawForm(s schema, value any, posted url.Values) *field {
	f := &form{posted: posted}
	s.again()
	root := f.draw(s, value, true, "", "", 0)
	root.Required, root.Open, root.Label = true, true, ""
	return root
}

// draw returns the field of a schema; has reports whether there is a value.
func (f *form) draw(s schema, value any, has bool, name, pointer string, depth int) *field {
	f.fields++
	if value == (blank{}) {
		value, has = nil, false
	}
	out := &field{Name: name, Pointer: pointer, Depth: depth, Open: has, Label: s.text("title"), Description: s.text("description")}
	if s.at == nil || f.fields > maxFields || depth > maxDepth {
		return out.json(value, has)
	}
	if d, ok := s.at.of["default"]; ok {
		out.Hint = "default " + clipped(jsonText(d), 60)
	}
	if list, _ := s.at.get("examples").([]any); len(list) > 0 {
		for _, one := range list[:min(len(list), 8)] {
			out.Suggestions = append(out.Suggestions, plainText(one))
		}
	}
	if c, ok := s.at.of["const"]; ok {
		out.Kind, out.Text = kindFixed, jsonText(c)
		if has && jsonText(value) != out.Text {
			return out.json(value, has)
		}
		return out
	}
	if list, _ := s.at.get("enum").([]any); len(list) > 0 {
		return out.enum(list, nil, value, has)
	}
	all, kind, nullable := s.shape()
	if all != nil {
		return f.choice(out, all, value, has)
	}
	if kind == "" {
		return out.json(value, has)
	}
	if out.Nullable, out.Null = nullable, nullable && has && value == nil; out.Null {
		value, has = nil, false
	}
	switch kind {
	case "object":
		o, ok := value.(*object)
		if has && !ok {
			return out.json(value, has)
		}
		return f.object(out, s, o, name, pointer, depth)
	case "array":
		list, ok := value.([]any)
		if has && !ok {
			return out.json(value, has)
		}
		return f.list(out, s, list, name, pointer, depth)
	case "boolean":
		return out.enum([]any{true, false}, map[string]string{"true": "yes (true)", "false": "no (false)"}, value, has)
	case "null":
		out.Kind, out.Text = kindFixed, "null"
		return out
	case "integer", "number":
		out.Kind, out.Text, out.Input = kindNumber, plainText(value), "text"
		out.Hint = joined(kind, bounds(s), out.Hint)
		if _, isText := value.(string); has && !isText {
			if _, isNumber := value.(json.Number); !isNumber {
				return out.json(value, has)
			}
		}
		if !has {
			out.Text = ""
		}
		return out
	}
	return out.string(s, value, has)
}

func (out *field) string(s schema, value any, has bool) *field {
	text, ok := value.(string)
	if has && (!ok || strings.ContainsAny(text, "\r\x00") || strings.ContainsRune(text, '\uFFFD')) {
		return out.json(value, has)
	}
	out.Kind, out.Text, out.Input = kindText, text, "text"
	format := s.text("format")
	out.Hint = joined(cmp.Or(formats[format], format), bounds(s), out.Hint)
	switch format {
	case "date":
		if text == "" || len(text) == len("2006-01-02") {
			out.Input = "date"
		}
	case "email", "idn-email":
		out.Input = "email"
	case "uri", "iri":
		out.Input = "url"
	}
	switch {
	case multiline(s) || strings.Contains(text, "\n"):
		out.Input = ""
	case strings.TrimSpace(text) != text: // the other types trim the space
		out.Input = "text"
	}
	out.Empty = has && text == ""
	return out
}

// formats describes the formats of strings.
var formats = map[string]string{
	"date": "date, such as 2026-12-31", "time": "time with its zone, such as 19:30:00Z or 19:30:00+01:00", "date-time": "date and time with its zone, such as 2026-12-31T19:30:00Z",
	"duration": "duration, such as PT1H30M", "email": "email address", "idn-email": "email address", "uri": "address, such as https://example.com/", "uuid": "UUID, such as 123e4567-e89b-12d3-a456-426614174000",
	"ipv4": "IPv4 address", "ipv6": "IPv6 address", "hostname": "host name, such as www.example.com", "regex": "regular expression", "json-pointer": "JSON pointer, such as /a/0",
}

// maxLine is the longest string, in characters, that gets a one-line control.
const maxLine = 200

// multiline reports whether a schema suggests text of several lines, by its length, content, format or examples.
func multiline(s schema) bool {
	if n, err := strconv.Atoi(plainText(s.at.get("maxLength"))); err == nil && n > maxLine || s.at.has("contentMediaType") {
		return true
	}
	return slices.Contains([]string{"multiline", "textarea", "markdown"}, s.text("format")) ||
		strings.Contains(jsonText([]any{s.at.get("default"), s.at.get("examples")}), `\n`)
}

func (out *field) json(value any, has bool) *field {
	out.Kind, out.Fields, out.Options = kindJSON, nil, nil
	if has {
		out.Text = jsonText(value)
	}
	return out
}

func (out *field) enum(list []any, labels map[string]string, value any, has bool) *field {
	out.Kind = kindEnum
	at := jsonText(value)
	found := false
	for _, one := range list {
		text := jsonText(one)
		label, ok := labels[text]
		if !ok {
			label = plainText(one)
		}
		switch {
		case one == nil:
			label = sendNull
		case label == "":
			label = text
		}
		here := has && text == at
		found = found || here
		out.Options = append(out.Options, option{text, label, here})
	}
	if has && !found {
		return out.json(value, has)
	}
	return out
}

// choice draws the chosen branch, or else the branch that fits the value best.
func (f *form) choice(out *field, all []schema, value any, has bool) *field {
	if labels, list := constants(all); list != nil {
		return out.enum(list, labels, value, has)
	}
	out.Kind = kindChoice
	at := -1
	if n, err := strconv.Atoi(f.posted.Get("c:" + out.Name)); err == nil && n >= 0 && n < len(all) {
		at = n
	} else if has {
		at = 0
		best := -1
		for i, one := range all {
			if n := fit(one, value, 0); n > best {
				at, best = i, n
			}
		}
		if best < 0 {
			return out.json(value, has)
		}
	}
	for i, one := range all {
		label := one.text("title")
		if label == "" {
			label = branchName(one, i)
		}
		out.Options = append(out.Options, option{strconv.Itoa(i), label, i == at})
	}
	if at >= 0 {
		if types := all[at].types(); len(all[at].choices()) == 0 && len(types) == 1 { // the person has just chosen the branch
			if _, ok := value.(*object); types[0] == "object" && !ok {
				value, has = newObject(), true
			}
			if _, ok := value.([]any); types[0] == "array" && !ok {
				value, has = []any{}, true
			}
		}
		inner := f.draw(all[at], value, has, out.Name+"/~c", out.Pointer, out.Depth+1)
		inner.Required, inner.Open, inner.Label = true, true, ""
		out.Fields = []*field{inner}
	}
	return out
}

// constants returns the values of branches that each allow only one value, with their titles.
func constants(all []schema) (labels map[string]string, list []any) {
	labels = map[string]string{}
	for _, one := range all {
		c, ok := one.at.of["const"]
		if !ok {
			return nil, nil
		}
		list = append(list, c)
		if t := one.text("title"); t != "" {
			labels[jsonText(c)] = t
		}
	}
	return labels, list
}

// sendNull is the label of the choice that sends null rather than nothing.
const sendNull = "Send null"

func branchName(s schema, i int) string {
	if c, ok := s.at.of["const"]; ok {
		return plainText(c)
	}
	name := strings.Join(s.types(), " or ")
	if name == "null" {
		return sendNull
	}
	if props, _ := s.at.get("properties").(*object); props != nil {
		for _, k := range props.keys { // a discriminator names the branch best
			if p, ok := props.of[k].(*object); ok && p.has("const") {
				return k + " = " + plainText(p.get("const"))
			}
		}
		var names []string
		for _, k := range props.keys {
			if s.required(k) {
				names = append(names, k)
			}
		}
		if len(names) == 0 {
			names = props.keys
		}
		name += " with " + clipped(strings.Join(names, ", "), 60)
	}
	if name == "" {
		name = fmt.Sprintf("choice %d", i+1)
	}
	return name
}

// fit returns how well a value fits a schema; -1 if the value is invalid.
func fit(s schema, value any, depth int) int {
	if s.at == nil || depth > maxDepth {
		return 0
	}
	if c, ok := s.at.of["const"]; ok {
		if jsonText(c) != jsonText(value) {
			return -1
		}
		return 10
	}
	if list, _ := s.at.get("enum").([]any); len(list) > 0 {
		if !slices.ContainsFunc(list, func(v any) bool { return jsonText(v) == jsonText(value) }) {
			return -1
		}
		return 10
	}
	if all := s.choices(); len(all) > 0 {
		best := -1
		for _, one := range all {
			best = max(best, fit(one, value, depth+1))
		}
		return best
	}
	types := s.types()
	if len(types) > 0 && s.at.has("type") && !slices.ContainsFunc(types, func(t string) bool { return isType(value, t) }) {
		return -1
	}
	score := 0
	if len(types) > 0 {
		score++
	}
	o, ok := value.(*object)
	if !ok {
		return score
	}
	props, _ := s.at.get("properties").(*object)
	required, _ := s.at.get("required").([]any)
	for _, name := range required {
		if text, _ := name.(string); !o.has(text) {
			score -= 3
		}
	}
	for _, k := range o.keys {
		if !props.has(k) {
			if s.at.get("additionalProperties") == false {
				return -1
			}
			continue
		}
		n := fit(s.sub(props.of[k]), o.of[k], depth+1)
		if n < 0 {
			return -1
		}
		score += n + 1
	}
	return max(0, score+3*len(required))
}

func isType(v any, t string) bool {
	switch v := v.(type) {
	case nil:
		return t == "null"
	case bool:
		return t == "boolean"
	case string:
		return t == "string"
	case json.Number:
		return t == "number" || t == "integer" && !strings.ContainsAny(v.String(), ".eE")
	case []any:
		return t == "array"
	}
	return t == "object"
}

// object draws the properties of an object and its additional entries.
func (f *form) object(out *field, s schema, o *object, name, pointer string, depth int) *field {
	out.Kind = kindObject
	props, _ := s.at.get("properties").(*object)
	if out.Open = o != nil; o == nil {
		if depth > 0 {
			return out
		}
		o = newObject()
	}
	if props != nil {
		for _, k := range props.keys {
			sub := s.sub(props.of[k])
			if props.of[k] == false {
				continue
			}
			v, has := o.of[k]
			one := f.draw(sub, v, has, v1.Pointer(name, k), v1.Pointer(pointer, k), depth+1)
			if one.Required = s.required(k); one.Label == "" || one.Label == k {
				one.Label = k
			} else {
				one.Label = k + ": " + one.Label
			}
			out.Fields = append(out.Fields, one)
		}
	}
	values, free := s.freeValues()
	for _, k := range o.keys {
		if props.has(k) {
			continue
		}
		i := out.Count
		out.Count++
		one := f.draw(values, o.of[k], true, name+"/~k"+strconv.Itoa(i), v1.Pointer(pointer, k), depth+1)
		one.Key, one.Keyed, one.Required, one.Removable = k, true, true, true
		out.Fields = append(out.Fields, one)
	}
	if free {
		out.Adds = "Add an entry"
	}
	if len(out.Fields) == 0 && !free {
		out.Hint = joined(out.Hint, "no arguments")
	}
	return out
}

// freeValues returns the schema of additional entries of an object, and whether a form offers to add
// some.
func (s schema) freeValues() (schema, bool) {
	if patterns, _ := s.at.get("patternProperties").(*object); patterns != nil && len(patterns.keys) > 0 {
		return s.sub(patterns.of[patterns.keys[0]]), true
	}
	switch extra := s.at.get("additionalProperties").(type) {
	case *object:
		return s.sub(extra), true
	case bool:
		if !extra {
			return schema{doc: s.doc}, false
		}
		return schema{doc: s.doc}, true
	}
	props, _ := s.at.get("properties").(*object)
	return schema{doc: s.doc}, props == nil && s.at.get("unevaluatedProperties") != false
}

// list draws the items of an array.
func (f *form) list(out *field, s schema, list []any, name, pointer string, depth int) *field {
	out.Kind = kindList
	if out.Open = list != nil; list == nil {
		return out
	}
	out.Count = len(list)
	sent := 0
	for i, v := range list {
		at := "-"
		if v != (blank{}) {
			at = strconv.Itoa(sent)
			sent++
		}
		one := f.draw(s.item(i), v, true, name+"/"+strconv.Itoa(i), v1.Pointer(pointer, at), depth+1)
		one.Required, one.Removable = true, true
		one.Label = joinedBy(": ", fmt.Sprintf("Item %d", i+1), one.Label)
		out.Fields = append(out.Fields, one)
	}
	out.Adds = "Add an item"
	if n, err := strconv.Atoi(plainText(s.at.get("maxItems"))); err == nil && len(list) >= n {
		out.Adds = ""
	}
	out.Hint = joined(out.Hint, bounds(s))
	return out
}

// item returns the schema of an item of an array.
func (s schema) item(i int) schema {
	for _, key := range []string{"prefixItems", "items"} {
		if tuple, ok := s.at.get(key).([]any); ok && i < len(tuple) {
			return s.sub(tuple[i])
		}
	}
	if _, tuple := s.at.get("items").([]any); tuple {
		return s.sub(s.at.get("additionalItems"))
	}
	return s.sub(s.at.get("items"))
}

// bounds describes the other constraints of a schema.
func bounds(s schema) string {
	var parts []string
	for _, one := range []struct{ key, text, of string }{
		{"minimum", "at least %s", ""}, {"exclusiveMinimum", "more than %s", ""}, {"maximum", "at most %s", ""}, {"exclusiveMaximum", "less than %s", ""}, {"multipleOf", "a multiple of %s", ""},
		{"minLength", "at least %s", " character"}, {"maxLength", "at most %s", " character"}, {"pattern", "matches %s", ""}, {"minItems", "at least %s", " item"}, {"maxItems", "at most %s", " item"},
	} {
		v, ok := s.at.of[one.key]
		if _, flag := v.(bool); !ok || flag {
			continue
		}
		text := clipped(plainText(v), 80)
		if most, least := strings.CutPrefix(one.key, "min"); least && one.of != "" && plainText(s.at.get("max"+most)) == text {
			one.text = "exactly %s"
		} else if least, most := strings.CutPrefix(one.key, "max"); most && one.of != "" && plainText(s.at.get("min"+least)) == text {
			continue
		}
		if one.of != "" && text != "1" {
			one.of += "s"
		}
		parts = append(parts, fmt.Sprintf(one.text, text)+one.of)
	}
	if s.at.get("uniqueItems") == true {
		parts = append(parts, "no duplicates")
	}
	return joined(parts...)
}

func joined(parts ...string) string { return joinedBy(", ", parts...) }

func joinedBy(sep string, parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), sep)
}

func jsonText(v any) string {
	b, err := jsontext.Marshal(v)
	if err != nil {
		return ""
	}
	return string(b)
}

// plainText returns a value as a person types it.
func plainText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case json.Number:
		return v.String()
	}
	return jsonText(v)
}

func clipped(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n]) + "…"
	}
	return s
}
