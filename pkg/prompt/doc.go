// Package prompt compiles Prompt manifests and renders them into messages.
//
//	p, err := prompt.Compile(manifest)
//	messages, err := p.Render(ctx, json.RawMessage(`{"city": "Oslo"}`))
//
// # Variables
//
// The variables of a rendering are one JSON value, in most cases an object. They go
// through these steps, and every violation is reported, not the first:
//
//  1. What is absent gets the default of its argument, else that of its property in
//     spec.input.
//  2. They are coerced where they can be, as the arguments of a call are ("5" for an
//     integer), and validated against spec.input.
//  3. Arguments with required: true must be there.
//  4. The templates are rendered. Printing a variable that is absent is a violation; {{if}}
//     and default are the ways to expect that.
//
// Where spec.input describes a string, an array or another value that is not an object,
// that value is the dot of the template: {{.}}.
//
// # Templates
//
// spec.system_prompt becomes a message of the role system, spec.template one of the
// role user; one that renders to nothing but space is left out. Both are templates of
// [toolctl.dev/toolctl/internal/template], which bounds their size, output and time. With
// template_syntax mustache, {{name}} is a variable and nothing else is known; a
// declared argument that is optional and has no default is empty there.
package prompt
