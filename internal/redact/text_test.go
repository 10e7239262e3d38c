package redact

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

const secret = "hunter2-s3cret"

// TestTextHidesWhatARuleNames masks one value in many forms in which servers write it.
func TestTextHidesWhatARuleNames(t *testing.T) {
	doc := `{"user":"ann","password":"` + secret + `"}`
	twice := string(jsontext.Quote(string(jsontext.Quote(doc))))
	inner := string(jsontext.Quote(doc))
	tests := map[string]string{
		"JSON":                   doc,
		"JSON Lines":             "{\"n\":1}\n" + doc + "\n" + doc,
		"JSON within prose":      "Got " + doc + " from the server.",
		"list within prose":      "Got [" + doc + ", 2] from the server.",
		"string within JSON":     `{"body":` + inner + `}`,
		"twice within JSON":      `{"body":` + string(jsontext.Quote(inner)) + `}`,
		"three times":            `[` + string(jsontext.Quote(twice)) + `]`,
		"the inside of a string": inner[1 : len(inner)-1],
		"escaped within prose":   "body was " + inner + "!",
		"name of a member":       `{` + inner + `:1}`,
		"escaped name":           `{"p\u0061ssword":"` + secret + `"}`,
		"escaped within text":    `x {"p\u0061ssword":"` + secret + `"}`,
		"cut off":                `{"user":"ann","password":"` + secret,
		"cut off, escaped":       `{\"user\":\"ann\",\"password\":\"` + secret + `\",\"x`,
		"Python":                 `{'user': 'ann', 'password': '` + secret + `'}`,
		"Ruby":                   `{"password"=>"` + secret + `"}`,
		"YAML":                   "user: ann\npassword: " + secret + "\n",
		"YAML in quotes":         "password: '" + secret + "'",
		"a form":                 "user=ann&password=" + secret + "&x=1",
		"a URL":                  "https://h.example/x?password=" + secret + "&x=1",
		"a header":               "password: " + secret + "\r\nx: 1",
		"XML":                    "<user><password>" + secret + "</password></user>",
		"XML that is cut off":    "<user><password>" + secret,
		"percent-encoded":        "data=" + url.QueryEscape(doc),
		"percent-encoded twice":  "data=" + url.QueryEscape(url.QueryEscape(doc)),
		"base64":                 "data: " + base64.StdEncoding.EncodeToString([]byte(doc)),
		"base64 in JSON":         `{"data":"` + base64.StdEncoding.EncodeToString([]byte(doc)) + `"}`,
		"base64 for URLs":        "token=" + base64.RawURLEncoding.EncodeToString([]byte(doc+"??>>")) + ".x",
		"an object":              `it has {"password":{"value":"` + secret + `"}} in it`,
		"an object, not JSON":    `it has {password: {value: ` + secret + `}} in it`,
		"many brackets":          strings.Repeat("[{", 5000) + `"password":"` + secret + `"`,
		"with a mark":            "\ufeff" + doc,
		"too deep":               nest(doc, 12),
	}
	for name, in := range tests {
		t.Run(name, func(t *testing.T) {
			m := New([]string{"password"})
			out := m.Text(in)
			if shows(out) {
				t.Errorf("%s\nbecame %s", in, out)
			}
			if again := m.Text(out); again != out {
				t.Errorf("masked again it is not the same:\n%s\n%s", out, again)
			}
			if out := New(nil, secret).Text(in); strings.Contains(out, secret) {
				t.Errorf("as a value it shows in %s", out)
			}
		})
	}
}

// shows reports whether a text contains the secret in any of the encodings of the test.
func shows(s string) bool {
	for range 4 {
		if strings.Contains(s, secret) {
			return true
		}
		s = strings.ReplaceAll(s, `\`, "")
		if plain, err := url.QueryUnescape(s); err == nil {
			s = plain
		}
	}
	for _, word := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(` :."{}[]`, r) }) {
		for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.RawURLEncoding} {
			if plain, err := enc.DecodeString(strings.TrimPrefix(word, "token=")); err == nil && strings.Contains(string(plain), secret) {
				return true
			}
		}
	}
	return false
}

func nest(s string, n int) string {
	for range n {
		s = string(jsontext.Quote(s))
	}
	return s
}

func TestTextLeavesTheRest(t *testing.T) {
	for _, in := range []string{
		"", "a", "looking", "the password was wrong", "passwords: 5", "my_password=1", `{"a": 1.50, "b":[true,null]}`,
		"https://h.example/a?b=c%20d", "aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=", `{"path":"C:\\temp\\x"}`, "a{b}c[d]e",
	} {
		if out := New([]string{"password"}, "lo").Text(in); out != in {
			t.Errorf("%q became %q", in, out)
		}
	}
}

