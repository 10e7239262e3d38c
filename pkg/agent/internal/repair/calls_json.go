package repair

import (
	"encoding/json"
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/validate"
)

// bare takes a text that is nothing but JSON: one document, or several.
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

// spoken finds objects whose first member is tool_calls, whatever is said around them.
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

// read reads calls out of JSON; with strict the arguments must be there, as JSON that
// has a name is not yet a call.
func read(body string, strict bool) []Call {
	body = strings.TrimSpace(body)
	if body == "" || !strings.Contains("{[", body[:1]) {
		return nil
	}
	doc, err := validate.Decode([]byte(body))
	if err != nil {
		o, _, how, err := Object(body, false)
		if err != nil || body[0] != '{' || how == Closed && strict {
			return nil
		}
		doc = o
	}
	return shapes(doc, strict, 0)
}

// shapes finds the calls in the forms that models know: {name, arguments}, that under
// function, and lists of them, also under tool_calls.
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

func arguments(o map[string]any) (string, bool) {
	for _, key := range []string{"arguments", "parameters", "args", "input"} {
		switch v := o[key].(type) {
		case string:
			return v, true
		case map[string]any:
			return string(jsontext.Of(v)), true
		}
	}
	return "", false
}
