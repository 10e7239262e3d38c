// Package prompt compiles Prompt manifests and renders them into messages.
//
//	p, err := prompt.Compile(manifest)
//	messages, err := p.Render(ctx, json.RawMessage(`{"city": "Oslo"}`))
//
// # Variables
//
// The variables of a rendering are one JSON value, usually an object. They go through these
// steps, and all violations are reported, not only the first one:
//
//  1. An absent variable gets the default of its argument, or of its property in
//     spec.input.
//  2. The variables are coerced like the arguments of a call ("5" for an integer), and
//     validated against spec.input.
//  3. Arguments with required: true must be present.
//  4. The templates are rendered. Printing an absent variable is a violation; templates can
//     use {{if}} and default to avoid it.
//
// If spec.input describes a value that is not an object, such as a string or an array, that
// value is the dot of the template: {{.}}.
//
// # Templates
//
// spec.system_prompt becomes a message with the role system, and spec.template one with the
// role user. A message of white space is left out. Both are templates of
// [toolctl.dev/toolctl/internal/template], which limits their size, output and time. With
// template_syntax mustache, templates have only variables ({{name}}), and an optional argument
// without a default is empty.
package prompt
