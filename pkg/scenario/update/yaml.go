package update

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

func remove(n *yaml.Node, token string) {
	if n.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == token {
			n.Content = slices.Delete(n.Content, i, i+2)
			return
		}
	}
}

func plain(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}
	n.Style = stringStyle(s)
	return n
}

// valueNode converts JSON to YAML in block style.
func valueNode(raw json.RawMessage) (*yaml.Node, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(raw, &doc); err != nil {
		return nil, err
	}
	var tidy func(n *yaml.Node)
	tidy = func(n *yaml.Node) {
		n.Style &^= yaml.FlowStyle
		if n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
			n.Style = stringStyle(n.Value)
		}
		for _, c := range n.Content {
			tidy(c)
		}
	}
	tidy(doc.Content[0])
	return doc.Content[0], nil
}

var (
	plainText = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*$`)
	// otherText matches texts that a YAML 1.1 or 1.2 reader does not read as text.
	otherText = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)
)

func stringStyle(s string) yaml.Style {
	if plainText.MatchString(s) && !otherText.MatchString(s) {
		return 0
	}
	return yaml.DoubleQuotedStyle
}

// renderItem writes a list item with its indentation. before is the text that it replaces. Comments outside of before
// stay where they are.
func renderItem(seq, item *yaml.Node, before string) (string, error) {
	var tidy func(n *yaml.Node)
	tidy = func(n *yaml.Node) {
		for _, c := range []*string{&n.HeadComment, &n.FootComment} {
			first, _, _ := strings.Cut(*c, "\n")
			if first != "" && !strings.Contains(before, first) {
				*c = ""
			}
		}
		for _, c := range n.Content {
			tidy(c)
		}
	}
	tidy(item)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(&yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{item}}); err != nil {
		return "", err
	}
	if err := enc.Close(); err != nil {
		return "", err
	}
	indent := strings.Repeat(" ", seq.Column-1)
	var out strings.Builder
	for line := range strings.Lines(b.String()) {
		if strings.TrimSpace(line) != "" {
			out.WriteString(indent)
		}
		out.WriteString(line)
	}
	text := out.String()
	if !strings.HasSuffix(before, "\n") {
		text = strings.TrimSuffix(text, "\n")
	}
	return text, nil
}
