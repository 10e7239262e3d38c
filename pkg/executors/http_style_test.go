package executors

import (
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
)

// TestHTTPQueryStyles sends the values in the table of styles of OpenAPI 3.1.1 (section 4.8.12.4), and values that the
// table does not cover.
func TestHTTPQueryStyles(t *testing.T) {
	const list, object = `["blue","black","brown"]`, `{"R":100,"G":200,"B":150}`
	for _, tt := range []struct{ name, style, value, want string }{
		{"form, explode, array", "", list, "color=blue&color=black&color=brown"},
		{"form, array", "comma", list, "color=blue,black,brown"},
		{"form, object", "comma", object, "color=R,100,G,200,B,150"},
		{"form, explode, object", "members", object, "R=100&G=200&B=150"},
		{"spaceDelimited, array", "space", list, "color=blue%20black%20brown"},
		{"spaceDelimited, object", "space", object, "color=R%20100%20G%20200%20B%20150"},
		{"pipeDelimited, array", "pipe", list, "color=blue%7Cblack%7Cbrown"},
		{"pipeDelimited, object", "pipe", object, "color=R%7C100%7CG%7C200%7CB%7C150"},
		{"deepObject", "deep_object", object, "color%5BR%5D=100&color%5BG%5D=200&color%5BB%5D=150"},
		{"a scalar has no style", "comma", `"a,b"`, "color=a%2Cb"},
		{"a separator in an item", "comma", `["a,b","c&d=e"]`, "color=a%2Cb,c%26d%3De"},
		{"many digits", "pipe", `[9007199254740993,1.50,true,null]`, "color=9007199254740993%7C1.50%7Ctrue"},
		{"nothing in a list", "comma", `[]`, ""},
		{"nothing in an object", "deep_object", `{}`, ""},
		{"null", "comma", `null`, ""},
		{"deep inside", "deep_object", `{"a":{"b":[1,2]},"c":null}`, "color%5Ba%5D%5Bb%5D=1&color%5Ba%5D%5Bb%5D=2"},
		{"too deep", "deep_object", `{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}`, "color" + strings.Repeat("%5Ba%5D", 5) + "=%7B%22a%22%3A1%7D"},
		{"members cannot be what others are", "members", `{"v":"x","fixed":"x","other":"x","url":"x","color":"red"}`, "url=1&v=x&color=red&other=mine&fixed=1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got seen
			srv := echo(t, &got, `{}`)
			spec := v1.HTTPSpec{URL: srv.URL + "/x", Method: "GET", Request: &v1.HTTPRequest{}}
			args := `{"color":` + tt.value + `}`
			if tt.style != "" {
				spec.Request.QueryStyles = map[string]string{"color": tt.style}
			}
			if strings.Contains(tt.want, "fixed") {
				spec.URL += "?url=1"
				spec.Request.StaticQuery = map[string]string{"fixed": "1"}
				args = `{"color":` + tt.value + `,"other":"mine"}`
			}
			if _, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(spec), json.RawMessage(args)); err != nil {
				t.Fatal(err)
			}
			if got.Query != tt.want {
				t.Errorf("got  %s\nwant %s", got.Query, tt.want)
			}
		})
	}
}

// TestHTTPListsArriveWhole checks that a list of any texts arrives unchanged if the server splits before it decodes.
func TestHTTPListsArriveWhole(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.String(), 1, 5).Draw(t, "items")
		raw, err := json.Marshal(items)
		if err != nil {
			t.Fatal(err)
		}
		for style, separator := range separators {
			pairs := styled("a[b]&", raw, style)
			if len(pairs) != 1 || pairs[0].name != "a%5Bb%5D%26" {
				t.Fatal(pairs)
			}
			var back []string
			for part := range strings.SplitSeq(pairs[0].value, separator) {
				s, err := url.PathUnescape(part)
				if err != nil {
					t.Fatal(err)
				}
				back = append(back, s)
			}
			if style == v1.StyleComma && !cmp.Equal(items, back) {
				t.Fatalf("%q became %q by %s", items, back, pairs[0].value)
			}
		}
	})
}

