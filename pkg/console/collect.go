package console

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// collect reads the arguments from a form as it was sent: the other direction of drawForm.
// The names of its controls begin with v: for a value, n: for how many entries there are, k:
// for the key of an entry, c: for the branch of a choice, p: for what is there although it may
// be left out, z: for null and e: for the empty text.
func collect(s schema, posted url.Values) any {
	f := &collector{posted: posted}
	s.again()
	v, _ := f.value(s, "", true, 0)
	if v == nil {
		return newObject()
	}
	return v
}

type collector struct {
	posted url.Values
	fields int
}

func (f *collector) value(s schema, name string, required bool, depth int) (any, bool) {
	f.fields++
	if s.at == nil || f.fields > maxFields || depth > maxDepth || f.posted.Has("j:"+name) {
		return f.json(name)
	}
	if c, ok := s.at.of["const"]; ok {
		if required || f.posted.Has("p:"+name) {
			return c, true
		}
		return nil, false
	}
	if list, _ := s.at.get("enum").([]any); len(list) > 0 {
		return f.json(name)
	}
	all, kind, nullable := s.shape()
	switch {
	case all != nil:
		return f.choice(all, name, depth)
	case nullable && f.posted.Has("z:"+name):
		return nil, true
	case kind == "":
		return f.json(name)
	}
	switch kind {
	case "object":
		if name != "" && !f.posted.Has("p:"+name) {
			return nil, false
		}
		return f.object(s, name, depth), true
	case "array":
		if !f.posted.Has("p:" + name) {
			return nil, false
		}
		list := []any{}
		for i := range f.count(name) {
			v, ok := f.value(s.item(i), name+"/"+strconv.Itoa(i), true, depth+1)
			if !ok {
				v = blank{}
			}
			list = append(list, v)
		}
		return list, true
	case "boolean":
		return f.json(name)
	case "null":
		return nil, required || f.posted.Has("p:"+name)
	case "integer", "number":
		text := strings.TrimSpace(f.posted.Get("v:" + name))
		switch {
		case text == "":
			return nil, false
		case isNumber(text):
			return json.Number(text), true
		}
		return text, true // which validation refuses, with the place
	}
	if !f.posted.Has("v:" + name) {
		return nil, false
	}
	text := strings.ReplaceAll(f.posted.Get("v:"+name), "\r\n", "\n")
	if text == "" && !f.posted.Has("e:"+name) {
		return nil, false
	}
	return text, true
}

// blank is an item that nothing was typed into: the form has it, the arguments do not.
type blank struct{}

// settled are the arguments of a form: its value without what is blank.
func settled(v any) any {
	switch v := v.(type) {
	case *object:
		out := newObject()
		for _, k := range v.keys {
			if v.of[k] != (blank{}) {
				out.set(k, settled(v.of[k]))
			}
		}
		return out
	case []any:
		out := []any{}
		for _, one := range v {
			if one != (blank{}) {
				out = append(out, settled(one))
			}
		}
		return out
	}
	return v
}

func isNumber(text string) bool {
	var n json.Number
	return json.Unmarshal([]byte(text), &n) == nil && !strings.HasPrefix(text, `"`) && text != "null"
}

// json reads a control that holds JSON. What is not is a text, which validation judges.
func (f *collector) json(name string) (any, bool) {
	text := strings.TrimSpace(f.posted.Get("v:" + name))
	if text == "" {
		return nil, false
	}
	v, err := decode([]byte(text))
	if err != nil {
		return text, true
	}
	return v, true
}

func (f *collector) choice(all []schema, name string, depth int) (any, bool) {
	if _, list := constants(all); list != nil {
		return f.json(name)
	}
	at, err := strconv.Atoi(f.posted.Get("c:" + name))
	if err != nil || at < 0 || at >= len(all) {
		return nil, false
	}
	v, ok := f.value(all[at], name+"/~c", true, depth+1)
	if !ok && slices.Contains(all[at].types(), "object") {
		return newObject(), true // the branch was chosen just now
	}
	if !ok && slices.Contains(all[at].types(), "array") {
		return []any{}, true
	}
	return v, ok
}

func (f *collector) object(s schema, name string, depth int) *object {
	out := newObject()
	props, _ := s.at.get("properties").(*object)
	if props != nil {
		for _, k := range props.keys {
			if props.of[k] == false {
				continue
			}
			if v, ok := f.value(s.sub(props.of[k]), v1.Pointer(name, k), s.required(k), depth+1); ok {
				out.set(k, v)
			}
		}
	}
	values, _ := s.freeValues()
	for i := range f.count(name) {
		at := name + "/~k" + strconv.Itoa(i)
		if !f.posted.Has("k:" + at) {
			continue
		}
		v, ok := f.value(values, at, true, depth+1)
		if !ok {
			v = blank{}
		}
		out.set(f.posted.Get("k:"+at), v)
	}
	return out
}

// maxEntries bounds the entries of one list or object of a form.
const maxEntries = 500

func (f *collector) count(name string) int {
	n, _ := strconv.Atoi(f.posted.Get("n:" + name))
	return max(0, min(n, maxEntries))
}

// begin is the value with which a whole form begins.
func begin(s schema) *object {
	if o, ok := initial(s.again(), 0).(*object); ok {
		return o
	}
	return newObject()
}

