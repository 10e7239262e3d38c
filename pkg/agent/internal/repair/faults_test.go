package repair_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/agent/internal/repair"
)

// writer writes a document with the usual JSON mistakes of models. No fault loses information.
type writer struct {
	*rand.Rand
	quote    string // for strings
	bare     bool   // write keys without quotes if they are names
	python   bool
	trailing bool // add commas after the last value
	comments bool
	raw      bool // write line breaks and tabs in strings unescaped
	spaced   bool
	missing  bool // leave out commas
}

func (w *writer) text(v any) string {
	switch v := v.(type) {
	case string:
		return w.string(v)
	case bool:
		if w.python {
			return map[bool]string{true: "True", false: "False"}[v]
		}
	case nil:
		if w.python {
			return "None"
		}
	case []any:
		var all []string
		for _, one := range v {
			all = append(all, w.text(one))
		}
		numbers := slices.ContainsFunc(v, func(one any) bool { _, ok := one.(string); return !ok })
		return w.list("[", all, "]", w.missing && !numbers)
	case map[string]any:
		var all []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			key := w.string(k)
			if w.bare && strings.Trim(k, "abcdefghijklmnopqrstuvwxyz_") == "" && k != "" {
				key = k
			}
			all = append(all, key+": "+w.text(v[k]))
		}
		return w.list("{", all, "}", w.missing)
	}
	return string(jsontext.Of(v))
}

func (w *writer) list(from string, all []string, to string, missing bool) string {
	var out strings.Builder
	out.WriteString(from)
	for i, one := range all {
		if w.spaced {
			out.WriteString("\n  ")
		}
		out.WriteString(one)
		if (i < len(all)-1 || w.trailing) && !missing {
			out.WriteString(",")
		}
		if missing {
			out.WriteString("\n")
		}
		if w.comments {
			out.WriteString([]string{" // it's a \"comment\", {\n", " /* one, } */", " # as in Python: [\n"}[w.IntN(3)])
		}
	}
	return out.String() + to
}

func (w *writer) string(s string) string {
	quoted := string(jsontext.Of(s))
	body := quoted[1 : len(quoted)-1]
	if w.raw {
		var out strings.Builder
		for i := 0; i < len(body); i++ {
			if body[i] != '\\' {
				out.WriteByte(body[i])
				continue
			}
			i++
			switch body[i] {
			case 'n':
				out.WriteByte('\n')
			case 't':
				out.WriteByte('\t')
			default:
				out.WriteString(body[i-1 : i+1])
			}
		}
		body = out.String()
	}
	if w.quote == "'" {
		body = strings.ReplaceAll(strings.ReplaceAll(body, `\"`, `"`), "'", `\'`)
	}
	return w.quote + body + w.quote
}

// texts are typical argument values, and values that have misled repairs.
var texts = []string{
	"", "Oslo", "def f():\n\treturn 1\n", "C:\\new\\table", `C:\Users\ann`, "it's", `say "hi"`, "'", `"`, `\`, `\n`, `\\`, "a, b", "a: b", "{", "}", "[1, 2]", `{"a": 1}`, `'a': 'b'`,
	"// no comment", "/* nor this */", "# nor this", "```go\nx := 1\n```", "True", "null", "^\\d+\\s*$", "https://example.com/x?a=1,b=2#c", "é 日本 😀", "line\r\nline", "tab\there", "a\u2028b",
	"1", "-", "}]}", `","b":"`, "x'; DROP", "…", "\u0007", "a\\", `\u0041`, "<|tool|>", "“quoted”", "`code`",
}

func document(r *rand.Rand, depth int) any {
	switch n := r.IntN(9); {
	case n == 0 && depth < 3:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, document(r, depth+1))
		}
		return list
	case n == 1 && depth < 3:
		return object(r, depth+1)
	case n == 2:
		return r.IntN(2) == 0
	case n == 3:
		return nil
	case n == 4:
		return []any{0, -1, 3.5, 1e21, 12345678, -0.25}[r.IntN(6)]
	}
	return texts[r.IntN(len(texts))]
}

func object(r *rand.Rand, depth int) map[string]any {
	o := map[string]any{}
	for range 1 + r.IntN(4) {
		o[[]string{"a", "content", "path", "file_name", "with space", "key-1", "it's", `q"`, "日本"}[r.IntN(9)]] = document(r, depth)
	}
	return o
}

