package mcpclients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// mergeJSON puts a server under a key of a JSON file, which may hold comments: only the
// text of that entry changes.
func mergeJSON(key string) func([]byte, string, any, Server) ([]byte, error) {
	return func(file []byte, name string, entry any, _ Server) ([]byte, error) {
		return setJSON(file, []string{key, name}, entry)
	}
}

// mergeVSCode adds the inputs that an entry names as well.
func mergeVSCode(file []byte, name string, entry any, s Server) ([]byte, error) {
	file, err := setJSON(file, []string{"servers", name}, entry)
	for _, v := range s.Vars {
		if err == nil {
			file, err = addInput(file, fields{{"type", "promptString"}, {"id", v}, {"description", v + " of " + s.Name}, {"password", true}}, v)
		}
	}
	return file, err
}

func addInput(file []byte, in fields, id string) ([]byte, error) {
	root, err := container(file, 0)
	if err != nil {
		return nil, err
	}
	inputs, ok := root.find("inputs")
	if !ok {
		return setJSON(file, []string{"inputs"}, []any{in})
	}
	list, err := container(file, inputs.start)
	if err != nil || list.object {
		return nil, errors.Join(errors.New("inputs is not a list"), err)
	}
	for _, m := range list.members {
		if o, err := container(file, m.start); err == nil {
			if got, ok := o.find("id"); ok && string(file[got.start:got.end]) == string(quoteJSON(id)) {
				return file, nil
			}
		}
	}
	return list.insert(file, "", in, 2)
}

func quoteJSON(s string) []byte {
	b, _ := json.Marshal(s) // a string always can be
	return b
}

// setJSON sets the value at a path of members, and makes the objects on the way.
func setJSON(file []byte, path []string, value any) ([]byte, error) {
	if len(bytes.TrimSpace(file)) == 0 {
		file = []byte("{}\n")
	}
	at := 0
	for depth, key := range path {
		o, err := container(file, at)
		switch {
		case err != nil:
			return nil, err
		case !o.object && depth == 0:
			return nil, errors.New("expected an object, got a list")
		case !o.object:
			return nil, fmt.Errorf("expected an object at %q, got a list", strings.Join(path[:depth], "."))
		}
		m, ok := o.find(key)
		switch {
		case !ok:
			for _, k := range slices.Backward(path[depth+1:]) {
				value = fields{{k, value}}
			}
			return o.insert(file, key, value, depth+1)
		case depth == len(path)-1:
			text, err := json.MarshalIndent(value, strings.Repeat("  ", depth+1), "  ")
			return slices.Concat(file[:m.start], text, file[m.end:]), err
		}
		at = m.start
	}
	return file, nil
}

// jsonContainer is an object or a list in a text, and the places of its members.
type jsonContainer struct {
	object      bool
	open, close int // of the brackets
	comma       int // after the last member; 0 for none
	members     []jsonMember
}

type jsonMember struct {
	key        string
	start, end int // of the value
}

func (c *jsonContainer) find(key string) (jsonMember, bool) {
	for _, m := range slices.Backward(c.members) { // of two the last counts
		if m.key == key {
			return m, true
		}
	}
	return jsonMember{}, false
}

// insert adds a member at the end.
func (c *jsonContainer) insert(file []byte, key string, value any, depth int) ([]byte, error) {
	in := strings.Repeat("  ", depth)
	text, err := json.MarshalIndent(value, in, "  ")
	if err != nil {
		return nil, err
	}
	if c.object {
		text = slices.Concat(quoteJSON(key), []byte(": "), text)
	}
	at, comma := c.open+1, ""
	switch {
	case c.comma > 0:
		at = c.comma + 1
	case len(c.members) > 0:
		at, comma = c.members[len(c.members)-1].end, ","
	}
	comments := bytes.TrimRight(file[at:c.close], " \t\r\n")
	return slices.Concat(file[:at], []byte(comma), comments, []byte("\n"+in), text, []byte("\n"+in[2:]), file[c.close:]), nil
}

// container reads the object or list at a place of a text.
func container(b []byte, at int) (*jsonContainer, error) {
	fail := func() (*jsonContainer, error) {
		line := 1 + bytes.Count(b[:min(at, len(b))], []byte("\n"))
		return nil, fmt.Errorf("line %d: not valid JSON, not even with comments", line)
	}
	at = skipJSON(b, at)
	if at >= len(b) || b[at] != '{' && b[at] != '[' {
		return fail()
	}
	c := &jsonContainer{object: b[at] == '{', open: at}
	at++
	for {
		if at = skipJSON(b, at); at >= len(b) {
			return fail()
		}
		if b[at] == '}' && c.object || b[at] == ']' && !c.object {
			c.close = at
			return c, nil
		}
		if len(c.members) > 0 && c.comma == 0 {
			return fail()
		}
		var m jsonMember
		if c.object {
			end := valueEnd(b, at)
			if end < 0 || json.Unmarshal(b[at:end], &m.key) != nil {
				return fail()
			}
			if at = skipJSON(b, end); at >= len(b) || b[at] != ':' {
				return fail()
			}
			at = skipJSON(b, at+1)
		}
		m.start, m.end = at, valueEnd(b, at)
		if m.end < 0 {
			return fail()
		}
		c.members = append(c.members, m)
		if at, c.comma = skipJSON(b, m.end), 0; at < len(b) && b[at] == ',' {
			c.comma = at
			at++
		}
	}
}

