package template

import "context"

// Options are the options of a text template. The zero value works.
type Options struct {
	// Escape escapes a value for the output. out is the output before the value and shows its context, for example before
	// or after the "?" of a URL. Escape must not change out. An error ends the rendering and must not quote the value.
	// Default: values are not escaped.
	Escape func(out []byte, value string) (string, error)

	// Whole reports whether [ParseMustache] treats a name with dots as one variable rather than as a field of an object.
	// Default: names with dots are fields.
	Whole func(name string) bool
}

// Text is a template for plain text. It is safe for concurrent use.
type Text struct {
	*tree
	opts Options
}

// ParseText reads a template; name is its name in messages, such as its field in a
// manifest. Errors are of type *[Error].
func ParseText(name, src string, o Options) (*Text, error) {
	t, err := parseTree(name, src)
	if err != nil {
		return nil, err
	}
	return &Text{tree: t, opts: o}, nil
}

// Render renders the template with the arguments, which it does not change. Errors are of type *[Error], which wraps
// errors of ctx and of Escape.
func (t *Text) Render(ctx context.Context, args map[string]any) (string, error) {
	return t.RenderValue(ctx, args)
}

// RenderValue is [Text.Render] with any JSON value as dot, such as a string or a list.
func (t *Text) RenderValue(ctx context.Context, dot any) (string, error) {
	out, err := t.render(ctx, dot, textEncoding{t.opts})
	return string(out), err
}

type textEncoding struct{ opts Options }

func (textEncoding) literal([]byte) {}

func (e textEncoding) value(out []byte, v value) ([]byte, error) {
	if v.kind == isNull {
		return out, errNull
	}
	if e.opts.Escape == nil {
		return append(out, v.text...), nil
	}
	s, err := e.opts.Escape(out, v.text)
	return append(out, s...), err
}
