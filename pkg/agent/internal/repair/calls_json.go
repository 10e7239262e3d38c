package repair

import (
	"encoding/json"
	"slices"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/validate"
)

// bare reads a text that contains only JSON: one document, or several.
func bare(text string) []block {
	if calls := read(text, true); calls != nil {
		return []block{{0, len(text), calls}}
	}
	var blocks []block
	in := json.NewDecoder(strings.NewReader(text))
	for in.More() && len(blocks) < maxCalls {
		var doc json.RawMessage
		if in.Decode(&doc) != nil {
			return nil
		}
		to := int(in.InputOffset())
		blocks = append(blocks, block{to - len(doc), to, read(string(doc), true)})
	}
	return blocks
}

// spoken finds objects whose first member is tool_calls in any text.
func spoken(text string) []block {
	var blocks []block
	for at := 0; len(blocks) < maxCalls; {
		i := strings.IndexByte(text[at:], '{')
		if i < 0 {
			break
		}
		from := at + i
		at = from + 1
		if !strings.HasPrefix(strings.TrimLeft(text[at:], " \t\r\n"), `"tool_calls"`) {
			continue
		}
		to := len(text)
		if n := closing(text[from:]); n >= 0 {
			to = from + n
		}
		blocks = append(blocks, block{from, to, read(text[from:to], true)})
		at = to
	}
	return blocks
}

// read reads calls from JSON. With strict, the arguments must be complete, because not every object with a name is a
// call. Without strict, read does not complete arguments that were cut off.
func read(body string, strict bool) []Call {
	body = strings.TrimSpace(body)
	if body == "" || !strings.Contains("{[", body[:1]) {
		return nil
	}
	doc, err := validate.Decode([]byte(body))
	if err != nil {
		whole := body
		if body[0] == '[' {
			whole = `{"tool_calls":` + body
		}
		o, _, how, err := Object(whole, false)
		if err != nil || body[0] == '[' && strict {
			return nil
		}
		if how == Closed {
			return cutOff(shapes(o, strict, 0), body, strict)
		}
		doc = o
	}
	return shapes(doc, strict, 0)
}

// cutOff returns the calls of a text that ends inside its JSON. The last call keeps the existing part of its
// arguments, and is dropped if it has no arguments. With strict, a call with incomplete arguments is not a call.
func cutOff(calls []Call, body string, strict bool) []Call {
	if len(calls) == 0 {
		return nil
	}
	last := &calls[len(calls)-1]
	rest, found := lastArguments(body)
	switch {
	case last.Args == "":
		return calls[:len(calls)-1]
	case found && closing(rest) >= 0:
	case strict:
		return nil
	case found:
		last.Args = rest
	default: // the arguments are not a JSON object
		last.Args = strings.TrimSuffix(last.Args, "}")
	}
	return calls
}

// lastArguments returns the rest of a text from the arguments of its last call.
func lastArguments(body string) (rest string, found bool) {
	for at := 0; ; {
		i := strings.IndexByte(body[at:], '"')
		if i < 0 {
			return rest, found
		}
		key := at + i
		at = jsontext.SkipString(body, key)
		value, ok := strings.CutPrefix(strings.TrimLeft(body[at:], " \t\r\n"), ":")
		if value = strings.TrimLeft(value, " \t\r\n"); !ok || !slices.Contains(argumentKeys, strings.Trim(body[key:at], `"`)) || !strings.HasPrefix(value, "{") {
			continue
		}
		rest, found = value, true
		n := closing(value)
		if n < 0 {
			return rest, found
		}
		at = len(body) - len(value) + n
	}
}

// shapes finds calls in their usual forms: {name, arguments}, the same under function, and
// lists of these, also under tool_calls.
func shapes(doc any, strict bool, depth int) []Call {
	if depth > 3 {
		return nil
	}
	if list, ok := doc.([]any); ok {
		var calls []Call
		for _, one := range list {
			if calls = append(calls, shapes(one, strict, depth+1)...); len(calls) >= maxCalls {
				break
			}
		}
		return calls
	}
	o, ok := doc.(map[string]any)
	if !ok {
		return nil
	}
	for _, key := range []string{"tool_calls", "function"} {
		switch o[key].(type) {
		case []any, map[string]any:
			return shapes(o[key], strict && key != "tool_calls", depth+1)
		}
	}
	for _, key := range []string{"name", "tool", "tool_name", "function"} {
		name, ok := o[key].(string)
		if !ok || name == "" {
			continue
		}
		args, ok := arguments(o)
		if !ok && strict {
			return nil
		}
		return []Call{{Name: name, Args: args}}
	}
	return nil
}

// argumentKeys are the names under which models write the arguments of a call.
var argumentKeys = []string{"arguments", "parameters", "args", "input"}

func arguments(o map[string]any) (string, bool) {
	for _, key := range argumentKeys {
		switch v := o[key].(type) {
		case string:
			return v, true
		case map[string]any:
			return string(jsontext.Of(v)), true
		}
	}
	return "", false
}
