// Package update writes observed results into the expectations of scenario manifests. It changes only
// the list items with those expectations and keeps the comments.
package update

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/scenario"
)

// File writes the observed results of scenarios into their file, and returns how many
// expectations changed. It rewrites only the list items with these expectations. On an error
// the file stays unchanged.
func File(file string, results []*scenario.Result) (int, error) {
	info, err := os.Stat(file)
	if err != nil {
		return 0, err
	}
	data, err := regular.ReadFile(file)
	if err != nil {
		return 0, err
	}
	n := 0
	for _, s := range results {
		if data, err = updateText(data, s.Scenario(), s.Updates()); err != nil {
			return 0, err
		}
		n += len(s.Updates())
	}
	return n, os.WriteFile(file, data, info.Mode().Perm())
}

var errFlow = errors.New("the expectation is not in a block-style list")

// updateText puts new values into the manifest of a scenario. It rewrites only the list items
// with these values, usually calls, and keeps their comments and every other byte.
func updateText(data []byte, s *v1.Scenario, updates []scenario.Update) ([]byte, error) {
	root, err := scenarioNode(data, s)
	if err != nil {
		return nil, err
	}
	lines := strings.SplitAfter(string(data), "\n")
	type edit struct {
		from, to int // line numbers, from 0
		seq      *yaml.Node
		item     *yaml.Node
	}
	var edits []edit
	for _, u := range updates {
		seq, item := enclosingItem(root, u.Field)
		if item == nil {
			return nil, errFlow
		}
		from, to := itemLines(lines, seq, item)
		if from < 0 {
			return nil, errFlow
		}
		if !slices.ContainsFunc(edits, func(e edit) bool { return e.item == item }) {
			edits = append(edits, edit{from, to, seq, item})
		}
	}
	for _, u := range updates {
		if err := setValue(root, u); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(edits, func(a, b edit) int { return b.from - a.from })
	for _, e := range edits {
		text, err := renderItem(e.seq, e.item, strings.Join(lines[e.from:e.to], ""))
		if err != nil {
			return nil, err
		}
		lines = slices.Replace(lines, e.from, e.to, text)
	}
	return []byte(strings.Join(lines, "")), nil
}

// scenarioNode finds the manifest of a scenario in a file.
func scenarioNode(data []byte, s *v1.Scenario) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(data))
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); err != nil {
			return nil, fmt.Errorf("scenario %q is no longer in the file", s.Metadata.Name)
		}
		if len(doc.Content) == 0 {
			continue
		}
		candidates := []*yaml.Node{doc.Content[0]}
		if items := child(doc.Content[0], "items"); items != nil {
			candidates = append(candidates, items.Content...)
		}
		for _, c := range candidates {
			kind, meta := child(c, "kind"), child(c, "metadata")
			if kind == nil || kind.Value != v1.KindScenario || meta == nil {
				continue
			}
			namespace := v1.DefaultNamespace
			if ns := child(meta, "namespace"); ns != nil {
				namespace = ns.Value
			}
			if name := child(meta, "name"); name != nil && name.Value == s.Metadata.Name && namespace == s.Namespace() {
				return c, nil
			}
		}
	}
}

// child returns the value of a key, or the item at an index; nil if it does not exist.
func child(n *yaml.Node, token string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == token {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		if i, err := strconv.Atoi(token); err == nil && i >= 0 && i < len(n.Content) {
			return n.Content[i]
		}
	case yaml.AliasNode:
		return nil // a change of the anchor would change other places too
	}
	return nil
}

// enclosingItem returns the call with a field, or the nearest item around it in a list of block
// style.
func enclosingItem(root *yaml.Node, pointer string) (seq, item *yaml.Node) {
	n := root
	for i, token := range v1.Tokens(pointer) {
		if n.Style&yaml.FlowStyle != 0 || i > 4 { // 4: /spec/turns/0/calls/0 is a call
			break
		}
		next := child(n, token)
		if next == nil {
			break
		}
		if n.Kind == yaml.SequenceNode {
			seq, item = n, next
		}
		n = next
	}
	return seq, item
}

// itemLines returns the lines of a list item, from its dash to the next line that is not
// indented more.
func itemLines(lines []string, seq, item *yaml.Node) (from, to int) {
	dash := seq.Column - 1
	for from = item.Line - 1; from >= 0; from-- {
		if l := lines[from]; len(l) > dash && l[dash] == '-' && strings.TrimSpace(l[:dash]) == "" {
			break
		}
	}
	if from < 0 {
		return -1, -1
	}
	last := from
	for i := from + 1; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		if strings.TrimSpace(text) == "" {
			continue
		}
		if len(lines[i])-len(text) <= dash {
			break
		}
		last = i
	}
	return from, last + 1
}

// setValue puts the value of an update into the tree. It adds a missing key.
func setValue(root *yaml.Node, u scenario.Update) error {
	n := root
	parts := v1.Tokens(u.Field)
	for i, token := range parts {
		last := i == len(parts)-1
		next := child(n, token)
		switch {
		case last && u.Value == nil:
			remove(n, token)
			return nil
		case next == nil && n.Kind == yaml.MappingNode:
			next = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
			n.Content = append(n.Content, plain(token), next)
		case next == nil:
			return fmt.Errorf("%s no longer exists", v1.FieldPath(u.Field))
		}
		if last {
			value, err := valueNode(u.Value)
			if err != nil {
				return err
			}
			value.HeadComment, value.LineComment, value.FootComment = next.HeadComment, next.LineComment, next.FootComment
			if len(u.Value) <= 70 || next.Style&yaml.FlowStyle != 0 {
				value.Style |= next.Style&yaml.FlowStyle | flowWhenSmall(value, u.Value)
			}
			*next = *value
		}
		n = next
	}
	return nil
}

// flowWhenSmall puts a small object or list on one line, except a whole expectation.
func flowWhenSmall(n *yaml.Node, raw json.RawMessage) yaml.Style {
	if n.Kind == yaml.ScalarNode || bytes.HasPrefix(raw, []byte(`{"status"`)) {
		return 0
	}
	return yaml.FlowStyle
}
