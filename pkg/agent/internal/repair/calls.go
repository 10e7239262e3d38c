package repair

import (
	"strings"

	"toolctl.dev/toolctl/internal/jsontext"
)

// Call is a call in a text.
type Call struct {
	// Name is the name of the tool, and Args are the arguments as the model wrote them.
	Name, Args string
	// Block is the part of the text with the call.
	Block string
}

// maxCalls is the maximum number of calls in one text.
const maxCalls = 64

// family is one format of calls in a text: a block between open and end. The last block may lack its end. Without an
// end in the format, the block extends to the end of the text.
type family struct {
	open, end string
	// read reads the body of a block; ended says that the block has its end.
	read func(body string, ended bool) []Call
}

// tags are the forms whose delimiters have no other meaning.
var tags = []family{
	{"<tool_call>", "</tool_call>", tagged},   // Hermes, Qwen
	{"<tool_calls>", "</tool_calls>", tagged}, // a list of calls
	{"<assistant_tool_calls>", "</assistant_tool_calls>", tagged},
	{"<function_call>", "</function_call>", tagged},
	{functionOpen, functionEnd, function},                   // Llama 3, Qwen Coder
	{"<|tool_call>", "<tool_call|>", gemma},                 // Gemma 4
	{"<start_function_call>", "<end_function_call>", gemma}, // FunctionGemma
	{"[TOOL_CALLS]", "", mistral},                           // Mistral
	{"<|python_tag|>", "", tagged},                          // Llama 3.1
}

// fences are code blocks of Markdown.
var fences = []family{{"```", "```", fenced}}

// Calls finds the calls in a text: between the tags of a model family, in fenced JSON, as the only JSON in the text,
// or as {"tool_calls": …} after some words. It returns the calls for which wanted returns true. rest is the text
// without them.
func Calls(text string, wanted func(Call) bool) (calls []Call, rest string) {
	if len(text) > maxBytes || !strings.ContainsAny(text, "{<") {
		return nil, text
	}
	for _, find := range []func(string) []block{
		func(text string) []block { return blocksOf(tags, text) },
		func(text string) []block { return blocksOf(fences, text) },
		bare,
		spoken,
	} {
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

// blocksOf finds the blocks of some families in the order of the text.
func blocksOf(families []family, text string) []block {
	var blocks []block
	for at := 0; at < len(text) && len(blocks) < maxCalls; {
		from, f := next(families, text, at)
		if f == nil {
			break
		}
		start := from + len(f.open)
		body, to, ended := text[start:], len(text), false
		if i := strings.Index(body, f.end); i >= 0 && f.end != "" {
			body, to, ended = body[:i], start+i+len(f.end), true
		} else if i := strings.Index(body, f.open); i >= 0 && f.open != functionOpen {
			body, to = body[:i], start+i
		}
		calls := f.read(body, ended)
		if calls == nil { // another family's block may be inside
			at = start
			if f.open == f.end {
				at = to
			}
			continue
		}
		blocks = append(blocks, block{from, to, calls})
		at = to
	}
	return blocks
}

// next finds the family whose open comes first; nil if no family matches.
func next(families []family, text string, at int) (from int, found *family) {
	for i := range families {
		if j := strings.Index(text[at:], families[i].open); j >= 0 && (found == nil || at+j < from) {
			from, found = at+j, &families[i]
		}
	}
	return from, found
}

const functionOpen, functionEnd = "<function=", "</function>"

// tagged reads JSON, or a function tag, between tags.
func tagged(body string, ended bool) []Call {
	if _, inner, ok := strings.Cut(body, functionOpen); ok {
		inner, _, found := strings.Cut(inner, functionEnd)
		return function(inner, found || ended)
	}
	return read(body, false)
}

// function reads NAME>… with arguments that are an object or <parameter=KEY> tags. If the last tag was cut off, the
// object of arguments stays unclosed, too.
func function(body string, ended bool) []Call {
	name, args, ok := strings.Cut(body, ">")
	if name = strings.Trim(name, ` "'`); !ok || name == "" {
		return nil
	}
	if !strings.Contains(args, "<parameter=") {
		return []Call{{Name: name, Args: strings.TrimSpace(args)}}
	}
	values, cut := map[string]any{}, false
	for _, one := range strings.Split(args, "<parameter=")[1:] {
		key, value, ok := strings.Cut(one, ">")
		if key = strings.Trim(key, ` "'`); !ok || key == "" {
			return nil
		}
		value, _, ok = strings.Cut(value, "</parameter>")
		values[key], cut = strings.Trim(value, "\n"), !ok && !ended
	}
	args = string(jsontext.Of(values))
	if cut {
		args = strings.TrimSuffix(args, "}")
	}
	return []Call{{Name: name, Args: args}}
}

// mistral reads a list of calls or, from newer models, NAME[ARGS]{…}, possibly with [CALL_ID]…
// after the name.
func mistral(body string, ended bool) []Call {
	name, args, ok := strings.Cut(body, "[ARGS]")
	if !ok {
		return tagged(body, ended)
	}
	name, _, _ = strings.Cut(name, "[CALL_ID]")
	if name = strings.TrimSpace(name); name == "" {
		return nil
	}
	return []Call{{Name: name, Args: strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(args), "</s>"))}}
}

// fenced reads a code block: a word for its language, and JSON.
func fenced(body string, _ bool) []Call {
	if word, rest, ok := strings.Cut(body, "\n"); ok && !strings.ContainsAny(word, "{[") {
		body = rest
	}
	return read(body, true)
}
