package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
)

// parseJSON is parseYAML for a stream of JSON values. JSON is not quite a subset of YAML (tabs, \/
// and surrogate pairs differ), so encoding/json reads it into the same nodes.
func parseJSON(file string, data []byte, yield func(*yaml.Node) bool) *v1.Violation {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if f := invalidUTF8(file, data); f != nil {
		return f
	}
	p := &jsonParser{data: data, dec: json.NewDecoder(bytes.NewReader(data)), line: 1, column: 1}
	p.dec.UseNumber()
	for {
		n, err := p.value(0)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			if line := conflictMarker(data); line > 0 {
				return conflicted(file, line)
			}
			return p.violation(file, err)
		}
		if !yield(n) {
			return nil
		}
	}
}

type jsonParser struct {
	data  []byte
	dec   *json.Decoder
	nodes int
	// The position of the last token; it only moves forward.
	offset, line, column int
	// before is the end of the previous token.
	before int
}

var (
	errJSONDepth = fmt.Errorf("nested deeper than %d levels", maxDepth)
	errJSONSize  = fmt.Errorf("more than %d values in one document", maxNodes)
)

// token returns the next token and an empty node at its place.
func (p *jsonParser) token() (json.Token, *yaml.Node, error) {
	p.before = int(p.dec.InputOffset())
	at := p.before
	for at < len(p.data) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[at]) >= 0 {
		at++
	}
	for ; p.offset < at; p.offset++ {
		switch b := p.data[p.offset]; {
		case b == '\n':
			p.line++
			p.column = 1
		case utf8.RuneStart(b):
			p.column++
		}
	}
	if p.nodes++; p.nodes > maxNodes {
		return nil, nil, errJSONSize
	}
	t, err := p.dec.Token()
	return t, &yaml.Node{Line: p.line, Column: p.column}, err
}

func (p *jsonParser) value(depth int) (*yaml.Node, error) {
	t, n, err := p.token()
	if err != nil {
		if depth > 0 && errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch t := t.(type) {
	case json.Delim:
		if depth > maxDepth {
			return nil, errJSONDepth
		}
		return n, p.collection(n, t, depth)
	case string:
		n.Kind, n.Tag, n.Value, n.Style = yaml.ScalarNode, tagStr, t, yaml.DoubleQuotedStyle
	case json.Number:
		n.Kind, n.Value = yaml.ScalarNode, t.String()
	case bool:
		n.Kind, n.Value = yaml.ScalarNode, fmt.Sprint(t)
	case nil:
		n.Kind, n.Value = yaml.ScalarNode, "null"
	}
	return n, nil
}

func (p *jsonParser) collection(n *yaml.Node, open json.Delim, depth int) error {
	n.Kind = yaml.SequenceNode
	if open == '{' {
		n.Kind = yaml.MappingNode
	}
	for p.dec.More() {
		c, err := p.value(depth + 1) // the decoder ensures that a key is a string
		if err != nil {
			return err
		}
		n.Content = append(n.Content, c)
	}
	p.nodes--
	_, _, err := p.token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func (p *jsonParser) violation(file string, err error) *v1.Violation {
	f := &v1.Violation{Expected: "JSON", Got: "a syntax error", Message: "not JSON: " + err.Error()}
	var syntax *json.SyntaxError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		f.Message = "not JSON: the text ends too early"
		f.Source = placeOf(file, p.data, len(bytes.TrimRight(p.data, " \t\r\n")))
	case errors.As(err, &syntax):
		// The Offset of a syntax error has no fixed base, but its message names the character.
		at := p.offset
		if c, err := strconv.QuotedPrefix(strings.TrimPrefix(syntax.Error(), "invalid character ")); err == nil {
			c, _, _, _ := strconv.UnquoteChar(c[1:], '\'')
			at = p.before + max(bytes.IndexRune(p.data[p.before:], c), 0)
		}
		f.Source = placeOf(file, p.data, at)
	default:
		f.Message = err.Error()
		f.Expected, f.Got = "a smaller document", "too much"
		f.Source = v1.Source{File: file, Line: p.line, Column: p.column}
	}
	return f
}

// looksLikeJSON reports whether a stream without a .json name starts with a complete JSON object.
func looksLikeJSON(data []byte) bool {
	data = bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\ufeff")), " \t\r\n")
	if len(data) == 0 || data[0] != '{' {
		return false
	}
	var first json.RawMessage
	return json.NewDecoder(bytes.NewReader(data)).Decode(&first) == nil
}