// faults break a valid document without losing information.
var faults = map[string]func(w *writer, doc any) string{
	"a comma behind the last value": func(w *writer, doc any) string { w.trailing = true; return w.text(doc) },
	"missing commas":                func(w *writer, doc any) string { w.missing = true; return w.text(doc) },
	"single quotes":                 func(w *writer, doc any) string { w.quote = "'"; return w.text(doc) },
	"comments":                      func(w *writer, doc any) string { w.comments = true; return w.text(doc) },
	"keys without quotes":           func(w *writer, doc any) string { w.bare = true; return w.text(doc) },
	"words of Python":               func(w *writer, doc any) string { w.python = true; return w.text(doc) },
	"Python":                        func(w *writer, doc any) string { w.python, w.quote = true, "'"; return w.text(doc) },
	"raw line breaks":               func(w *writer, doc any) string { w.raw = true; return w.text(doc) },
	"a fence":                       func(w *writer, doc any) string { w.spaced = true; return "```json\n" + w.text(doc) + "\n```" },
	"a fence without its end":       func(w *writer, doc any) string { return "```json\n" + w.text(doc) },
	"words around": func(w *writer, doc any) string {
		return "Sure, here's what I call it with:\n\n" + w.text(doc) + "\n\nThat's all, \"done\"."
	},
	"the last closers missing": func(w *writer, doc any) string {
		text := w.text(doc)
		end := strings.TrimRight(text, "}]")
		return text[:len(end)+w.IntN(len(text)-len(end))]
	},
	"a closer too many": func(w *writer, doc any) string { return w.text(doc) + "}" },
	"several": func(w *writer, doc any) string {
		w.trailing, w.comments, w.python, w.spaced, w.bare, w.raw = true, w.IntN(2) == 0, true, true, true, w.IntN(2) == 0
		return "```\n" + w.text(doc) + "\n```\n"
	},
}

// TestLosslessFaults checks that a repair returns the original document or fails.
func TestLosslessFaults(t *testing.T) {
	const documents = 2000
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			right := 0
			for seed := range uint64(documents) {
				r := rand.New(rand.NewPCG(seed, 1))
				doc := object(r, 0)
				text := fault(&writer{Rand: r, quote: `"`}, doc)
				got, raw, how, err := repair.Object(text, false)
				switch want := string(jsontext.Of(doc)); {
				case err != nil:
				case string(jsontext.Of(got)) == want:
					right++
				default:
					t.Fatalf("%q: %s, want %s, how %q", text, raw, want, how)
				}
			}
			t.Logf("%d of %d are right, %d refused, 0 wrong", right, documents, documents-right)
			if right*10 < documents*9 {
				t.Errorf("%d of %d are right", right, documents)
			}
		})
	}
}

// FuzzFaults breaks documents from the fuzzer.
func FuzzFaults(f *testing.F) {
	f.Add(uint64(1), "x", uint(0))
	names := slices.Sorted(maps.Keys(faults))
	f.Fuzz(func(t *testing.T, seed uint64, text string, fault uint) {
		r := rand.New(rand.NewPCG(seed, 2))
		doc := object(r, 0)
		doc["fuzz"] = strings.ToValidUTF8(text, "")
		broken := faults[names[fault%uint(len(names))]](&writer{Rand: r, quote: `"`}, doc)
		if got, raw, how, err := repair.Object(broken, false); err == nil && string(jsontext.Of(got)) != string(jsontext.Of(doc)) {
			t.Fatalf("%q: %s, want %s, how %q", broken, raw, jsontext.Of(doc), how)
		}
	})
}

// TestCutAtTheEnd checks that a document that is cut off anywhere is closed there, without a change of the existing
// part.
func TestCutAtTheEnd(t *testing.T) {
	right, refused := 0, 0
	for seed := range uint64(500) {
		doc := object(rand.New(rand.NewPCG(seed, 3)), 0)
		text := string(jsontext.Of(doc))
		for n := 1; n < len(text); n++ {
			got, raw, how, err := repair.Object(text[:n], false)
			if err != nil {
				refused++
				continue
			}
			if why := beginning(doc, got); why != "" || how != repair.Closed {
				t.Fatalf("%q: %s, %q: %s", text[:n], raw, how, why)
			}
			right++
		}
	}
	t.Logf("%d closed, %d refused", right, refused)
}

// beginning returns why a value is not the beginning of another; "" if it is.
func beginning(whole, part any) string {
	switch part := part.(type) {
	case map[string]any:
		whole, ok := whole.(map[string]any)
		if !ok {
			return "another kind"
		}
		for k := range part {
			if _, ok := whole[k]; !ok {
				return fmt.Sprintf("key %q was made up", k)
			}
			if why := beginning(whole[k], part[k]); why != "" {
				return why
			}
		}
		return ""
	case []any:
		whole, ok := whole.([]any)
		if !ok || len(part) > len(whole) {
			return "another list"
		}
		for i := range part {
			if why := beginning(whole[i], part[i]); why != "" {
				return why
			}
		}
		return ""
	}
	a, b := string(jsontext.Of(whole)), string(jsontext.Of(part))
	if !strings.HasPrefix(strings.Trim(a, `"`), strings.Trim(b, `"`)) {
		return fmt.Sprintf("%s is no beginning of %s", b, a)
	}
	return ""
}
