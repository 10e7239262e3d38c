package repair_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/agent/internal/repair"
)

func TestObject(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		cut        bool
		want, how  string // both are empty if the text is not an object
	}{
		{name: "as it is", text: ` {"b":1, "a":9007199254740993} `, want: `{"a":9007199254740993,"b":1}`},
		{name: "nothing", text: " \n", want: `{}`},
		{name: "a JSON string", text: `"{\"a\": 1}"`, want: `{"a":1}`, how: repair.Unquoted},
		{name: "a fence", text: "```json\n{\"a\": 1}\n```", want: `{"a":1}`, how: repair.Trimmed},
		{name: "a brace too many", text: `{"a": 1}}`, want: `{"a":1}`, how: repair.Trimmed},
		{name: "words around", text: `Sure: {"a": "}"} is it`, want: `{"a":"}"}`, how: repair.Trimmed},
		{name: "an empty object first", text: `{}{"a": 1}`, want: `{"a":1}`, how: repair.Trimmed},
		{name: "two objects", text: `{"a": 1}{"a": 2}`},
		{name: "single quotes", text: `{'a': 'x'}`, want: `{"a":"x"}`, how: repair.Repaired},
		{name: "bare keys and a comma too many", text: `{a: 1, b: [1,2,],}`, want: `{"a":1,"b":[1,2]}`, how: repair.Repaired},
		{name: "Python's words", text: `{"a": True, "b": None}`, want: `{"a":true,"b":null}`, how: repair.Repaired},
		{name: "cut off in a list", text: `{"a": "x", "b": [1`, want: `{"a":"x","b":[1]}`, how: repair.Closed},
		{name: "cut off after an item", text: `{"b": [1, `, want: `{"b":[1]}`, how: repair.Closed},
		{name: "cut off in a string", text: `{"path": "src/main.g`, want: `{"path":"src/main.g"}`, how: repair.Closed},
		{name: "cut off after a slash", text: `{"path": "/tmp/`, want: `{"path":"/tmp/"}`, how: repair.Closed},
		{name: "cut off after a space", text: `{"text": "one `, want: `{"text":"one "}`, how: repair.Closed},
		{name: "cut off after an escape", text: `{"path": "C:\\`, want: `{"path":"C:\\"}`, how: repair.Closed},
		{name: "cut off in an escape", text: `{"path": "C:\`},
		{name: "cut off in an escape of four digits", text: `{"a": "\u00e`},
		{name: "cut off between the halves of a pair", text: `{"a": "\ud83d`},
		{name: "cut off after a pair", text: `{"a": "\ud83d\ude00`, want: `{"a":"😀"}`, how: repair.Closed},
		{name: "cut off in a character", text: "{\"a\": \"m\xc3"},
		{name: "sloppy and cut off in an escape", text: `{path: 'C:\`},
		{name: "sloppy and cut off in a string", text: `{path: 'src/main.g`, want: `{"path":"src/main.g"}`, how: repair.Closed},
		{name: "cut off in a nested list", text: `{"a": [{"b": ["x", "y`, want: `{"a":[{"b":["x","y"]}]}`, how: repair.Closed},
		{name: "cut off in a key", text: `{"a": 1, "b`},
		{name: "cut off in a word", text: `{"a": tru`},
		{name: "cut off after a sign", text: `{"a": -`},
		{name: "cut off at a point", text: `{"a": 1.`},
		{name: "cut off at a point in a list", text: `{"a": [2, 1.`},
		{name: "cut off in an exponent", text: `{"a": 1e`},
		{name: "cut off after the sign of an exponent", text: `{"a": [1.5e-`},
		{name: "cut off after a number", text: `{"a": 1.5`, want: `{"a":1.5}`, how: repair.Closed},
		{name: "cut off at the first brace", text: `{`},
		{name: "words before, and cut off", text: `Sure: {"a": "x`, want: `{"a":"x"}`, how: repair.Closed},
		{name: "null", text: "null", want: `{}`},
		{name: "no end, and cut off", text: `{"a": "x", "b": [1`, cut: true},
		{name: "a fence, and cut off after it", text: "```\n{\"a\": 1}\n```", cut: true, want: `{"a":1}`, how: repair.Trimmed},
		{name: "a value that is missing", text: `{"a": `},
		{name: "a line break in a string", text: "{\"a\": \"x\ny\"}", want: `{"a":"x\ny"}`, how: repair.Repaired},
		{name: "a list", text: `[1]`},
		{name: "a text", text: `Oslo`},
		{name: "Gemma's marks in texts", text: `{"place": "<|\"|>Oslo, NO<|\"|>", "days": 3}`, want: `{"days":3,"place":"Oslo, NO"}`, how: repair.Repaired},
		{name: "code in a string, and a comma too many", text: `{"content":"def f():\n\treturn 1\n","n":1,}`, want: `{"content":"def f():\n\treturn 1\n","n":1}`, how: repair.Repaired},
		{name: "a fence that never ends, and a comma too many", text: "```json\n{\"a\": 1,}\n", want: `{"a":1}`, how: repair.Repaired},
		{name: "a fence around what has no end", text: "```json\n{\"a\": [1, 2\n```", want: `{"a":[1,2]}`, how: repair.Closed},
		{name: "a fence around a string that has no end", text: "```json\n{\"a\": \"x\n```"},
		{name: "a closer missing within", text: `{"a": [1, 2, "b", {"c": 1]}`, want: `{"a":[1,2,"b",{"c":1}]}`, how: repair.Repaired},
		{name: "a quote that may be missing", text: `{"a": "x}`},
		{name: "quotes in a string", text: `{"a": "say "hi" now"}`},
		{name: "an apostrophe between single quotes", text: `{'a': 'it's', 'b': 1}`},
		{name: "an object that is closed too early", text: `{"a": 1}, "b": 2}`},
		{name: "an object, and a sentence", text: `I call it with {"a": 1}, and then again.`, want: `{"a":1}`, how: repair.Trimmed},
		{name: "a regular expression", text: `{"a": "\d+\s"}`, want: `{"a":"\\d+\\s"}`, how: repair.Repaired},
		{name: "a path of Windows that may be escaped", text: `{"a": "C:\Users\new"}`},
		{name: "a value that is missing between commas", text: `{"a": [1,,2]}`},
		{name: "a word that nobody knows", text: `{"a": undefined}`},
		{name: "a word without quotes", text: `{"a": Oslo}`},
		{name: "numbers of other languages", text: `{"a": +1, "b": .5, "c": -.5}`, want: `{"a":1,"b":0.5,"c":-0.5}`, how: repair.Repaired},
		{name: "a number of another base", text: `{"a": 0x1F}`},
		{name: "numbers between which a comma may be missing", text: `{"a": [1 000]}`},
		{name: "Gemma's mark in a text about it", text: `{"a": "it is <|\"|>", "b": 1}`, want: `{"a":"it is <|\"|>","b":1}`},
		{name: "the same member twice", text: `{"a": 1, "a": 2}`},
		{name: "too deep", text: strings.Repeat(`{"a":`, 500)},
		{name: "too long", text: `{"a":"` + strings.Repeat("x", 1<<20) + `"}`},
		{name: "too expensive to repair", text: `{a:` + strings.Repeat(`"`, 100_000)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc, raw, how, err := repair.Object(tc.text, tc.cut)
			if tc.want == "" {
				if err == nil {
					t.Fatalf("got %s, %s", raw, how)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := string(jsontext.Of(doc)); got != tc.want || how != tc.how {
				t.Errorf("got %s, %q; want %s, %q", got, how, tc.want, tc.how)
			}
		})
	}
}

func TestCalls(t *testing.T) {
	for _, tc := range []struct {
		name, text string
		want       []string // names and arguments
		rest       string
	}{
		{name: "none", text: `It is {"name": "get"} sunny.`, rest: `It is {"name": "get"} sunny.`},
		{name: "a tag", text: `I look. <tool_call>{"name": "get", "arguments": {"b": 1, "a": 2}}</tool_call>`, want: []string{`get {"a":2,"b":1}`}, rest: "I look."},
		{name: "two tags, the last without an end", text: "<tool_call>\n{\"name\":\"get\",\"arguments\":{}}\n</tool_call><tool_call>{\"name\":\"put\"}", want: []string{"get {}", "put "}},
		{name: "a tag whose JSON is sloppy", text: `<tool_call>{'name': 'get', 'arguments': {'a': 1}}</tool_call>`, want: []string{`get {"a":1}`}},
		{name: "arguments as a text", text: `<tool_call>{"name": "get", "arguments": "{\"a\": 1"}</tool_call>`, want: []string{`get {"a": 1`}},
		{name: "a function tag", text: `<function=get>{"a": 1}</function> done`, want: []string{`get {"a": 1}`}, rest: "done"},
		{name: "parameter tags", text: "<tool_call>\n<function=get>\n<parameter=city>\nOslo\n</parameter>\n<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>", want: []string{`get {"city":"Oslo","days":"3"}`}},
		{name: "a fence", text: "Here:\n```json\n{\"tool\": \"get\", \"args\": {\"a\": 1}}\n```", want: []string{`get {"a":1}`}, rest: "Here:"},
		{name: "a fence with a list", text: "```\n[{\"name\":\"get\",\"parameters\":{}},{\"function\":{\"name\":\"put\",\"arguments\":\"{}\"}}]\n```", want: []string{"get {}", "put {}"}},
		{name: "a fence of something else", text: "```json\n{\"name\": \"get\"}\n```", rest: "```json\n{\"name\": \"get\"}\n```"},
		{name: "nothing but JSON", text: ` {"tool_calls": [{"name": "get", "arguments": {"a": 1}}]} `, want: []string{`get {"a":1}`}},
		{name: "a list in tags", text: `<tool_calls>[{"name":"get","arguments":{"a":1}},{"name":"put","arguments":{}}]</tool_calls>`, want: []string{`get {"a":1}`, "put {}"}},
		{name: "the assistant's list in tags", text: `I do. <assistant_tool_calls>[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\"a\":1}"}}]</assistant_tool_calls>`, want: []string{`get {"a":1}`}, rest: "I do."},
		{name: "a list in tags that holds tags", text: `<tool_calls><tool_call>{"name":"get","arguments":{}}</tool_call></tool_calls>`, want: []string{"get {}"}, rest: "<tool_calls></tool_calls>"},
		{name: "words before a list", text: "Let me look.\n{\"tool_calls\": [{\"id\":\"1\",\"name\":\"get\",\"arguments\":{\"a\":1}}, {\"name\":\"put\"}]}", want: []string{`get {"a":1}`, "put "}, rest: "Let me look."},
		{name: "words around two lists", text: `One: {"tool_calls":[{"name":"get","arguments":{}}]} two: {"tool_calls":[{"name":"put","arguments":{}}]} end`, want: []string{"get {}", "put {}"}, rest: "One:  two:  end"},
		{name: "several blocks of code", text: "```json\n{\"name\":\"get\",\"arguments\":{}}\n```\nand\n```json\n{\"name\":\"put\",\"arguments\":{}}\n```", want: []string{"get {}", "put {}"}, rest: "and"},
		{name: "several documents", text: "{\"name\":\"get\",\"arguments\":{}}\n{\"name\":\"put\",\"arguments\":{}}", want: []string{"get {}", "put {}"}},
		{name: "tags of two families", text: `<tool_call>{"name":"get","arguments":{}}</tool_call><function=put>{}</function>`, want: []string{"get {}", "put {}"}},
		{name: "Gemma", text: `<|tool_call>call:get{city:<|"|>Oslo "the" {city}<|"|>,days:3,deep:{on:true,list:[<|"|>a<|"|>,1]}}<tool_call|>`, want: []string{`get {"city":"Oslo \"the\" {city}","days":3,"deep":{"on":true,"list":["a",1]}}`}},
		{name: "two of Gemma, and words", text: `I look. <|tool_call>call:get{}<tool_call|><|tool_call>call:put{a:"b"}<tool_call|>`, want: []string{"get {}", `put {"a":"b"}`}, rest: "I look."},
		{name: "Gemma, with plain words as values", text: `<|tool_call>call:get{city:Oslo,"n":-1.5}<tool_call|>`, want: []string{`get {"city":"Oslo","n":-1.5}`}},
		{name: "Gemma without an end", text: `<|tool_call>call:get{city:<|"|>Oslo`, want: []string{`get {"city":"Oslo`}},
		{name: "FunctionGemma", text: `<start_function_call>call:get{city:<escape>Oslo<escape>}<end_function_call>`, want: []string{`get {"city":"Oslo"}`}},
		{name: "Mistral", text: `[TOOL_CALLS] [{"name":"get","arguments":{"a":1}}]`, want: []string{`get {"a":1}`}},
		{name: "Mistral, newer", text: `One moment. [TOOL_CALLS]get[ARGS]{"a": 1}[TOOL_CALLS]put[CALL_ID]c9[ARGS]{"b": [2]}</s>`, want: []string{`get {"a": 1}`, `put {"b": [2]}`}, rest: "One moment."},
		{name: "Llama", text: `<|python_tag|>{"name":"get","parameters":{"a":1}}`, want: []string{`get {"a":1}`}},
		{name: "brackets that are transposed", text: `{"tool_calls":[{"name":"get","arguments":{"a":[{"b":1}]}]}}`, want: []string{`get {"a":[{"b":1}]}`}},
		{name: "brackets that are missing", text: `{"tool_calls":[{"name":"get","arguments":{"a":1}},{"name":"put","arguments":{"b":2}`, want: []string{`get {"a":1}`, `put {"b":2}`}},
		{name: "JSON that is cut off in arguments", text: `{"tool_calls":[{"name":"get","arguments":{"a":{"input":{"c":1}`, rest: `{"tool_calls":[{"name":"get","arguments":{"a":{"input":{"c":1}`},
		{name: "JSON that is cut off before arguments", text: `Now: {"tool_calls":[{"name":"get"`, rest: `Now: {"tool_calls":[{"name":"get"`},
		{name: "a tag that is cut off in arguments", text: `<tool_call>{"name": "get", "arguments": {"path": "/tm`, want: []string{`get {"path": "/tm`}},
		{name: "a tag that is cut off after arguments", text: `<tool_call>{"name": "get", "arguments": {"path": "/tmp"}`, want: []string{`get {"path":"/tmp"}`}},
		{name: "a tag that is cut off before arguments", text: `<tool_call>{"name": "get", "argu`, rest: `<tool_call>{"name": "get", "argu`},
		{name: "a sloppy tag that is cut off", text: `<tool_call>{'name': 'get', 'arguments': {'path': '/tm`, want: []string{`get {"path":"/tm"`}},
		{name: "a list that is cut off", text: `<tool_calls>[{"name":"put","arguments":{}},{"name":"get","arguments":{"a":["b`, want: []string{"put {}", `get {"a":["b`}},
		{name: "a parameter tag that is cut off", text: "<function=get><parameter=city>Oslo</parameter><parameter=text>one tw", want: []string{`get {"city":"Oslo","text":"one tw"`}},
		{name: "a parameter tag without its end", text: "<tool_call><function=get><parameter=city>Oslo</tool_call>", want: []string{`get {"city":"Oslo"}`}},
		{name: "a word that is no call", text: `The key "tool_calls" holds {"tool_calls": 5} calls.`, rest: `The key "tool_calls" holds {"tool_calls": 5} calls.`},
		{name: "a tool that nobody offers", text: `<tool_call>{"name": "drop", "arguments": {}}</tool_call>`, rest: `<tool_call>{"name": "drop", "arguments": {}}</tool_call>`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			calls, rest := repair.Calls(tc.text, func(c repair.Call) bool { return c.Name == "get" || c.Name == "put" })
			var got []string
			for _, c := range calls {
				if !strings.Contains(tc.text, c.Block) || c.Block == "" {
					t.Errorf("block %q does not stand in the text", c.Block)
				}
				got = append(got, c.Name+" "+c.Args)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if rest != tc.rest {
				t.Errorf("rest %q, want %q", rest, tc.rest)
			}
		})
	}
}

func FuzzObject(f *testing.F) {
	for _, text := range []string{`{"a":1}`, `{'a': "b`, "```json\n{a:1}```", `"{\"a\":1}"`, `{}{"a":[1,{"b":null}]}`, `{"a":"\u`, `{"a": /* x */ 1, …}`} {
		f.Add(text, false)
		for i := range text {
			f.Add(text[:i], false)
		}
	}
	f.Fuzz(func(t *testing.T, text string, cut bool) {
		doc, raw, how, err := repair.Object(text, cut)
		if err != nil {
			return
		}
		if doc == nil || !json.Valid(raw) {
			t.Fatalf("%q: %s, %v", text, raw, doc)
		}
		if cut && (how == repair.Repaired || how == repair.Closed) {
			t.Fatalf("%q was cut off and repaired as %s", text, raw)
		}
		again, _, how, err := repair.Object(string(raw), false)
		if err != nil || how != "" || string(jsontext.Of(again)) != string(jsontext.Of(doc)) {
			t.Fatalf("%q became %s, which is not read as it is: %q, %v", text, raw, how, err)
		}
	})
}

func FuzzCalls(f *testing.F) {
	for _, text := range []string{`<tool_call>{"name":"get","arguments":{}}</tool_call>`, "```json\n[{\"tool\":\"get\",\"args\":\"{\"}]\n```", `<function=get><parameter=a>1</parameter>`, `{"tool_calls":[{"function":{"name":"get","arguments":{}}}]}`,
		`<tool_calls>[{"name":"get","arguments":{}}]</tool_calls>`, `<assistant_tool_calls>{"name":"get"}`, `a {"tool_calls":[{"name":"get"}]} b {"tool_calls":`,
		`<|tool_call>call:get{a:<|"|>b<|"|>,c:[1,{d:e}]}<tool_call|>`, `<start_function_call>call:get{a:<escape>b`, `[TOOL_CALLS][{"name":"get"}]`, `[TOOL_CALLS]get[CALL_ID]x[ARGS]{"a":1}[TOOL_CALLS]`, `<|python_tag|>{"name":"get"}`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		calls, rest := repair.Calls(text, func(c repair.Call) bool { return c.Name == "get" })
		if len(calls) == 0 && rest != text {
			t.Fatalf("%q lost something: %q", text, rest)
		}
		if len(rest) > len(text) {
			t.Fatalf("%q grew: %q", text, rest)
		}
		for _, c := range calls {
			if c.Name != "get" || !strings.Contains(text, c.Block) {
				t.Fatalf("%q: %+v", text, c)
			}
		}
	})
}