// skipJSON returns the place after space and comments.
func skipJSON(b []byte, at int) int {
	for at < len(b) {
		switch rest := b[at:]; {
		case strings.IndexByte(" \t\r\n", b[at]) >= 0:
			at++
		case bytes.HasPrefix(rest, []byte("//")):
			n := bytes.IndexByte(rest, '\n')
			if n < 0 {
				return len(b)
			}
			at += n
		case bytes.HasPrefix(rest, []byte("/*")):
			n := bytes.Index(rest[2:], []byte("*/"))
			if n < 0 {
				return len(b)
			}
			at += n + 4
		default:
			return at
		}
	}
	return at
}

// valueEnd returns the place after a value, -1 when it does not end.
func valueEnd(b []byte, at int) int {
	start, depth := at, 0
	for at < len(b) {
		switch b[at] {
		case '"':
			for at++; at < len(b) && b[at] != '"'; at++ {
				if b[at] == '\\' {
					at++
				}
			}
			if at++; at > len(b) {
				return -1
			}
		case '{', '[':
			depth++
			at++
		case '}', ']', ',':
			if depth == 0 {
				if at == start {
					return -1
				}
				return at
			}
			if b[at] != ',' {
				depth--
			}
			at++
		default:
			if next := skipJSON(b, at); next > at {
				if depth == 0 {
					return at
				}
				at = next
				continue
			}
			at++
		}
		if depth == 0 && (b[at-1] == '"' || b[at-1] == '}' || b[at-1] == ']') {
			return at
		}
	}
	return -1
}

var (
	tomlHeader = regexp.MustCompile(`^\s*\[`)
	tomlInline = regexp.MustCompile(`(?m)^\s*mcp_servers\s*=`)
)

// mergeTOML puts a table in the place of the one of that name, with those under it.
func mergeTOML(file []byte, name string, entry any, _ Server) ([]byte, error) {
	if tomlInline.Match(file) {
		return nil, errors.New("mcp_servers is written as one value: write it as tables [mcp_servers.NAME]")
	}
	own := regexp.MustCompile(`^\s*\[\s*mcp_servers\s*\.\s*["']?` + regexp.QuoteMeta(name) + `["']?\s*[\].]`)
	var out strings.Builder
	skipping := false
	for line := range strings.Lines(string(file)) {
		if tomlHeader.MatchString(line) {
			skipping = own.MatchString(line)
		}
		if !skipping {
			out.WriteString(line)
		}
	}
	text := strings.TrimRight(out.String(), "\n")
	if text != "" {
		text += "\n\n"
	}
	text += "[mcp_servers." + name + "]\n"
	for _, m := range entry.(fields) {
		value, err := json.Marshal(m.Value) // strings and lists of strings are TOML as well
		if err != nil {
			return nil, err
		}
		text += m.Key + " = " + string(value) + "\n"
	}
	return []byte(text), nil
}

// mergeYAML puts a server under a key of a YAML file; comments stay.
func mergeYAML(key string) func([]byte, string, any, Server) ([]byte, error) {
	return func(file []byte, name string, entry any, _ Server) ([]byte, error) {
		var doc yaml.Node
		if err := yaml.Unmarshal(file, &doc); err != nil {
			return nil, fmt.Errorf("not YAML: %w", err)
		}
		if doc.Kind == 0 {
			doc = yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{{Kind: yaml.MappingNode}}}
		}
		at := doc.Content[0]
		for _, k := range []string{key, name} {
			if at.Kind != yaml.MappingNode {
				return nil, fmt.Errorf("expected an object with %q", k)
			}
			var next *yaml.Node
			for i := 0; i+1 < len(at.Content); i += 2 {
				if at.Content[i].Value == k {
					next = at.Content[i+1]
				}
			}
			if next == nil || next.Tag == "!!null" {
				if next == nil {
					next = &yaml.Node{}
					at.Content = append(at.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: k}, next)
				}
				*next = yaml.Node{Kind: yaml.MappingNode}
			}
			at = next
		}
		if err := at.Encode(entry); err != nil {
			return nil, err
		}
		var out bytes.Buffer
		enc := yaml.NewEncoder(&out)
		enc.SetIndent(2)
		err := enc.Encode(&doc)
		return out.Bytes(), err
	}
}
