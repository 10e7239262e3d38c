package manifest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
)

var rawMessage = reflect.TypeFor[json.RawMessage]()

// A field is one JSON member of a struct.
type field struct {
	index []int
	typ   reflect.Type
	// keepEmpty distinguishes an empty list from an absent one (json omitzero).
	keepEmpty bool
	// single accepts a single value in place of a list.
	single bool
	// null makes null a value, distinct from an absent field.
	null bool
	// path marks a path, or a list of paths, that must stay inside the folder.
	path bool
}

type fieldTable struct {
	byName map[string]field
	names  []string
}

var tables sync.Map // reflect.Type -> *fieldTable

// tableOf returns the fields of a struct by JSON name; embedded structs are inline.
func tableOf(t reflect.Type) *fieldTable {
	if c, ok := tables.Load(t); ok {
		return c.(*fieldTable)
	}
	c := &fieldTable{byName: map[string]field{}}
	for _, f := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous || !f.IsExported() || name == "-" || name == "" {
			continue
		}
		c.byName[name] = field{index: f.Index, typ: f.Type, keepEmpty: opts == "omitzero", single: hasRule(f, "single"), null: hasRule(f, "null"), path: hasRule(f, "path")}
		c.names = append(c.names, name)
	}
	tables.Store(t, c)
	return c
}

// hasRule reports whether the check tag of a field has a rule.
func hasRule(f reflect.StructField, rule string) bool {
	return slices.Contains(strings.Split(f.Tag.Get("check"), ","), rule)
}

// decode stores the value of n in v and reports whether the types match.
func (d *document) decode(n *yaml.Node, v reflect.Value) bool {
	if !d.spend(n, 1) {
		return false
	}
	if v.Type() == rawMessage {
		raw := d.rawJSON(n)
		if raw == nil {
			return false
		}
		v.SetBytes(raw)
		return true
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		if !d.decode(n, p.Elem()) {
			return false
		}
		v.Set(p)
		return true
	case reflect.Struct:
		return d.decodeStruct(n, v)
	case reflect.Slice:
		return d.decodeSlice(n, v)
	case reflect.Map:
		return d.decodeMap(n, v)
	}
	return d.decodeScalar(n, v)
}

func (d *document) decodeStruct(n *yaml.Node, v reflect.Value) bool {
	if n.Kind != yaml.MappingNode {
		return d.mismatch(n, "object")
	}
	table := tableOf(v.Type())
	if d.promptKit {
		d.dropShadowed(n, table)
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, val := n.Content[i], n.Content[i+1]
		f, ok := table.byName[k.Value]
		if !ok && d.promptKit {
			f, ok = table.byName[promptKitFields[k.Value]]
		}
		d.path = append(d.path, step{key: k.Value, index: -1})
		switch {
		case !ok && d.extension(k.Value, val, v):
		case !ok && d.promptKit && d.isPromptKitExtra(val):
		case !ok:
			d.unknown(k, table, d.extensionNames(v.Type()))
		case val.Kind == yaml.ScalarNode && val.Tag == tagNull && (!f.null || val.Value == ""): // null means absent
		default:
			if val.Kind == yaml.ScalarNode && f.single {
				val = &yaml.Node{Kind: yaml.SequenceNode, Line: val.Line, Column: val.Column, Content: []*yaml.Node{val}}
			}
			d.decode(val, v.FieldByIndex(f.index))
			if f.path {
				d.keepPaths(v.FieldByIndex(f.index))
			}
			if e := v.FieldByIndex(f.index); !f.keepEmpty && (e.Kind() == reflect.Slice || e.Kind() == reflect.Map) && e.Len() == 0 {
				e.SetZero()
			}
		}
		d.path = d.path[:len(d.path)-1]
	}
	return true
}

// keepPaths records the paths in a field. A later check verifies that they stay inside the folder.
func (d *document) keepPaths(v reflect.Value) {
	switch value := v.Interface().(type) {
	case string:
		d.paths = append(d.paths, namedPath{d.pointer(), value})
	case []string:
		for i, p := range value {
			d.paths = append(d.paths, namedPath{v1.Pointer(d.pointer(), strconv.Itoa(i)), p})
		}
	}
}

// extensionKinds maps each type to which programs may add fields to its kind.
var extensionKinds = map[reflect.Type]string{
	reflect.TypeFor[v1.ToolSpec]():       v1.KindTool,
	reflect.TypeFor[v1.ToolPolicySpec](): v1.KindToolPolicy,
}

