package template

import (
	"fmt"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
	"unicode"
)

// ParseMustache reads a template in which {{name}} is an argument, as in mustache(5) and
// PromptKit: {{a.b}} is a field of an object (but see Options.Whole), {{{name}}} and
// {{&name}} are the same as {{name}}, since nothing is escaped, and {{! text }} is a
// comment. Sections, partials and other delimiters are refused. Unclosed braces are
// text. Errors are of type *[Error].
func ParseMustache(name, src string, o Options) (*Text, error) {
	if err := checkSource(name, src); err != nil {
		return nil, err
	}
	list := &parse.ListNode{NodeType: parse.NodeList}
	for rest, line := src, 1; rest != ""; {
		text, after, found := strings.Cut(rest, "{{")
		tag, next, closed := cutTag(after)
		if !found || !closed {
			text, next = rest, ""
		}
		if text != "" {
			list.Nodes = append(list.Nodes, &parse.TextNode{NodeType: parse.NodeText, Text: []byte(text)})
			line += strings.Count(text, "\n")
		}
		if found && closed {
			path, err := tagPath(tag, o.Whole)
			if err != nil {
				return nil, &Error{Name: name, Line: line, Message: err.Error()}
			}
			if path != nil {
				list.Nodes = append(list.Nodes, fieldAction(path, line))
			}
			line += strings.Count(tag, "\n")
		}
		rest = next
	}
	root, err := template.New("").Funcs(funcs()).AddParseTree("", &parse.Tree{Root: list})
	if err != nil {
		return nil, parseError(name, err)
	}
	t, err := newTree(name, root)
	if err != nil {
		return nil, err
	}
	return &Text{tree: t, opts: o}, nil
}

// cutTag splits the text after "{{" at the end of the tag. A tag with three braces
// keeps its inner pair.
func cutTag(s string) (tag, rest string, closed bool) {
	if strings.HasPrefix(s, "{") {
		if tag, rest, closed = strings.Cut(s, "}}}"); closed {
			return tag + "}", rest, true
		}
	}
	return strings.Cut(s, "}}")
}

// tagPath returns the fields of a tag; nil for a comment.
func tagPath(tag string, whole func(string) bool) ([]string, error) {
	shown := line("{{"+tag+"}}", maxShown)
	body := strings.TrimSpace(tag)
	if strings.HasPrefix(body, "{") && strings.HasSuffix(body, "}") {
		body = strings.TrimSpace(body[1 : len(body)-1])
	} else if strings.HasPrefix(body, "&") {
		body = strings.TrimSpace(body[1:])
	}
	switch {
	case strings.HasPrefix(body, "!"):
		return nil, nil
	case body == "":
		return nil, fmt.Errorf("%s names no variable", shown)
	case strings.ContainsAny(body[:1], "#^/>=<$"):
		return nil, fmt.Errorf("%s is more than a variable: mustache templates support only {{name}} here; use template_syntax go for if and range", shown)
	case strings.HasPrefix(body, "."):
		return nil, fmt.Errorf("%s is Go template syntax: write {{%s}}, or set template_syntax: go", shown, line(strings.TrimLeft(body, "."), maxShown))
	case strings.ContainsFunc(body, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`"'{}()|`, r) }):
		return nil, fmt.Errorf("%s is not the name of a variable", shown)
	}
	if whole != nil && whole(body) {
		return []string{body}, nil
	}
	path := strings.Split(body, ".")
	if slices.Contains(path, "") {
		return nil, fmt.Errorf("%s is not the name of a variable", shown)
	}
	return path, nil
}

// fieldAction returns the node that text/template parses {{.a.b}} to. Unlike in text/template, names may contain
// characters that are not allowed in Go identifiers.
func fieldAction(path []string, line int) *parse.ActionNode {
	field := &parse.FieldNode{NodeType: parse.NodeField, Ident: path}
	cmd := &parse.CommandNode{NodeType: parse.NodeCommand, Args: []parse.Node{field}}
	pipe := &parse.PipeNode{NodeType: parse.NodePipe, Line: line, Cmds: []*parse.CommandNode{cmd}}
	return &parse.ActionNode{NodeType: parse.NodeAction, Line: line, Pipe: pipe}
}