func TestHTTPOmitEmpty(t *testing.T) {
	request := func(query string) v1.HTTPSpec {
		return v1.HTTPSpec{URL: "/o/{{.id}}" + query, Method: "GET", OmitEmpty: true, Request: &v1.HTTPRequest{
			HeaderParams: map[string]string{"Idempotency-Key": "{{.key}}", "X-Auth": "Bearer {{.token}}", "X-Default": `{{default "d" .def}}`, "X-If": "{{if .on}}on{{end}}", "X-List": `{{join "," .l}}`, "X-Static": "yes"},
			QueryParams:  []string{"q", "n"}, StaticQuery: map[string]string{"flag": ""}}}
	}
	mapped := v1.HTTPSpec{URL: "/o", OmitEmpty: true, Request: &v1.HTTPRequest{BodyMapping: "{name: name, size: n, deep: {a: name}}"}}
	for _, tt := range []struct {
		name, args string
		spec       v1.HTTPSpec
		vars       map[string]string
		want       seen
		headers    map[string]string
	}{
		{"nothing is there", `{"id":1}`, request("?a={{.a}}&b=from-{{.b}}&c=1&bare"), nil, seen{"GET", "/o/1", "c=1&bare&flag=", "", nil}, map[string]string{"X-Default": "d", "X-Static": "yes"}},
		{"null and empty texts", `{"id":1,"key":null,"token":"","q":"","n":0,"a":"","b":null,"def":"","on":false}`, request("?a={{.a}}&b=from-{{.b}}"), nil, seen{"GET", "/o/1", "n=0&flag=", "", nil}, map[string]string{"X-Default": "d", "X-Static": "yes"}},
		{"all is there", `{"id":1,"key":"k","token":0,"q":"q","n":false,"a":"1&x=","b":2,"def":"x","on":true,"l":[1,"b"]}`, request("?a={{.a}}&b=from-{{.b}}"), nil,
			seen{"GET", "/o/1", "a=1%26x%3D&b=from-2&n=false&q=q&flag=", "", nil}, map[string]string{"Idempotency-Key": "k", "X-Auth": "Bearer 0", "X-Default": "x", "X-If": "on", "X-List": "1,b", "X-Static": "yes"}},
		{"variables", `{"id":1}`, request("?k=${KEY}&a=${KEY}{{.a}}&b={{.b}}${KEY}&c=${KEY}"), map[string]string{"KEY": "s&t"}, seen{"GET", "/o/1", "k=s%26t&c=s%26t&flag=", "", nil}, map[string]string{"X-Default": "d", "X-Static": "yes"}},
		{"a whole query", `{"id":1}`, request("{{if .q}}?q={{.q}}{{end}}"), nil, seen{"GET", "/o/1", "flag=", "", nil}, map[string]string{"X-Default": "d", "X-Static": "yes"}},
		{"members of a body", `{"name":"n"}`, mapped, nil, seen{"POST", "/o", "", `{"deep":{"a":"n"},"name":"n"}`, nil}, nil},
		{"null in the arguments is a value", `{"name":null,"n":1}`, mapped, nil, seen{"POST", "/o", "", `{"deep":{"a":null},"name":null,"size":1}`, nil}, nil},
		{"the body as it is", `{"a":"","b":null,"c":[]}`, v1.HTTPSpec{URL: "/o", OmitEmpty: true}, nil, seen{"POST", "/o", "", `{"a":"","b":null,"c":[]}`, nil}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got seen
			tt.spec.URL = echo(t, &got, `{}`).URL + tt.spec.URL
			if _, err := newTestHTTP(t, tt.vars).Execute(t.Context(), httpToolOf(tt.spec), json.RawMessage(tt.args)); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"Idempotency-Key", "X-Auth", "X-Default", "X-If", "X-List", "X-Static"} {
				want, is := tt.headers[name]
				if values := got.Header.Values(name); is && !cmp.Equal(values, []string{want}) || !is && values != nil {
					t.Errorf("header %s: got %q, want %q", name, values, want)
				}
			}
			got.Header = nil
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("request (-want +got):\n%s", d)
			}
		})
	}
	for _, args := range []string{`{}`, `{"id":""}`, `{"id":null,"a":"x"}`} {
		_, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(func() v1.HTTPSpec { s := request("?a={{.a}}"); s.URL = "https://api.example.com" + s.URL; return s }()), json.RawMessage(args))
		var invalid *v1.ValidationError
		if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "a path segment of the URL cannot be empty") || args != `{"id":""}` && invalid.Violations[0].Path != "/id" {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestHTTPWithoutABody checks that a tool whose arguments all have another place sends no body.
func TestHTTPWithoutABody(t *testing.T) {
	const closed = `{"type":"object","additionalProperties":false,"properties":{"id":{"type":"string"}}}`
	for _, tt := range []struct {
		name, schema, args, body string
		spec                     v1.HTTPSpec
		promptKit                bool
	}{
		{"no arguments", `{"type":"object","additionalProperties":false}`, `{}`, "", v1.HTTPSpec{URL: "/x"}, false},
		{"none were given", `{"type":"object","additionalProperties":false}`, ``, "", v1.HTTPSpec{URL: "/x"}, false},
		{"all in the URL", closed, `{"id":"1"}`, "", v1.HTTPSpec{URL: "/x/{{.id}}"}, false},
		{"one is left", closed, `{}`, "{}", v1.HTTPSpec{URL: "/x"}, false},
		{"a static body", closed, `{"id":"1"}`, `{"s":1}`, v1.HTTPSpec{URL: "/x/{{.id}}", Request: &v1.HTTPRequest{StaticBody: raws("s", "1")}}, false},
		{"a mapping", closed, `{"id":"1"}`, `{}`, v1.HTTPSpec{URL: "/x/{{.id}}", Request: &v1.HTTPRequest{BodyMapping: "@"}}, false},
		{"an open schema", `{"type":"object"}`, `{}`, "{}", v1.HTTPSpec{URL: "/x"}, false},
		{"arguments that validation let through", `{"type":"object","additionalProperties":false}`, `{"a":1}`, `{"a":1}`, v1.HTTPSpec{URL: "/x"}, false},
		{"a tool of PromptKit", closed, `{"id":"1"}`, "", v1.HTTPSpec{URL: "/x/{{.id}}"}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got seen
			tt.spec.URL = echo(t, &got, `{}`).URL + tt.spec.URL
			tool := httpToolOf(tt.spec)
			tool.Spec.InputSchema = json.RawMessage(tt.schema)
			if tt.promptKit {
				tool.APIVersion = "promptkit.altairalabs.ai/v1alpha1"
			}
			if _, err := newTestHTTP(t, nil).Execute(t.Context(), tool, json.RawMessage(tt.args)); err != nil {
				t.Fatal(err)
			}
			if typ := got.Header.Get("Content-Type"); got.Body != tt.body || (typ == "") != (tt.body == "") {
				t.Errorf("body %q of type %q, want %q", got.Body, typ, tt.body)
			}
		})
	}
}
