package console

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// collect reads the arguments from a submitted form: it is the reverse of drawForm. The names of the
// controls begin with v: for a value, n: for the number of entries, k: for the key of an entry, c: for the
// branch of a choice, p: for an optional value that is present, z: for null and e: for the empty text.
//
// action is the change that a button of the form makes: "add NAME", "remove NAME" or "open NAME", where NAME
// is the name of a field. Other actions change nothing.
func collect(s schema, posted url.Values, action string) any {
	f := &collector{posted: posted}
	f.verb, f.target, _ = strings.Cut(action, " ")
	s.again()
	v, _ := f.value(s, "", true, 0)
	if v == nil {
		return newObject()
	}
	return v
}

type collector struct {
	posted       url.Values
	verb, target string // the parts of the action
	fields       int
}

// asks reports whether the action is verb, for a given field.
func (f *collector) asks(verb, name string) bool { return f.verb == verb && f.target == name }

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
			at := name + "/" + strconv.Itoa(i)
			if f.asks("remove", at) {
				continue
			}
			v, ok := f.value(s.item(i), at, true, depth+1)
			if !ok {
				v = blank{}
			}
			list = append(list, v)
		}
		if f.asks("add", name) && len(list) < maxEntries {
			list = append(list, initial(s.item(len(list)), 0))
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
		return text, true // validation reports it with its place
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

// blank is an item without input: the form shows it, and the arguments leave it out.
type blank struct{}

// settled returns the arguments of a form: its value without blank items.
func settled(v any) any {
	switch v := v.(type) {
	case *object:
		out := newObject()
		for _, k := range v.keys {
			if v.of[k] != (blank{}) {
				out.Set(k, settled(v.of[k]))
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

// json reads a control with JSON. Invalid JSON counts as a string, which validation then checks.
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
		return newObject(), true // the person has just chosen the branch
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
			sub, at := s.sub(props.of[k]), v1.Pointer(name, k)
			v, ok := f.value(sub, at, s.required(k), depth+1)
			if !ok && f.asks("open", at) {
				v, ok = initial(sub, 0), true
			}
			if ok && !f.asks("remove", at) {
				out.Set(k, v)
			}
		}
	}
	values, _ := s.freeValues()
	for i := range f.count(name) {
		at := name + "/~k" + strconv.Itoa(i)
		if !f.posted.Has("k:"+at) || f.asks("remove", at) {
			continue
		}
		v, ok := f.value(values, at, true, depth+1)
		if !ok {
			v = blank{}
		}
		out.Set(f.posted.Get("k:"+at), v)
	}
	if f.asks("add", name) && len(out.keys) < maxEntries {
		out.Set(freeKey(out), initial(values, 0))
	}
	return out
}

// maxEntries limits the entries of a list or an object in a form.
const maxEntries = 500

func (f *collector) count(name string) int {
	n, _ := strconv.Atoi(f.posted.Get("n:" + name))
	return max(0, min(n, maxEntries))
}

// begin returns the initial value of a form.
func begin(s schema) *object {
	if o, ok := initial(s.again(), 0).(*object); ok {
		return o
	}
	return newObject()
}

// initial returns the initial value for a schema: its defaults, the required objects, and the first item of
// each required list.
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
				o.Set(k, v)
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

// maxFirstItems is the depth up to which a list starts with one item.
const maxFirstItems = 5

// freeKey returns a key that an object does not have.
func freeKey(o *object) string {
	for n := 1; ; n++ {
		if k := "key" + strconv.Itoa(n); !o.has(k) {
			return k
		}
	}
}

// place assigns violations to their fields by JSON Pointer. It returns the fields with violations, and the
// violations without a field. A missing property is reported at its own field if the form has one.
func place(root *field, violations []v1.Violation) (wrong []*field, left []v1.Violation) {
	by := map[string]*field{}
	root.each(func(f *field) { by[f.Pointer] = f }) // for a choice, the innermost field counts
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