// extensionNames returns the fields that extensions add to a struct.
func (d *document) extensionNames(t reflect.Type) []string {
	var names []string
	for _, e := range d.extensions {
		if e.Kind == extensionKinds[t] && len(e.Schema) > 0 {
			names = append(names, e.Name)
		}
	}
	return names
}

// extension stores the value of an extension field of v as written, for validation by its schema. It
// reports whether the field exists.
func (d *document) extension(name string, n *yaml.Node, v reflect.Value) bool {
	if len(d.extensions) == 0 || !slices.Contains(d.extensionNames(v.Type()), name) {
		return false
	}
	all := v.FieldByName("Extensions").Addr().Interface().(*v1.Extensions)
	if raw := d.rawJSON(n); raw != nil && (n.Kind != yaml.ScalarNode || n.Tag != tagNull) {
		if *all == nil {
			*all = v1.Extensions{}
		}
		(*all)[name], d.extended = raw, true
	}
	return true
}

func (d *document) unknown(k *yaml.Node, table *fieldTable, more []string) {
	f := v1.Violation{Expected: "a known field", Got: strconv.Quote(clip.Bytes(k.Value, maxShown)), Message: fmt.Sprintf("unknown field %q", clip.Bytes(k.Value, maxShown))}
	if d.muted() {
		return
	}
	if d.promptKit || d.markdown {
		f.Severity = v1.SeverityWarning
		f.Message += ": ignored"
		d.violation(k, f)
		return
	}
	near := v1.Nearest(k.Value, slices.Concat(table.names, more))
	if near != "" {
		f.Expected = strconv.Quote(near)
		f.Message += fmt.Sprintf("; did you mean %q?", near)
		p := d.pointer()
		d.misspelt = append(d.misspelt, p[:strings.LastIndexByte(p, '/')+1]+near)
	} else if _, kind := member(d.root, "kind"); len(more) == 0 {
		if place := elsewhere(kind, k.Value); place != "" {
			f.Expected = place
			f.Message += "; did you mean " + place + "?"
		}
	}
	d.error(k, f)
}

// elsewhere returns the path of the field with this name that is nearest to the root of a kind, or ""
// if there is no such field or several at the same depth.
func elsewhere(kind, name string) string {
	const deepest = 5
	type parent struct {
		t    reflect.Type
		path string
	}
	o := v1.NewObject(kind)
	if o == nil {
		return ""
	}
	level := []parent{{reflect.TypeOf(o).Elem(), ""}}
	for range deepest {
		var places []string
		var below []parent
		for _, p := range level {
			for _, key := range tableOf(p.t).names {
				path := p.path + key
				if key == name {
					places = append(places, path)
				}
				t := elem(p.t, key)
				for t != nil && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
					path += map[reflect.Kind]string{reflect.Slice: "[]", reflect.Map: ".*"}[t.Kind()]
					t = elem(t, "")
				}
				if t != nil && t.Kind() == reflect.Struct {
					below = append(below, parent{t, path + "."})
				}
			}
		}
		if len(places) == 1 {
			return places[0]
		}
		if len(places) > 1 {
			return ""
		}
		level = below
	}
	return ""
}

func (d *document) decodeSlice(n *yaml.Node, v reflect.Value) bool {
	if n.Kind != yaml.SequenceNode {
		return d.mismatch(n, "array")
	}
	s := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	kept := 0
	for i, c := range n.Content {
		d.path = append(d.path, step{index: i})
		if d.decode(c, s.Index(kept)) {
			kept++
		} else {
			s.Index(kept).SetZero()
			if !d.promptKit {
				kept++ // keep the index of the items that follow
			}
		}
		d.path = d.path[:len(d.path)-1]
		if d.full {
			break
		}
	}
	v.Set(s.Slice(0, kept))
	return true
}

