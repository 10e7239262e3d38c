// Package template renders Go text/template sources with the arguments of a
// call: into JSON, where no argument can change the shape of the result, and
// into plain text, where the caller says how each value is escaped.
//
//	t, err := template.ParseJSON("mock_template", `{"greeting": "hello {{.name}}"}`)
//	out, err := t.Render(ctx, map[string]any{"name": `"quoted"`})
//	// {"greeting": "hello \"quoted\""}
//
// # Values
//
// Arguments are JSON data: map[string]any, []any, string, bool, nil and numbers of
// any Go type, [encoding/json.Number] being the one that keeps every digit. A whole number
// that fits is an int64 in the template and another number a float64, so that if, index and
// printf work; a number that neither holds exactly stays text and keeps every digit.
//
// What is absent or null cannot be printed: `{{.units}}` without that argument
// is an error that names it. `{{if .units}}`, `{{default "metric" .units}}` and
// `{{json .units}}` are the ways to expect it. "<no value>" is never printed,
// except by what [ParseLenient] read.
//
// # JSON
//
// A value inside a JSON string is escaped: strings as they are, numbers with all
// their digits, objects and lists as JSON text. A value outside a string is
// encoded as JSON, so a string gets its quotes and null is null. What `json` and printf with
// numbers alone gave stands outside a string as it is. The result has to be JSON,
// with no key twice where a key was rendered.
//
// # Mustache
//
// [ParseMustache] reads {{name}} and nothing more, for prompts that were written so.
//
// # Functions
//
// The functions of text/template, of which and, or, not, index, slice, len and call
// are its own, and these:
//
//	json VALUE             the value as JSON; null when it is absent
//	default FALLBACK VALUE the fallback when the value is absent, null or ""; 0 and false are values
//	join SEPARATOR LIST    the items as text, with the separator between; also LIST SEPARATOR
//	upper, lower, trim     the value as text, in capitals, in small letters, without space around it
//	eq ne lt le gt ge      compare JSON values: 5, 5.0 and 5e0 are equal, values of two kinds are not,
//	                       and only numbers or strings have an order
//	print println printf   as in fmt; printf takes no "*", no "[1]" and no width above 1000
//	html js urlquery       escape text
//
// # Bounds
//
// Sources are untrusted. Their size, nesting and calls in one action are bounded when
// they are parsed, and a template that calls itself is refused; output, steps
// and time are bounded when they are rendered. A panic is an error.
package template

// Bounds of a template.
const (
	// MaxSource is the size of the largest source, in bytes.
	MaxSource = 256 << 10
	// MaxOutput is the size of the largest output, and of the largest text that a function makes, in bytes.
	MaxOutput = 10 << 20
	// MaxSteps is how many pieces of text, values and turns of a loop one rendering may have.
	MaxSteps = 1_000_000

	maxNesting = 100 // of if, range, with and parentheses
	maxCalls   = 64  // of functions in one action: ctx is not checked between them
	maxWidth   = 1000
)
