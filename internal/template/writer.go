package template

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
)

// Messages from the tree to the writer begin with a byte that never occurs in UTF-8
// (RFC 3629, section 3), so that no source and no argument can forge them:
//
//	mark 't'                     a tick
//	mark 'a' SITE(4 bytes)       the argument of a site
//	mark KIND SITE(4 bytes) TEXT a value
const mark0 = 0xFF

const headerLen = 6

// Kinds of values, and of the two messages from the tree itself.
const (
	isString   = 's'
	isJSON     = 'j' // JSON text: numbers, booleans, objects, lists, results of json
	isNull     = '0'
	isMissing  = 'm'
	isBad      = 'e' // not a JSON value; the text is the message
	isTick     = 't'
	isArgument = 'a'
)

var tick = []byte{mark0, isTick}

// value is a value for the output.
type value struct {
	kind byte
	text string
	site *site
}

func valueOf(v any) value {
	switch x := v.(type) {
	case nil:
		return value{kind: isMissing}
	case null:
		return value{kind: isNull, text: "null"}
	case string:
		return value{kind: isString, text: x}
	}
	text, err := encode(v)
	if err != nil {
		return value{kind: isBad, text: err.Error()}
	}
	return value{kind: isJSON, text: text}
}

// mark is escapeFunc: it passes the value of an action to the writer.
func mark(id int, v any) string {
	x := valueOf(v)
	b := make([]byte, 0, headerLen+len(x.text))
	return string(append(appendMark(b, x.kind, id), x.text...))
}

func appendMark(b []byte, kind byte, id int) []byte {
	return binary.BigEndian.AppendUint32(append(b, mark0, kind), uint32(id))
}

// encoding encodes values for the output. Each rendering has its own.
type encoding interface {
	// literal observes text of the template, which the writer itself appends.
	literal(text []byte)
	// value appends a value to out.
	value(out []byte, v value) ([]byte, error)
}

// writer receives all pieces of a rendering in order, and enforces the limits.
type writer struct {
	tree  *tree
	enc   encoding
	args  map[string]any
	out   []byte
	steps int
	ended func() error // returns why the rendering must end, or nil
}

func (w *writer) Write(p []byte) (int, error) {
	if w.steps++; w.steps > MaxSteps {
		return 0, &Error{Name: w.tree.name, Message: fmt.Sprintf("the template needs more than %d steps", MaxSteps)}
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
	case p[1] == isTick:
	default:
		v := value{kind: p[1], text: string(p[headerLen:])}
		site := &w.tree.sites[binary.BigEndian.Uint32(p[2:])]
		if v.kind == isArgument {
			v = valueOf(w.args[site.arg])
		}
		v.site = site
		if len(w.out)+len(v.text) > MaxOutput {
			return 0, w.tooLarge()
		}
		if err := w.value(v); err != nil {
			return 0, err
		}
	}
	return n, nil
}

var errNull = errors.New("is null: guard it with default or if")

func (w *writer) value(v value) (err error) {
	switch {
	case v.kind == isMissing && !w.tree.lenient:
		err = errors.New("is missing: pass it, or use default or if in the template")
	case v.kind == isBad:
		err = errors.New(v.text)
	default:
		w.out, err = w.enc.value(w.out, v)
	}
	switch {
	case err == nil && len(w.out) > MaxOutput:
		return w.tooLarge()
	case err == nil:
		return nil
	}
	msg, absent := err.Error(), ""
	if v.kind == isMissing || errors.Is(err, errNull) {
		subject := "the value "
		if v.site.arg != "" {
			subject = fmt.Sprintf("argument %q ", v.site.arg)
		}
		msg = subject + msg
		if v.kind == isMissing {
			absent = v.site.arg
		}
	}
	return &Error{Name: w.tree.name, Line: v.site.line, Message: v.site.src + ": " + msg, Missing: absent, Err: err}
}

func (w *writer) tooLarge() error {
	return &Error{Name: w.tree.name, Message: fmt.Sprintf("the output is larger than %d bytes", MaxOutput)}
}

// render executes the template. dot is the map of arguments, or any JSON value.
func (t *tree) render(ctx context.Context, dot any, enc encoding) (out []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			out, err = nil, &Error{Name: t.name, Message: fmt.Sprintf("the template panicked: %v", p)}
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, &Error{Name: t.name, Message: err.Error(), Err: err}
	}
	w := &writer{tree: t, enc: enc, ended: ctx.Err}
	if args, ok := dot.(map[string]any); ok {
		w.args = convertArgs(args)
		dot = w.args
	} else {
		dot = convert(dot)
	}
	if err := t.root.Execute(w, dot); err != nil {
		return nil, t.execError(err)
	}
	return w.out, nil
}

// convertArgs converts the arguments. Missing arguments stay missing.
func convertArgs(args map[string]any) map[string]any {
	m := make(map[string]any, len(args))
	for k, v := range args {
		m[k] = convert(v)
	}
	return m
}
