package prompt

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/validate"
)

// Arguments returns the variables as arguments for MCP clients (MCP specification,
// server/prompts, PromptArgument): those of spec.arguments, then the properties of
// spec.input, then other variables that the templates read. An argument that spec.input
// requires is required unless it has a default.
func (p *Prompt) Arguments() []v1.PromptArgument {
	args := slices.Clone(p.object.Spec.Arguments)
	find := func(name string) int {
		return slices.IndexFunc(args, func(a v1.PromptArgument) bool { return a.Name == name })
	}
	if p.in.takesObject() {
		for _, name := range p.in.order {
			i := find(name)
			if i < 0 {
				i = len(args)
				args = append(args, v1.PromptArgument{Name: name})
			}
			a, prop := &args[i], p.in.properties[name]
			a.Title = cmp.Or(a.Title, prop.Title)
			a.Description = cmp.Or(a.Description, prop.Description)
			if len(a.Default) == 0 {
				a.Default = prop.Default
			}
			a.Required = a.Required || slices.Contains(p.in.required, name)
		}
	} else if len(args) == 0 {
		args = append(args, v1.PromptArgument{Name: ValueArgument, Description: "the prompt's input: " + oneOf(p.in.types), Required: true})
	}
	if p.in.takesObject() && !p.in.closed {
		for _, name := range p.Variables() {
			if find(name) < 0 {
				args = append(args, v1.PromptArgument{Name: name})
			}
		}
	}
	for i := range args {
		if len(args[i].Default) > 0 {
			args[i].Required = false
		}
	}
	return args
}

// ValueArgument is the name of the argument that holds the whole input if the input of a prompt is not an object. It
// is for callers that need a name.
const ValueArgument = "input"

// FromStrings returns the variables for arguments that are texts, such as those of MCP
// prompts. A text is read as JSON if spec.input requires a number, a boolean, an object or
// an array, and stays a string if spec.input allows one. The result is nil if the argument
// with the whole input is missing.
func (p *Prompt) FromStrings(args map[string]string) json.RawMessage {
	if !p.in.takesObject() {
		text, given := args[ValueArgument]
		if !given {
			return nil
		}
		return asValue(text, p.in.types)
	}
	vars := make(map[string]json.RawMessage, len(args))
	for name, text := range args {
		vars[name] = asValue(text, p.in.properties[name].Types)
	}
	return jsontext.Of(vars)
}

// asValue reads a text as a value of one of the types. The text stays a string if they
// include string, or if it is not valid JSON.
func asValue(text string, want types) json.RawMessage {
	if len(want) > 0 && !slices.Contains(want, "string") {
		if _, err := validate.Decode([]byte(text)); err == nil {
			return json.RawMessage(text)
		}
	}
	return jsontext.Of(text)
}

// maxCompletions is the maximum number of values in one MCP response.
const maxCompletions = 100

// Complete returns at most 100 allowed values of an argument that begin with prefix, in the
// order of spec.input, and their total number. ok is false if the prompt has no such argument.
func (p *Prompt) Complete(argument, prefix string) (values []string, total int, ok bool) {
	ok = slices.ContainsFunc(p.Arguments(), func(a v1.PromptArgument) bool { return a.Name == argument })
	prop := p.in.properties[argument]
	all := prop.Enum
	if len(prop.Const) > 0 {
		all = []any{prop.Const}
	} else if len(all) == 0 && slices.Contains(prop.Types, "boolean") {
		all = []any{true, false}
	}
	for _, v := range all {
		text, isString := v.(string)
		if !isString {
			raw, err := json.Marshal(v)
			if err != nil || string(raw) == "null" {
				continue
			}
			if json.Unmarshal(raw, &text) != nil {
				text = string(raw)
			}
		}
		if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
			continue
		}
		if total++; len(values) < maxCompletions {
			values = append(values, text)
		}
	}
	return values, total, ok
}

// oneOf returns the types of a schema as text.
func oneOf(names []string) string {
	words := map[string]string{"string": "a string", "array": "an array", "number": "a number", "integer": "an integer", "boolean": "a boolean", "null": "null", "object": "an object"}
	var all []string
	for _, n := range names {
		if w := words[n]; w != "" {
			all = append(all, w)
		}
	}
	if len(all) == 0 {
		return "a value"
	}
	return strings.Join(all, " or ")
}
