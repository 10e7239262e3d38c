package template

import "context"

// Options of a text template. The zero value works.
type Options struct {
	// Escape returns a value in the form in which it goes into the output. out is
	// all that was rendered before it, which says where the value stands, for example
	// before or after the "?" of a URL; it must not be changed. An error ends the
	// rendering and must not quote the value. Default: values stand as they are.
	Escape func(out []byte, value string) (string, error)

	// Whole says of a name with dots in it that it is one variable of [ParseMustache], and not
	// a field of an object. Default: none is.
	Whole func(name string) bool
}

// Text is a template that renders plain text. It may be used by many goroutines at once.
type Text struct {
	*tree
	opts Options
}

// ParseText reads a template; name is what messages call it, such as the field it
// stands in. Errors are of type *[Error].
func ParseText(name, src string, o Options) (*Text, error) {
	t, err := parseTree(name, src)
	if err != nil {
		return nil, err
	}
	return &Text{tree: t, opts: o}, nil
}

// Render renders the template with the arguments, which are not changed. Errors
// are of type *[Error]; those of ctx and of Escape are wrapped in it.
func (t *Text) Render(ctx context.Context, args map[string]any) (string, error) {
	return t.RenderValue(ctx, args)
}

// RenderValue is [Text.Render] with any JSON value for the dot, such as a string or a list.
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