func (d *document) decodeMap(n *yaml.Node, v reflect.Value) bool {
	if n.Kind != yaml.MappingNode {
		return d.mismatch(n, "object")
	}
	m := reflect.MakeMapWithSize(v.Type(), len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !d.full; i += 2 {
		k := n.Content[i].Value
		e := reflect.New(v.Type().Elem()).Elem()
		d.path = append(d.path, step{key: k, index: -1})
		if d.decode(n.Content[i+1], e) {
			m.SetMapIndex(reflect.ValueOf(k), e)
		}
		d.path = d.path[:len(d.path)-1]
	}
	v.Set(m)
	return true
}

func (d *document) decodeScalar(n *yaml.Node, v reflect.Value) bool {
	scalar := n.Kind == yaml.ScalarNode
	switch v.Kind() {
	case reflect.String:
		if !scalar || n.Tag != tagStr {
			d.mismatch(n, "string")
			if !d.promptKit || !scalar || n.Tag == tagNull {
				return false
			}
		}
		v.SetString(n.Value)
		return true
	case reflect.Bool:
		if !scalar || n.Tag != tagBool {
			return d.mismatch(n, "boolean")
		}
		v.SetBool(n.Value == "true")
		return true
	case reflect.Int, reflect.Int64:
		if !scalar || n.Tag != tagInt {
			return d.mismatch(n, "integer")
		}
		i, err := strconv.ParseInt(n.Value, 10, 64)
		if err != nil || v.OverflowInt(i) {
			return d.outOfRange(n, "an integer of 64 bits")
		}
		v.SetInt(i)
		return true
	case reflect.Float64:
		if !scalar || n.Tag != tagInt && n.Tag != tagFloat {
			return d.mismatch(n, "number")
		}
		f, err := strconv.ParseFloat(n.Value, 64)
		if err != nil {
			return d.outOfRange(n, "a number of 64 bits")
		}
		v.SetFloat(f)
		return true
	}
	panic("manifest: api/v1 has a field of a type that is not read: " + v.Type().String())
}

func (d *document) outOfRange(n *yaml.Node, want string) bool {
	d.soft(n, v1.Violation{Expected: want, Got: describe(n), Message: fmt.Sprintf("%s is out of range: expected %s", clip.Bytes(n.Value, maxShown), want)})
	return false
}

// mismatch records a value of the wrong type, and suggests a correction where one is obvious.
func (d *document) mismatch(n *yaml.Node, want string) bool {
	got := describe(n)
	msg := "expected " + want + ", got " + got
	switch isString := n.Kind == yaml.ScalarNode && n.Tag == tagStr; {
	case want == "string" && n.Kind == yaml.ScalarNode && n.Tag != tagNull && !isString:
		msg += ": quote it"
	case want == "boolean" && isString:
		switch strings.ToLower(n.Value) {
		case "y", "yes", "on", "true":
			msg += ": write true"
		case "n", "no", "off", "false":
			msg += ": write false"
		}
	case (want == "integer" || want == "number") && isString:
		tag, text, reason := resolvePlain(n.Value)
		if reason == "" && (tag == tagInt || tag == tagFloat && want == "number") {
			msg += ": write " + text + " without quotes"
		}
	case want == "array" && n.Kind == yaml.ScalarNode && n.Tag != tagNull:
		msg += ": write it as a list"
	}
	d.soft(n, v1.Violation{Expected: want, Got: got, Message: msg})
	return false
}

// rawJSON returns the value as compact JSON with the keys in their written order, or nil if a bound
// was reached.
func (d *document) rawJSON(n *yaml.Node) json.RawMessage {
	d.buf.Reset()
	d.writeJSON(n, 0)
	if d.full {
		return nil
	}
	return bytes.Clone(d.buf.Bytes())
}

func (d *document) writeJSON(n *yaml.Node, depth int) {
	// Expanded aliases can be nested deeper than the written text, so depth is checked here again.
	if depth > maxDepth {
		d.overflow(n, fmt.Sprintf("nested deeper than %d levels", maxDepth))
	}
	if !d.spend(n, 1) {
		return
	}
	b, start := &d.buf, d.buf.Len()
	switch n.Kind {
	case yaml.MappingNode:
		b.WriteByte('{')
		for i := 0; i+1 < len(n.Content); i += 2 {
			if i > 0 {
				b.WriteByte(',')
			}
			jsontext.AppendString(b, n.Content[i].Value)
			b.WriteByte(':')
			d.writeJSON(n.Content[i+1], depth+1)
		}
		b.WriteByte('}')
		return
	case yaml.SequenceNode:
		b.WriteByte('[')
		for i, c := range n.Content {
			if i > 0 {
				b.WriteByte(',')
			}
			d.writeJSON(c, depth+1)
		}
		b.WriteByte(']')
		return
	}
	if n.Tag == tagStr {
		jsontext.AppendString(b, n.Value)
	} else {
		b.WriteString(cmp.Or(n.Value, "null"))
	}
	if d.bytes += b.Len() - start; d.bytes > maxJSONBytes {
		d.overflow(n, fmt.Sprintf("the document expands to more than %d MiB", maxJSONBytes>>20))
	}
}