// initial is the value with which a form begins: the defaults of the schema, the objects that a
// call needs, and the first item of each list that it needs.
func initial(s schema, depth int) any {
	if s.at == nil || depth > maxDepth {
		return blank{}
	}
	if d, ok := s.at.of["default"]; ok {
		return d
	}
	types := s.types()
	switch {
	case s.at.has("enum") || len(s.choices()) > 0:
	case slices.Contains(types, "object"):
		o := newObject()
		props, _ := s.at.get("properties").(*object)
		if props == nil {
			return o
		}
		for _, k := range props.keys {
			sub := s.sub(props.of[k])
			if sub.at == nil {
				continue
			}
			nested := s.required(k) && !slices.Contains(sub.types(), "null") && slices.ContainsFunc([]string{"object", "array"}, func(t string) bool { return slices.Contains(sub.types(), t) })
			if v := initial(sub, depth+1); v != (blank{}) && (nested || sub.at.has("default")) {
				o.set(k, v)
			}
		}
		return o
	case slices.Contains(types, "array"):
		if depth > maxFirstItems {
			return []any{}
		}
		return []any{initial(s.item(0), depth+1)}
	}
	return blank{}
}

// maxFirstItems is how deep in the arguments a list begins with an item.
const maxFirstItems = 5

// change does what a button of the form says to the arguments: "add NAME", "remove NAME" or
// "open NAME", where NAME is that of a field.
func change(s schema, value any, posted url.Values, action string) any {
	verb, name, _ := strings.Cut(action, " ")
	s.again()
	parts := strings.Split(strings.TrimPrefix(name, "/"), "/")
	if name == "" {
		parts = nil
	}
	return (&changer{posted, verb}).changed(s, value, "", parts)
}

type changer struct {
	posted url.Values
	verb   string
}

func (c *changer) changed(s schema, value any, name string, path []string) any {
	if s.at == nil {
		return value
	}
	verb := c.verb
	if all := s.choices(); len(all) > 0 && len(path) > 0 && path[0] == "~c" {
		at, err := strconv.Atoi(c.posted.Get("c:" + name))
		if err != nil || at < 0 || at >= len(all) {
			return value
		}
		return c.changed(all[at], value, name+"/~c", path[1:])
	}
	if len(path) > 0 && path[0] == "~c" { // one of several types
		name, path = name+"/~c", path[1:]
	}
	if len(path) == 0 {
		switch v := value.(type) {
		case []any:
			if verb == "add" && len(v) < maxEntries {
				return append(slices.Clip(v), initial(s.item(len(v)), 0))
			}
		case *object:
			if verb == "add" && len(v.keys) < maxEntries {
				values, _ := s.freeValues()
				out := v.clone()
				out.set(freeKey(v), initial(values, 0))
				return out
			}
		}
		return value
	}
	key := path[0]
	switch v := value.(type) {
	case *object:
		sub, k := s.entry(v, key)
		out := v.clone()
		switch {
		case len(path) == 1 && verb == "remove":
			out.drop(k)
		case len(path) == 1 && verb == "open" && !out.has(k):
			out.set(k, initial(sub, 0))
		default:
			out.set(k, c.changed(sub, out.of[k], name+"/"+key, path[1:]))
		}
		return out
	case []any:
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(v) {
			return value
		}
		out := slices.Clone(v)
		if len(path) == 1 && verb == "remove" {
			return slices.Delete(out, i, i+1)
		}
		out[i] = c.changed(s.item(i), out[i], name+"/"+key, path[1:])
		return out
	}
	return value
}

// entry returns the schema and the key of a part of an object, by the part of a field's name.
func (s schema) entry(o *object, part string) (schema, string) {
	props, _ := s.at.get("properties").(*object)
	if n, ok := strings.CutPrefix(part, "~k"); ok {
		values, _ := s.freeValues()
		i, _ := strconv.Atoi(n)
		for _, k := range o.keys {
			if props.has(k) {
				continue
			}
			if i == 0 {
				return values, k
			}
			i--
		}
		return values, ""
	}
	k := v1.Tokens("/" + part)[0]
	if !props.has(k) {
		return schema{doc: s.doc}, k
	}
	return s.sub(props.of[k]), k
}

// freeKey is a key that an object does not have.
func freeKey(o *object) string {
	for n := 1; ; n++ {
		if k := "key" + strconv.Itoa(n); !o.has(k) {
			return k
		}
	}
}

// place puts violations at their fields, by JSON pointer. It returns the fields that have some, and the
// violations that have no field. A property that is missing is told at its own field when the form has it.
func place(root *field, violations []v1.Violation) (wrong []*field, left []v1.Violation) {
	by := map[string]*field{}
	root.each(func(f *field) { by[f.Pointer] = f }) // the innermost of a choice
	for _, v := range violations {
		at := v.Path
		for by[at] == nil && at != "" {
			at = at[:strings.LastIndexByte(at, '/')]
		}
		if f := by[at]; f != nil && at != "" {
			f.Violations = append(f.Violations, v)
			continue
		}
		left = append(left, v)
	}
	root.each(func(f *field) {
		if len(f.Violations) > 0 {
			wrong = append(wrong, f)
		}
	})
	return wrong, left
}

func (f *field) each(visit func(*field)) {
	visit(f)
	for _, one := range f.Fields {
		one.each(visit)
	}
}