func TestShortValuesAreWholeWords(t *testing.T) {
	m := New(nil, "k", "42", "a.b")
	for in, want := range map[string]string{
		"looking k k2 _k k!":         "looking [REDACTED] k2 _k [REDACTED]!",
		"142 42 421":                 "142 [REDACTED] 421",
		"a.b xa.b a.bc (a.b)":        "[REDACTED] xa.b a.bc ([REDACTED])",
		`{"k":"k","n":42,"l":"key"}`: `{"[REDACTED]":"[REDACTED]","n":42,"l":"key"}`,
	} {
		if got := m.Values(in); in[0] != '{' && got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
		if in[0] == '{' && string(m.JSON(json.RawMessage(in))) != want {
			t.Errorf("%s became %s, want %s", in, m.JSON(json.RawMessage(in)), want)
		}
	}
}

func TestValuesInNumbers(t *testing.T) {
	m := New(nil, "4111111")
	for _, in := range []string{`{"n":4111111}`, `[4111111.0]`, `[4.111111e6]`, `{"4111111":1}`, `["x4111111"]`} {
		if out := m.JSON(json.RawMessage(in)); strings.Contains(string(out), "111111") || !json.Valid(out) {
			t.Errorf("%s became %s", in, out)
		}
	}
}

// TestResultHidesEveryPart puts a secret into every field of a result and of an error.
func TestResultHidesEveryPart(t *testing.T) {
	doc := `{"password":"` + secret + `"}`
	raw := json.RawMessage(doc)
	blob := base64.StdEncoding.EncodeToString([]byte(doc))
	res := v1.Result{Content: raw, Meta: raw, Parts: []v1.Part{
		{Type: v1.PartText, Text: "x " + doc, Annotations: raw, Meta: raw},
		{Type: v1.PartResource, Resource: &v1.ResourceContents{URI: "f:///?password=" + secret, Text: doc, Blob: blob, Meta: raw}},
		{Type: v1.PartResourceLink, URI: "https://h/?password=" + secret, Name: doc, Title: doc, Description: "password: " + secret, Icons: raw},
		{Type: v1.PartDocument, MIMEType: "application/json", Data: blob},
	}, Effects: []v1.Effect{{URL: "https://h/?password=" + secret}}}
	before, _ := json.Marshal(res)
	copied := res
	m := New([]string{"password"}, secret)
	for _, err := range []error{
		&v1.ExecutionError{Tool: "t", Message: doc, Cause: errors.New(doc)},
		&v1.MCPError{Server: "s", Code: 1, Message: "bad " + doc, Data: raw},
		&v1.PolicyError{Tool: "t", Message: secret},
		v1.NewValidationError(v1.ResultInvalid, "t", []v1.Violation{{Path: "/password/" + secret, Got: "string " + secret, Message: "got " + secret[:13] + "…"}}),
		errors.New("failed: " + doc),
	} {
		copied = res
		out := m.Result(&copied, err)
		text, _ := json.Marshal(struct {
			R v1.Result
			E *v1.ResultError
		}{copied, v1.NewResultError(out)})
		plain := strings.ReplaceAll(string(text), `\`, "")
		if strings.Contains(plain, secret[:13]) || strings.Contains(plain, blob) || strings.Contains(out.Error(), secret) {
			t.Errorf("%T: it shows in %s", err, text)
		}
		for e := out; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("%T: it shows in the cause %v", err, e)
			}
		}
	}
	if after, _ := json.Marshal(res); string(after) != string(before) {
		t.Errorf("the result of the executor was changed: %s", after)
	}
}

func FuzzText(f *testing.F) {
	f.Add(`{"password":"x"} and {"a":[1,"\u0041"]}`, "hunter2")
	f.Add(`password=\"a\`, "k")
	f.Add(`%7B%22password%22%3A1%7D aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=`, "")
	f.Fuzz(func(t *testing.T, in, value string) {
		m := New([]string{"password", "/a/b", "/*"}, value)
		began := time.Now()
		out := m.Text(in)
		if json.Valid([]byte(in)) && !json.Valid(m.JSON(json.RawMessage(in))) {
			t.Errorf("%q is no longer JSON: %q", in, m.JSON(json.RawMessage(in)))
		}
		if took := time.Since(began); took > time.Second && len(in) < 1<<16 {
			t.Errorf("%d bytes took %s: %q", len(in), took, out)
		}
	})
}
