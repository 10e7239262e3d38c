// Package template renders Go text/template sources with the arguments of a
// call: into JSON, where no argument can change the structure of the result, and
// into plain text, where the caller escapes each value.
//
//	t, err := template.ParseJSON("mock_template", `{"greeting": "hello {{.name}}"}`)
//	out, err := t.Render(ctx, map[string]any{"name": `"quoted"`})
//	// {"greeting": "hello \"quoted\""}
//
// # Values
//
// Arguments are JSON data: map[string]any, []any, string, bool, nil and numbers of
// any Go type; [encoding/json.Number] keeps all digits. In the template, a number is an
// int64 if that is exact, or else a float64, so that if, index and printf work; a number
// that neither represents exactly stays text and keeps all digits.
//
// Missing and null values cannot be printed: `{{.units}}` without that argument
// is an error that names it. `{{if .units}}`, `{{default "metric" .units}}` and
// `{{json .units}}` handle its absence. Only templates of [ParseLenient] print
// "<no value>".
//
// # JSON
//
// A value inside a JSON string is escaped: strings unchanged, numbers with all
// their digits, objects and lists as JSON text. A value outside of a string is
// encoded as JSON, so a string gets quotes and null is null. Results of `json`, and of
// printf with a single number, are not encoded again. The output must be JSON, without
// duplicate keys if a key was rendered.
//
// # Mustache
//
// [ParseMustache] reads {{name}} and nothing else, for prompts in this syntax.
//
// # Functions
//
// The functions and, or, not, index, slice, len and call of text/template, and these:
//
//	json VALUE             the value as JSON; null if it is missing
//	default FALLBACK VALUE the fallback if the value is missing, null or ""; 0 and false are values
//	join SEPARATOR LIST    the items as text, joined by the separator; also LIST SEPARATOR
//	upper, lower, trim     the value as text in upper case, in lower case, without surrounding space
//	eq ne lt le gt ge      compare JSON values: 5, 5.0 and 5e0 are equal, values of different types are
//	                       not, and only numbers and strings have an order
//	print println printf   as in fmt; printf takes no "*", no "[1]" and no width above 1000
//	html js urlquery       escape text
//
// # Bounds
//
// Sources are untrusted. Parsing limits their size, their nesting and the calls in an action,
// and refuses recursive templates; rendering limits the output, the steps and the
// time. A panic becomes an error.
package template

// Limits of a template.
const (
	// MaxSource is the maximum size of a source, in bytes.
	MaxSource = 256 << 10
	// MaxOutput is the maximum size of the output, and of a text that a function returns, in bytes.
	MaxOutput = 10 << 20
	// MaxSteps is the maximum number of text pieces, values and loop iterations of a rendering.
	MaxSteps = 1_000_000

	maxNesting = 100 // limit for if, range, with and parentheses
	maxCalls   = 64  // function calls in an action, between which ctx is not checked
	maxWidth   = 1000
)
