package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// schemaDoc is a schema as documentation.
type schemaDoc struct {
	Rows []schemaRow
	Text string // the schema itself
	More bool   // some rows are left out
}

// schemaRow is one property.
type schemaRow struct {
	Name, Type, Description, Notes string
	Required                       bool
	Depth                          int
}

const maxSchemaRows = 400

func documented(raw json.RawMessage) schemaDoc {
	d := schemaDoc{Text: indented(raw)}
	s, err := readSchema(raw)
	if err != nil || s.at == nil {
		return d
	}
	d.describe(s, "", 0)
	return d
}

func (d *schemaDoc) describe(s schema, prefix string, depth int) {
	if depth > 6 || s.at == nil {
		return
	}
	props, _ := s.at.get("properties").(*object)
	if props == nil {
		return
	}
	for _, k := range props.keys {
		if len(d.Rows) >= maxSchemaRows {
			d.More = true
			return
		}
		sub := s.sub(props.of[k])
		row := schemaRow{Name: prefix + k, Required: s.required(k), Depth: depth}
		if sub.at != nil {
			row.Type, row.Description, row.Notes = typeName(sub), titled(sub), notes(sub)
		}
		d.Rows = append(d.Rows, row)
		if sub.at == nil {
			continue
		}
		if branches := sub.choices(); len(branches) > 0 {
			for i, b := range branches[:min(len(branches), 8)] {
				if b.at.has("properties") {
					d.Rows = append(d.Rows, schemaRow{Name: prefix + k, Type: "or: " + cmp.Or(b.text("title"), branchName(b, i)), Description: b.text("description"), Depth: depth + 1})
					d.describe(b, prefix+k+".", depth+2)
				}
			}
			continue
		}
		d.describe(sub, prefix+k+".", depth+1)
		if item := sub.item(0); slices.Contains(sub.types(), "array") && item.at != nil {
			d.describe(item, prefix+k+"[].", depth+1)
		}
	}
}

// titled returns the title and the description of a schema, only once if they are equal.
func titled(s schema) string {
	if s.text("title") == s.text("description") {
		return s.text("title")
	}
	return joinedBy(". ", s.text("title"), s.text("description"))
}

func typeName(s schema) string {
	if c, ok := s.at.of["const"]; ok {
		return jsonText(c)
	}
	if list, _ := s.at.get("enum").([]any); len(list) > 0 {
		var all []string
		for _, v := range list[:min(len(list), 12)] {
			all = append(all, jsonText(v))
		}
		if len(list) > 12 {
			all = append(all, "…")
		}
		return strings.Join(all, " | ")
	}
	if all := s.choices(); len(all) > 0 {
		var names []string
		for _, one := range all[:min(len(all), 8)] {
			if t := typeName(one); !slices.Contains(names, t) {
				names = append(names, t)
			}
		}
		return strings.Join(names, " | ")
	}
	types := s.types()
	if len(types) == 0 {
		return "any"
	}
	name := strings.Join(types, " | ")
	if types[0] == "array" {
		if item := s.item(0); item.at != nil {
			name = "list of " + typeName(item)
		}
	}
	if f := s.text("format"); f != "" {
		name += " (" + f + ")"
	}
	return name
}

func notes(s schema) string {
	var parts []string
	if b := bounds(s); b != "" {
		parts = append(parts, b)
	}
	if v, ok := s.at.of["default"]; ok {
		parts = append(parts, "default "+clipped(jsonText(v), 80))
	}
	if list, _ := s.at.get("examples").([]any); len(list) > 0 {
		parts = append(parts, "such as "+clipped(jsonText(list[0]), 80))
	}
	return strings.Join(parts, "; ")
}

// writeJSON writes JSON with indentation, and keeps the digits of numbers and the order of keys.
func writeJSON(out *strings.Builder, raw []byte) {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		out.Write(raw)
		return
	}
	out.Write(b.Bytes())
}
