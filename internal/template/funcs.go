package template

import (
	"fmt"
	"strings"
	"text/template"
)

// funcs returns all functions; doc.go documents them. They are stateless, and no function returns more than MaxOutput
// bytes.
func funcs() template.FuncMap {
	return template.FuncMap{
		"json":    func(v any) (raw, error) { s, err := encode(v); return raw(s), err },
		"default": fallback,
		"join":    join,
		"upper":   text(strings.ToUpper),
		"lower":   text(strings.ToLower),
		"trim":    text(strings.TrimSpace),

		"eq": equal,
		"ne": func(a, b any) (bool, error) { same, err := equal(a, b); return !same, err },
		"lt": ordered(func(c int) bool { return c < 0 }),
		"le": ordered(func(c int) bool { return c <= 0 }),
		"gt": ordered(func(c int) bool { return c > 0 }),
		"ge": ordered(func(c int) bool { return c >= 0 }),

		"print":    printAll,
		"println":  func(v ...any) (string, error) { s, err := spaced(v); return s + "\n", err },
		"printf":   printf,
		"html":     escaper(template.HTMLEscapeString),
		"js":       escaper(template.JSEscapeString),
		"urlquery": escaper(func(s string) string { return template.URLQueryEscaper(s) }),

		escapeFunc: mark,
	}
}

// text turns a function on text into a function of one value.
func text(f func(string) string) func(any) (string, error) {
	return func(v any) (string, error) {
		s, err := textOf(v)
		if err != nil {
			return "", err
		}
		return bounded(f, s)
	}
}

// escaper turns a function on text into a function of any number of values, like the escapers of text/template.
func escaper(f func(string) string) func(...any) (string, error) {
	return func(v ...any) (string, error) {
		s, err := printAll(v...)
		if err != nil {
			return "", err
		}
		return bounded(f, s.(string))
	}
}

// bounded applies f, whose output is at most 6 times as long as its input.
func bounded(f func(string) string, s string) (string, error) {
	if len(s) > MaxOutput {
		return "", errTooLarge
	}
	if s = f(s); len(s) > MaxOutput {
		return "", errTooLarge
	}
	return s, nil
}

func fallback(def any, v ...any) (any, error) {
	if len(v) > 1 {
		return nil, fmt.Errorf("default takes a fallback and a value, got %d values", len(v))
	}
	if len(v) == 0 || v[0] == nil || v[0] == (null{}) || v[0] == "" {
		return def, nil
	}
	return v[0], nil
}

func join(a, b any) (string, error) {
	sep, isText := a.(string)
	list, isList := b.([]any)
	if !isList {
		sep, isText = b.(string)
		list, isList = a.([]any)
	}
	if a == nil || b == nil {
		return "", errMissing
	}
	if s, ok := a.(string); ok && s != "" && b == "" {
		return "", nil // an empty string instead of a list counts as an empty list
	}
	if !isText || !isList {
		return "", fmt.Errorf("join takes a separator and a list, got %s and %s", kind(a), kind(b))
	}
	if !fits(list, strings.Repeat(" ", min(len(sep), MaxOutput))) || len(sep)*len(list) > MaxOutput {
		return "", errTooLarge
	}
	parts := make([]string, len(list))
	for i, e := range list {
		s, err := textOf(e)
		if err != nil {
			return "", fmt.Errorf("item %d of the list is null", i)
		}
		parts[i] = s
	}
	return strings.Join(parts, sep), nil
}

// printAll is fmt.Sprint for JSON values: it puts a space between two values if neither is a string.
func printAll(values ...any) (any, error) {
	if !fits(values...) {
		return "", errTooLarge
	}
	var b strings.Builder
	wasString := true
	for _, v := range values {
		s, err := textOf(v)
		if err != nil {
			return "", err
		}
		_, isString := v.(string)
		if !isString && !wasString {
			b.WriteByte(' ')
		}
		wasString = isString
		b.WriteString(s)
	}
	return b.String(), nil
}

func spaced(values []any) (string, error) {
	if !fits(values...) {
		return "", errTooLarge
	}
	parts := make([]string, len(values))
	for i, v := range values {
		var err error
		if parts[i], err = textOf(v); err != nil {
			return "", err
		}
	}
	return strings.Join(parts, " "), nil
}

// kind returns the type of a value for messages.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case null:
		return "null"
	case bool:
		return "a boolean"
	case string, raw:
		return "a string"
	case map[string]any:
		return "an object"
	case []any:
		return "a list"
	}
	return "a number"
}
