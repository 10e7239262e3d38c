package jmespath

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestErrorsAreInWords(t *testing.T) {
	for expr, want := range map[string]string{
		"{":              "column 2: expected a quoted name or a name",
		"a.b]":           "column 4: unexpected token at the end of the expression: ']'",
		"{a: b":          "column 6: expected a quoted name or a name",
		"'é'.b]":         "column 6: unexpected token at the end of the expression: ']'",
		"items[?a == 'b": "column 15: unclosed delimiter: '",
		"a[1":            "column 4: expected ']', got the end",
		"":               "column 1: ",
	} {
		_, err := Compile(expr)
		if err == nil || !strings.Contains(err.Error(), "not a JMESPath expression: "+want) || tokenName.MatchString(err.Error()) {
			t.Errorf("%q: %v; want %q", expr, err, want)
		}
	}
}

// An expression that doubles its input again and again is refused before it has any.
func TestGrowth(t *testing.T) {
	for expr, refused := range map[string]bool{
		"a" + strings.Repeat(" | [@, @][]", 30):              true,
		strings.Repeat("map(&[@, @], ", 5) + "a" + "[])))))": false,
		"[" + strings.Repeat("a, ", 5000) + "a][]":           true,
		"items[*].[a, b, c][]":                               false,
		"items[?a == ',,,,' || b[0] == `[1, 2, 3]`][1:2]":    false,
		"[a, [b, c]] | [@, @]":                               false,
	} {
		if got := growth(expr) > maxGrowth; got != refused {
			t.Errorf("%.60q: growth %d", expr, growth(expr))
		}
	}
	if _, err := Compile("a" + strings.Repeat(" | [@, @][]", 30)); err == nil || !strings.Contains(err.Error(), "enlarge its input") {
		t.Errorf("got %v", err)
	}
}

func TestConditions(t *testing.T) {
	const doc = `{"args": {"amount": 100, "name": "5", "list": [1, 2, 3], "items": [{"price": 7}], "yes": true}, "call": 2}`
	var data any
	if err := json.Unmarshal([]byte(doc), &data); err != nil {
		t.Fatal(err)
	}
	for expr, want := range map[string]string{
		"args.amount > 99.5 && call > 1":      "true",
		"args.amount >= 1e2":                  "true",
		"args.amount < -5":                    "false",
		"args.amount > `99`":                  "true",
		"args.name == '5'":                    "true",
		"args.list[0] == 1":                   "true",
		"args.list[-1] == 3":                  "true",
		"(args.list[1:])[0] == 2":             "true",
		"args.items[?price > 5]":              "gave [map[price:7]]: expected true or false",
		"length(args.items[?price > 5]) == 1": "true",
		"args.yes":                            "true",
		"!(args.no)":                          "true",
		"args.no":                             "false",
		"args.no > 5":                         "false",
		"args.amount":                         "gave 100: expected true or false",
		"args.name == \"x\"":                  `"x" is the name of a field: write text in single quotes, 'x'`,
		"args.\"name\" == '5'":                "true",
		"args.amount > 5 > ":                  "not a JMESPath expression: column 19: ",
		"args.amount > 100 & 1":               "not a JMESPath expression: column 19: ",
	} {
		got := ""
		if c, err := CompileCondition(expr); err != nil {
			got = err.Error()
		} else if yes, err := c.Holds(data); err != nil {
			got = err.Error()
		} else {
			got = map[bool]string{true: "true", false: "false"}[yes]
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s, want %s", expr, got, want)
		}
	}
}

// Nothing that is read panics, and what CompileCondition makes of a JMESPath expression is
// what Compile makes of it.
func FuzzCondition(f *testing.F) {
	f.Add("args.amount > 100 && call > 1")
	f.Add("args.items[?a == `5`][0].b")
	f.Add("'1' == \"2\"")
	doc := map[string]any{"args": map[string]any{"a": 1.0, "items": []any{1.0, "x"}}, "call": 1.0}
	f.Fuzz(func(t *testing.T, text string) {
		plain, err := Compile(text)
		c, cerr := CompileCondition(text)
		if cerr != nil {
			if numbered, _ := quoteNumbers(text); err == nil && fieldCompared(numbered) == nil {
				t.Errorf("%q is JMESPath, and refused as a condition: %v", text, cerr)
			}
			return
		}
		got, gotErr := c.Holds(doc)
		if err != nil {
			return
		}
		found, err := plain.Search(doc)
		if want, ok := found.(bool); ok && err == nil && (gotErr != nil || got != want) {
			t.Errorf("%q: %v %v, as JMESPath %v", text, got, gotErr, want)
		}
	})
}
