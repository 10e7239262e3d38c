package template

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// What the functions in the tree tell the writer begins with a byte that UTF-8
// never has (RFC 3629, section 3), so no source and no argument can pretend to:
//
//	mark 't'                     a tick
//	mark KIND SITE(4 bytes) TEXT a value
const mark0 = 0xFF

const headerLen = 6

// Kinds of values.
const (
	isString  = 's'
	isJSON    = 'j' // JSON text: numbers, booleans, objects, lists, what json gave
	isNull    = '0'
	isMissing = 'm'
	isBad     = 'e' // no JSON at all; the text is the message
)

var tick = []byte{mark0, 't'}

// value is a value on its way into the output.
type value struct {
	kind byte
	site *site
	text []byte
}

// mark is escapeFunc: it hands the value of an action to the writer.
func mark(id int, v any) string {
	k, text := byte(isJSON), ""
	switch x := v.(type) {
	case nil:
		k = isMissing
	case null:
		k, text = isNull, "null"
	case string:
		k, text = isString, x
	default:
		var err error
		if text, err = encode(v); err != nil {
			k, text = isBad, err.Error()
		}
	}
	b := make([]byte, headerLen, headerLen+len(text))
	b[0], b[1] = mark0, k
	binary.BigEndian.PutUint32(b[2:], uint32(id))
	return string(append(b, text...))
}

// encoding says how text and values become output. One is made for each rendering.
type encoding interface {
	// literal follows text of the template; the writer appends it.
	literal(text []byte)
	// value appends a value to out.
	value(out []byte, v value) ([]byte, error)
}

// writer receives all pieces of one rendering, in order, and bounds them.
type writer struct {
	tree  *tree
	enc   encoding
	out   []byte
	steps int
	ended func() error // why the rendering has to end, if it has
}

func (w *writer) Write(p []byte) (int, error) {
	if w.steps++; w.steps > MaxSteps {
		return 0, &Error{Name: w.tree.name, Message: fmt.Sprintf("the template takes more than %d steps", MaxSteps)}
	}
	if w.steps%64 == 0 {
		if err := w.ended(); err != nil {
			return 0, err
		}
	}
	n := len(p)
	if len(w.out)+n > MaxOutput {
		return 0, w.tooLarge()
	}
	switch {
	case n == 0 || p[0] != mark0:
		w.enc.literal(p)
		w.out = append(w.out, p...)
	case p[1] == tick[1]:
	default:
		v := value{kind: p[1], site: &w.tree.sites[binary.BigEndian.Uint32(p[2:])], text: p[headerLen:]}
		if err := w.value(v); err != nil {
			return 0, err
		}
	}
	return n, nil
}

var errNull = errors.New("is null: guard it with default or if")

func (w *writer) value(v value) (err error) {
	switch v.kind {
	case isMissing:
		err = errors.New("is missing: give it, or guard it with default or if")
	case isBad:
		err = errors.New(string(v.text))
	default:
		w.out, err = w.enc.value(w.out, v)
	}
	switch {
	case err == nil && len(w.out) > MaxOutput:
		return w.tooLarge()
	case err == nil:
		return nil
	}
	msg := err.Error()
	if v.kind == isMissing || errors.Is(err, errNull) {
		subject := "the value "
		if v.site.arg != "" {
			subject = fmt.Sprintf("argument %q ", v.site.arg)
		}
		msg = subject + msg
	}
	return &Error{Name: w.tree.name, Line: v.site.line, Message: v.site.src + ": " + msg, Err: err}
}

func (w *writer) tooLarge() error {
	return &Error{Name: w.tree.name, Message: fmt.Sprintf("the output is larger than %d bytes", MaxOutput)}
}

// render executes the template. Errors of ctx come back as they are, with the name before them.
func (t *tree) render(ctx context.Context, args map[string]any, enc encoding) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, &Error{Name: t.name, Message: fmt.Sprintf("the template panicked: %v", p)}
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, &Error{Name: t.name, Message: err.Error(), Err: err}
	}
	w := &writer{tree: t, enc: enc, ended: ctx.Err}
	if err := t.root.Execute(w, convertArgs(args)); err != nil {
		return nil, t.execError(err)
	}
	return w.out, nil
}

// convertArgs converts the top level; an argument that is absent stays absent.
func convertArgs(args map[string]any) map[string]any {
	m := make(map[string]any, len(args))
	for k, v := range args {
		m[k] = convert(v)
	}
	return m
}
