package mcpclients

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
	"go.yaml.in/yaml/v3"
)

// mergeJSON sets a server under a key of a JSON file, which may contain comments. Only the text of that entry
// changes.
func mergeJSON(key string) func([]byte, string, any, Server) ([]byte, error) {
	return func(file []byte, name string, entry any, _ Server) ([]byte, error) {
		return setJSON(file, []string{key, name}, entry)
	}
}

// mergeVSCode also adds the inputs to which an entry refers.
func mergeVSCode(file []byte, name string, entry any, s Server) ([]byte, error) {
	file, err := setJSON(file, []string{"servers", name}, entry)
	for _, v := range s.Vars {
		if err == nil {
			file, err = addInput(file, input{"promptString", v, v + " of " + s.Name, true})
		}
	}
	return file, err
}

// input is a value that VS Code asks the user for.
type input struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	Description string `json:"description"`
	Password    bool   `json:"password"`
}

func addInput(file []byte, in input) ([]byte, error) {
	root, err := parseJSON(file)
	if err != nil {
		return nil, err
	}
	inputs := root.Find("/inputs")
	if inputs == nil {
		return setJSON(file, []string{"inputs"}, []any{in})
	}
	list, ok := inputs.Value.(*hujson.Array)
	if !ok {
		return nil, errors.New("inputs is not a list")
	}
	for i := range list.Elements {
		if id := list.Elements[i].Find("/id"); id != nil && id.Value.Kind() == '"' && id.Value.(hujson.Literal).String() == in.ID {
			return file, nil
		}
	}
	v, err := indented(in, 2)
	v.BeforeExtra = lastLine(&list.AfterExtra, 2)
	list.Elements = append(list.Elements, v)
	return root.Pack(), err
}

// parseJSON reads JSON with comments. An empty file counts as an empty object.
func parseJSON(file []byte) (hujson.Value, error) {
	if len(bytes.TrimSpace(file)) == 0 {
		file = []byte("{}\n")
	}
	v, err := hujson.Parse(append(slices.Clip(file), '\n')) // the parser needs a line break after a comment in the last line
	if err != nil {
		line := 1
		if _, cut := hujson.Parse(bytes.TrimRight(file, " \t\r\n")); cut != nil {
			err = cut // truncated text ends in its last line
		}
		_, _ = fmt.Sscanf(err.Error(), "hujson: line %d", &line)
		return v, fmt.Errorf("line %d: not valid JSON, not even with comments", line)
	}
	v.AfterExtra = bytes.TrimSuffix(v.AfterExtra, []byte("\n"))
	return v, nil
}

// setJSON sets the value at a path of members, and creates missing objects.
func setJSON(file []byte, path []string, value any) ([]byte, error) {
	root, err := parseJSON(file)
	if err != nil {
		return nil, err
	}
	at := &root
	for depth, key := range path {
		o, ok := at.Value.(*hujson.Object)
		if !ok {
			return nil, fmt.Errorf("expected an object at %q", "/"+strings.Join(path[:depth], "/"))
		}
		// If two members have the same name, clients read the last one.
		if i := lastMember(o, key); i >= 0 {
			at = &o.Members[i].Value
			continue
		}
		for _, k := range slices.Backward(path[depth+1:]) {
			value = map[string]any{k: value}
		}
		v, err := indented(value, depth+1)
		if err != nil {
			return nil, err
		}
		v.BeforeExtra = []byte(" ")
		name := hujson.Value{Value: hujson.String(key), BeforeExtra: lastLine(&o.AfterExtra, depth+1)}
		o.Members = append(o.Members, hujson.ObjectMember{Name: name, Value: v})
		return root.Pack(), nil
	}
	v, err := indented(value, len(path))
	at.Value = v.Value
	return root.Pack(), err
}

func lastMember(o *hujson.Object, key string) int {
	for i, m := range slices.Backward(o.Members) {
		if m.Name.Value.(hujson.Literal).String() == key {
			return i
		}
	}
	return -1
}

// indented returns a value as JSON, indented for a line of this depth.
func indented(value any, depth int) (hujson.Value, error) {
	text, err := json.MarshalIndent(value, strings.Repeat("  ", depth), "  ")
	if err != nil {
		return hujson.Value{}, err
	}
	return hujson.Parse(text)
}

// lastLine starts a line for a new last element of an object or list. The comments before the closing bracket
// stay before the new element, and the bracket gets its own line.
func lastLine(end *hujson.Extra, depth int) hujson.Extra {
	in := "\n" + strings.Repeat("  ", depth)
	comments := bytes.TrimRight(*end, " \t\r\n")
	*end = hujson.Extra(in[:len(in)-2])
	return append(slices.Clip(comments), in...)
}

var (
	tomlHeader = regexp.MustCompile(`^\s*\[`)
	tomlInline = regexp.MustCompile(`(?m)^\s*mcp_servers\s*=`)
)

// mergeTOML replaces the table with the same name, including its subtables.
func mergeTOML(file []byte, name string, entry any, _ Server) ([]byte, error) {
	if tomlInline.Match(file) {
		return nil, errors.New("mcp_servers is a single value: write it as tables [mcp_servers.NAME]")
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
	members, err := indented(entry, 0)
	if err != nil {
		return nil, err
	}
	for _, m := range members.Value.(*hujson.Object).Members {
		m.Value.BeforeExtra = nil
		m.Value.Minimize() // a string or a list of strings on one line is also valid TOML
		text += m.Name.Value.(hujson.Literal).String() + " = " + m.Value.String() + "\n"
	}
	return []byte(text), nil
}

// mergeYAML sets a server under a key of a YAML file and keeps its comments.
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
