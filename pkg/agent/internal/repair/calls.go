package repair

import (
	"strings"

	"toolctl.dev/toolctl/pkg/validate"
)

// Call is a call that stands in a text.
type Call struct {
	// Name is the tool's name, Args the arguments as they were written.
	Name, Args string
	// Block is the part of the text that asks for the call.
	Block string
}

// maxCalls bounds the calls that are read out of one text.
const maxCalls = 64

// Calls finds the calls that a model wrote as text: between <tool_call> tags, as
// <function=NAME>, in fenced JSON, or as a text that is nothing but JSON. It takes only
// those that wanted says yes to. rest is the text without what was taken.
func Calls(text string, wanted func(Call) bool) (calls []Call, rest string) {
	if len(text) > maxBytes || !strings.ContainsAny(text, "{<") {
		return nil, text
	}
	for _, find := range []func(string) []block{tagged, fenced, bare} {
		rest = text
		for _, b := range find(text) {
			var taken []Call
			for _, c := range b.calls {
				if c.Block = text[b.from:b.to]; len(calls)+len(taken) < maxCalls && wanted(c) {
					taken = append(taken, c)
				}
			}
			if taken != nil {
				calls = append(calls, taken...)
				rest = strings.Replace(rest, text[b.from:b.to], "", 1)
			}
		}
		if calls != nil {
			return calls, strings.TrimSpace(rest)
		}
	}
	return nil, text
}

// block is a part of a text and the calls in it.
type block struct {
	from, to int
	calls    []Call
}

// tagged finds <tool_call>…</tool_call>, the last of which may have no end, and
// <function=NAME>…</function>.
func tagged(text string) []block {
	var blocks []block
	for at := 0; at < len(text) && len(blocks) < maxCalls; {
		from, open, end := nextTag(text, at)
		if from < 0 {
			break
		}
		body := text[from+len(open):]
		to, size := len(text), len(body)
		if i := strings.Index(body, end); i >= 0 {
			size, to = i, from+len(open)+i+len(end)
		} else if i := strings.Index(body, open); i >= 0 && open != functionOpen {
			size, to = i, from+len(open)+i
		}
		body = body[:size]
		var calls []Call
		if open == functionOpen {
			calls = function(body)
		} else if _, inner, ok := strings.Cut(body, functionOpen); ok {
			inner, _, _ = strings.Cut(inner, functionEnd)
			calls = function(inner)
		} else {
			calls = read(body, false)
		}
		blocks = append(blocks, block{from, to, calls})
		at = to
	}
	return blocks
}

const functionOpen, functionEnd = "<function=", "</function>"

func nextTag(text string, at int) (from int, open, end string) {
	from = -1
	for _, tag := range [][2]string{{"<tool_call>", "</tool_call>"}, {"<function_call>", "</function_call>"}, {functionOpen, functionEnd}} {
		if i := strings.Index(text[at:], tag[0]); i >= 0 && (from < 0 || at+i < from) {
			from, open, end = at+i, tag[0], tag[1]
		}
	}
	return from, open, end
}

// function reads NAME>… whose arguments are an object or <parameter=KEY> tags.
func function(body string) []Call {
	name, args, ok := strings.Cut(body, ">")
	if name = strings.Trim(name, ` "'`); !ok || name == "" {
		return nil
	}
	if !strings.Contains(args, "<parameter=") {
		return []Call{{Name: name, Args: strings.TrimSpace(args)}}
	}
	values := map[string]any{}
	for _, one := range strings.Split(args, "<parameter=")[1:] {
		key, value, ok := strings.Cut(one, ">")
		if key = strings.Trim(key, ` "'`); !ok || key == "" {
			return nil
		}
		value, _, _ = strings.Cut(value, "</parameter>")
		values[key] = strings.Trim(value, "\n")
	}
	return []Call{{Name: name, Args: string(Encode(values))}}
}

// fenced finds blocks between lines of three backticks.
func fenced(text string) []block {
	const fence = "```"
	var blocks []block
	for at := 0; len(blocks) < maxCalls; {
		i := strings.Index(text[at:], fence)
		if i < 0 {
			break
		}
		from := at + i
		body := text[from+len(fence):]
		end := strings.Index(body, fence)
		if end < 0 {
			break
		}
		to := from + len(fence) + end + len(fence)
		body = body[:end]
		if word, rest, ok := strings.Cut(body, "\n"); ok && !strings.ContainsAny(word, "{[") {
			body = rest
		}
		blocks = append(blocks, block{from, to, read(body, true)})
		at = to
	}
	return blocks
}

// bare takes a text that is nothing but JSON.
func bare(text string) []block {
	return []block{{0, len(text), read(text, true)}}
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
		o, _, _, err := Object(body, false)
		if err != nil || body[0] != '{' {
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
			return shapes(o[key], strict, depth+1)
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
			return string(Encode(v)), true
		}
	}
	return "", false
}
