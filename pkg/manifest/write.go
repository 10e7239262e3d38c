package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"toolctl.dev/toolctl/internal/jsontext"
)

// MarshalJSON writes a value of api/v1 as JSON, indented by two spaces, without HTML escapes, and
// with a final newline.
func MarshalJSON(v any) ([]byte, error) {
	text, err := jsontext.Marshal(v)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return nil, err
	}
	b.WriteByte('\n')
	return b.Bytes(), nil
}

// MarshalYAML writes a value of api/v1 in the style of Kubernetes: by its JSON tags, in block
// style, with lists not indented below their key. Keys keep the order of the struct. In schemas and
// results they keep their written order, in which a model reads a schema.
//
// Strings that any YAML 1.1 or 1.2 reader could take for another type are quoted. Numbers keep
// every digit. For these reasons the tree is built here: sigs.k8s.io/yaml turns an integer of more
// than 64 bits into a float, 1.10 into 1.1, and sorts keys. [Decode] and sigs.k8s.io/yaml read the
// output back as the same value.
//
// An object with a Header.Layout, alone or in a [List], keeps its comments and its order of keys.
func MarshalYAML(v any) ([]byte, error) {
	data, err := jsontext.Marshal(v)
	if err != nil {
		return nil, err
	}
	if arrange := arrangement(v); arrange != nil {
		out, err := writeYAML(data, arrange)
		if err == nil && readsAs(out, data) {
			return out, nil
		}
	}
	return writeYAML(data, nil)
}

// writeYAML writes JSON as YAML. arrange, if not nil, changes the tree before it is written.
func writeYAML(data []byte, arrange func(*yaml.Node)) ([]byte, error) {
	var root *yaml.Node
	if f := parseJSON("", data, func(n *yaml.Node) bool { root = n; return false }); f != nil {
		return nil, fmt.Errorf("write YAML: %s", f.Message)
	}
	setStyle(root)
	if arrange != nil {
		arrange(root)
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(root); err != nil {
		return nil, fmt.Errorf("write YAML: %w", err)
	}
	return b.Bytes(), enc.Close()
}

// setStyle chooses the style of every string: plain where that is safe, a literal
// block for clean text of several lines, else double quotes.
func setStyle(n *yaml.Node) {
	for _, c := range n.Content {
		setStyle(c)
	}
	if len(n.Content) == 0 && n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle // {} and []
	}
	if n.Tag != tagStr {
		return
	}
	switch s := n.Value; {
	case strings.Contains(s, "\n"):
		if isCleanBlock(s) {
			n.Style = yaml.LiteralStyle
		}
	case !ambiguous(s):
		n.Style = 0
	}
}

// ambiguous reports whether some YAML reader does not read the plain text s as a string.
func ambiguous(s string) bool {
	if tag, _, _ := resolvePlain(s); tag != tagStr || yaml11(s) != "" {
		return true
	}
	if strings.ContainsFunc(s, special) {
		return true
	}
	switch s[0] {
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '-', '.':
		// Some readers take dates, 12:30 and 1_000 for numbers or times.
		return allIn(s, "0123456789abcdefABCDEFoxTZ_:.+- ")
	case '=', '<':
		return s == "=" || s == "<<"
	}
	return false
}

// isCleanBlock reports whether a text of several lines survives as a literal block: it has no
// leading or trailing blanks that a reader or an editor may drop, and nothing to escape.
func isCleanBlock(s string) bool {
	if s[0] == ' ' || s[0] == '\t' || s[0] == '\n' || strings.HasSuffix(s, "\n\n") {
		return false
	}
	for line := range strings.SplitSeq(s, "\n") {
		if strings.TrimRight(line, " \t") != line {
			return false
		}
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r != '\n' && r != '\t' && special(r) })
}

// special reports whether a character is safe only in double quotes: a control character, a Unicode
// line break, or a character that the writer escapes.
func special(r rune) bool {
	return r < ' ' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' || r == '\ufeff' || r == '\ufffd' || r > 0xffff
}
