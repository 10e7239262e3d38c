package executors

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
)

// httpToolOf returns a tool that may access the loopback servers of the tests.
func httpToolOf(spec v1.HTTPSpec) *v1.Tool {
	spec.AllowPrivateNetwork = true
	t := &v1.Tool{Spec: v1.ToolSpec{Description: "x", Mode: v1.ModeLive, InputSchema: json.RawMessage(`{"type":"object"}`), HTTP: &spec}}
	t.Metadata.Name = "api"
	t.Source = v1.Source{File: "api.yaml"}
	return t
}

// newTestHTTP returns an executor that reads the environment from vars. The test closes it at its end.
func newTestHTTP(t testing.TB, vars map[string]string, options ...func(*Options)) *HTTP {
	o := Options{Env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }}
	for _, f := range options {
		f(&o)
	}
	h := NewHTTP(o)
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return h
}

// seen is the request that a server received.
type seen struct {
	Method, Path, Query, Body string
	Header                    http.Header
}

// echo starts a server that records its last request and responds with body.
func echo(t testing.TB, got *seen, body string) *httptest.Server {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("the server cannot read the body: %v", err)
		}
		*got = seen{r.Method, r.URL.EscapedPath(), r.URL.RawQuery, string(b), r.Header.Clone()}
		got.Header.Set("Host", r.Host)
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return srv
}

func raws(pairs ...string) map[string]json.RawMessage {
	m := map[string]json.RawMessage{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = json.RawMessage(pairs[i+1])
	}
	return m
}

func TestHTTPRequests(t *testing.T) {
	tests := []struct {
		name    string
		spec    v1.HTTPSpec // the test puts the server's address before URL
		vars    map[string]string
		args    string
		want    seen
		headers map[string]string
	}{
		{name: "POST is the default", spec: v1.HTTPSpec{URL: "/x"}, args: `{"b": 1, "a": 12345678901234567890}`,
			want: seen{"POST", "/x", "", `{"b": 1, "a": 12345678901234567890}`, nil}, headers: map[string]string{"Content-Type": "application/json", "User-Agent": "toolctl"}},
		{name: "no arguments", spec: v1.HTTPSpec{URL: "/x"}, want: seen{"POST", "/x", "", `{}`, nil}},
		{name: "PUT", spec: v1.HTTPSpec{URL: "/x", Method: "PUT"}, args: `{"a":1}`, want: seen{"PUT", "/x", "", `{"a":1}`, nil}},
		{name: "PATCH", spec: v1.HTTPSpec{URL: "/x", Method: "PATCH"}, args: `{"a":1}`, want: seen{"PATCH", "/x", "", `{"a":1}`, nil}},
		{name: "OPTIONS", spec: v1.HTTPSpec{URL: "/x", Method: "OPTIONS"}, args: `{"a":1}`, want: seen{"OPTIONS", "/x", "", `{"a":1}`, nil}},
		{name: "GET", spec: v1.HTTPSpec{URL: "/x", Method: "GET"}, args: `{"a":1}`, want: seen{"GET", "/x", "a=1", "", nil}, headers: map[string]string{"Content-Type": ""}},
		{name: "HEAD", spec: v1.HTTPSpec{URL: "/x", Method: "HEAD"}, args: `{"a":1}`, want: seen{"HEAD", "/x", "a=1", "", nil}},
		{name: "DELETE", spec: v1.HTTPSpec{URL: "/x", Method: "DELETE"}, args: `{"a":1}`, want: seen{"DELETE", "/x", "a=1", "", nil}},
		{name: "DELETE with a static body", spec: v1.HTTPSpec{URL: "/x", Method: "DELETE", Request: &v1.HTTPRequest{StaticBody: raws("s", `1`)}}, args: `{"a":1}`,
			want: seen{"DELETE", "/x", "a=1", `{"s":1}`, nil}},
		{name: "DELETE with a mapping", spec: v1.HTTPSpec{URL: "/x", Method: "DELETE", Request: &v1.HTTPRequest{BodyMapping: "{ids: a}"}}, args: `{"a":[1]}`,
			want: seen{"DELETE", "/x", "", `{"ids":[1]}`, nil}},

		{name: "query values", spec: v1.HTTPSpec{URL: "/x", Method: "GET"},
			args: `{"s":"a b&c=d/é+","n":9007199254740993,"f":1.50,"t":true,"z":null,"l":[1,"x",null,[2]],"o":{"k": 1},"e":[],"empty":""}`,
			want: seen{"GET", "/x", "empty=&f=1.50&l=1&l=x&l=%5B2%5D&n=9007199254740993&o=%7B%22k%22%3A%201%7D&s=a%20b%26c%3Dd%2F%C3%A9%2B&t=true", "", nil}},
		{name: "URL template", spec: v1.HTTPSpec{URL: "/c/{{.city}}/d?u={{.units}}&k", Method: "GET"}, args: `{"city":"São Paulo/?#%","units":"a&b","rest":1}`,
			want: seen{"GET", "/c/S%C3%A3o%20Paulo%2F%3F%23%25/d", "u=a%26b&k&rest=1", "", nil}},
		{name: "URL template around a query", spec: v1.HTTPSpec{URL: `/s{{if .q}}?q={{.q}}{{end}}`, Method: "GET"}, args: `{"q":"x y","n":1}`, want: seen{"GET", "/s", "q=x%20y&n=1", "", nil}},
		{name: "URL template around a query that is not there", spec: v1.HTTPSpec{URL: `/s{{if .q}}?q={{.q}}{{end}}`, Method: "GET"}, args: `{"n":1}`, want: seen{"GET", "/s", "n=1", "", nil}},
		{name: "a fragment is not sent", spec: v1.HTTPSpec{URL: "/x#frag", Method: "GET"}, args: `{"a":1}`, want: seen{"GET", "/x", "a=1", "", nil}},
		{name: "numbers in a URL keep their digits", spec: v1.HTTPSpec{URL: "/x/{{.n}}", Method: "GET"}, args: `{"n":12345678901234567890}`, want: seen{"GET", "/x/12345678901234567890", "", "", nil}},
		{name: "the address in a variable", spec: v1.HTTPSpec{URL: "${BASE}/x/{{.a}}"}, args: `{"a":"1"}`, vars: map[string]string{}, want: seen{"POST", "/base/x/1", "", "{}", nil}},

		{name: "the order of places", spec: v1.HTTPSpec{URL: "/u/{{.a}}", Request: &v1.HTTPRequest{
			QueryParams: []string{"b", "absent"}, HeaderParams: map[string]string{"X-C": "c={{.c}}"}, Exclude: []string{"d"}}},
			args: `{"a":"1","b":"2","c":"3","d":"4","e":"5"}`, want: seen{"POST", "/u/1", "b=2", `{"e":"5"}`, nil}, headers: map[string]string{"X-C": "c=3"}},
		{name: "everything is used up", spec: v1.HTTPSpec{URL: "/u/{{.a}}"}, args: `{"a":"1"}`, want: seen{"POST", "/u/1", "", `{}`, nil}},
		{name: "static values win", spec: v1.HTTPSpec{URL: "/x?v=url", Request: &v1.HTTPRequest{
			QueryParams: []string{"v", "q"}, StaticQuery: map[string]string{"q": "st at"}, StaticBody: raws("k", `{"deep": 1}`),
			HeaderParams: map[string]string{"X-S": "{{.h}}"}, StaticHeaders: map[string]string{"x-s": "static"}}},
			args: `{"v":"model","q":"model","k":"model","h":"model","l":"<&>"}`,
			want: seen{"POST", "/x", "v=url&q=st%20at", `{"k":{"deep": 1},"l":"<&>"}`, nil}, headers: map[string]string{"X-S": "static"}},
		{name: "static values without arguments", spec: v1.HTTPSpec{URL: "/x", Request: &v1.HTTPRequest{StaticQuery: map[string]string{"q": "1"}, StaticBody: raws("k", `true`)}},
			want: seen{"POST", "/x", "q=1", `{"k":true}`, nil}},
		{name: "body mapping", spec: v1.HTTPSpec{URL: "/x", Request: &v1.HTTPRequest{BodyMapping: "{query: q, page: {size: limit, id: id}}", StaticBody: raws("source", `"toolctl"`)}},
			args: `{"q":"a<b","limit":10,"id":12345678901234567890}`, want: seen{"POST", "/x", "", `{"page":{"id":12345678901234567890,"size":10},"query":"a<b","source":"toolctl"}`, nil}},
		{name: "body mapping to a list", spec: v1.HTTPSpec{URL: "/x", Request: &v1.HTTPRequest{BodyMapping: "ids[?@ > `1`]"}}, args: `{"ids":[1,2,3.5]}`, want: seen{"POST", "/x", "", `[2,3.5]`, nil}},

		{name: "variables", spec: v1.HTTPSpec{URL: "/${SEG}/x?key=${KEY}", Method: "GET", Headers: map[string]string{"Authorization": "Bearer ${KEY}", "X-D": "${NOT-}${NONE:-de:error}"}},
			vars: map[string]string{"KEY": "k&y", "SEG": "a/b c"}},
		{name: "variables and defaults", spec: v1.HTTPSpec{URL: "/${SEG}/x?key=${KEY}", Method: "GET",
			Headers: map[string]string{"Authorization": "Bearer ${KEY}", "X-D": "${NONE:-de:error}", "X-E": "$${KEY} $5 ${EMPTY:-full}"}, HeadersFromEnv: []string{"x-key=KEY"}},
			vars: map[string]string{"KEY": "k&y", "SEG": "a/b c", "EMPTY": ""}, args: `{"${KEY}":"${KEY}"}`,
			want:    seen{"GET", "/a/b%20c/x", "key=k%26y&%24%7BKEY%7D=%24%7BKEY%7D", "", nil},
			headers: map[string]string{"Authorization": "Bearer k&y", "X-D": "de:error", "X-E": "${KEY} $5 full", "X-Key": "k&y"}},
		{name: "variables in static values", spec: v1.HTTPSpec{URL: "/x", Request: &v1.HTTPRequest{StaticQuery: map[string]string{"k": "a ${KEY}"}, StaticHeaders: map[string]string{"X-K": "${KEY}"},
			HeaderParams: map[string]string{"X-M": "{{.a}} ${KEY}"}, StaticBody: raws("k", `["${KEY}"]`)}},
			vars: map[string]string{"KEY": `q"&\`}, args: `{"a":"${KEY}","m":"${KEY}"}`,
			want: seen{"POST", "/x", "k=a%20q%22%26%5C", `{"k":["q\"&\\"],"m":"${KEY}"}`, nil}, headers: map[string]string{"X-K": `q"&\`, "X-M": `${KEY} q"&\`}},
		{name: "noncharacters in names and values of arguments", spec: v1.HTTPSpec{URL: "/x/{{.a}}", Request: &v1.HTTPRequest{StaticBody: raws("k", `"${KEY}"`), StaticQuery: map[string]string{"q": "${KEY}"},
			QueryParams: []string{"b"}, HeaderParams: map[string]string{"X-A": "{{.a}} ${KEY}"}}}, vars: map[string]string{"KEY": "secret"},
			args:    "{\"a\":\"\uFDD01\uFDD1\",\"b\":\"\uFDD01\uFDD1\",\"\uFDD01\uFDD1\":{\"\uFDD01\uFDD1\":\"\uFDD01\uFDD1\"}}",
			want:    seen{"POST", "/x/%EF%B7%901%EF%B7%91", "b=%EF%B7%901%EF%B7%91&q=secret", "{\"k\":\"secret\",\"\uFDD01\uFDD1\":{\"\uFDD01\uFDD1\":\"\uFDD01\uFDD1\"}}", nil},
			headers: map[string]string{"X-A": "\uFDD01\uFDD1 secret"}},
		{name: "noncharacters through a mapping", spec: v1.HTTPSpec{URL: "/x", Request: &v1.HTTPRequest{BodyMapping: "{m: @}", StaticBody: raws("k", `"${KEY}"`)}}, vars: map[string]string{"KEY": "secret"},
			args: "{\"\uFDD01\uFDD1\":\"\uFDD01\uFDD1\"}", want: seen{"POST", "/x", "", "{\"k\":\"secret\",\"m\":{\"\uFDD01\uFDD1\":\"\uFDD01\uFDD1\"}}", nil}},
		{name: "the action of a slot in an argument", spec: v1.HTTPSpec{URL: "/x/{{.a}}", Method: "GET", Request: &v1.HTTPRequest{StaticQuery: map[string]string{"q": "${KEY}"}}}, vars: map[string]string{"KEY": "secret"},
			args: `{"a":"{{_slot 1}}","n":"{{_slot 1}}${KEY}"}`, want: seen{"GET", "/x/%7B%7B_slot%201%7D%7D", "n=%7B%7B_slot%201%7D%7D%24%7BKEY%7D&q=secret", "", nil}},
		{name: "variables in branches of a template", spec: v1.HTTPSpec{URL: "/x{{if .a}}/${KEY}/{{.a}}{{end}}?k=${KEY}", Method: "GET"}, vars: map[string]string{"KEY": "v/w"},
			args: `{"a":"1"}`, want: seen{"GET", "/x/v/w/1", "k=v%2Fw", "", nil}},
		{name: "the Host header", spec: v1.HTTPSpec{URL: "/x", Headers: map[string]string{"Host": "other.example"}}, want: seen{"POST", "/x", "", `{}`, nil}, headers: map[string]string{"Host": "other.example"}},
		{name: "bearer", spec: v1.HTTPSpec{URL: "/x", Auth: &v1.Auth{BearerEnv: "KEY"}}, vars: map[string]string{"KEY": "tok"}, want: seen{"POST", "/x", "", `{}`, nil}, headers: map[string]string{"Authorization": "Bearer tok"}},
		{name: "basic", spec: v1.HTTPSpec{URL: "/x", Auth: &v1.Auth{Basic: &v1.BasicAuth{UsernameEnv: "U", PasswordEnv: "P"}}}, vars: map[string]string{"U": "ann", "P": "pw"},
			want: seen{"POST", "/x", "", `{}`, nil}, headers: map[string]string{"Authorization": "Basic YW5uOnB3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got seen
			srv := echo(t, &got, `{"ok":true}`)
			if strings.HasPrefix(tt.spec.URL, "${BASE}") {
				tt.vars["BASE"] = srv.URL + "/base/"
			} else {
				tt.spec.URL = srv.URL + tt.spec.URL
			}
			h := newTestHTTP(t, tt.vars)
			res, err := h.Execute(t.Context(), httpToolOf(tt.spec), json.RawMessage(tt.args))
			if tt.want.Method == "" {
				if err == nil || got.Method != "" {
					t.Fatalf("got %v and the request %+v, want an error and no request", err, got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range tt.headers {
				if h := got.Header.Get(name); h != want {
					t.Errorf("header %s: got %q, want %q", name, h, want)
				}
			}
			got.Header = nil
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("request (-want +got):\n%s", d)
			}
			content := `{"ok":true}`
			if got.Method == "HEAD" {
				content = "null"
			}
			host := strings.TrimPrefix(srv.URL, "http://")
			effects := []v1.Effect{{Kind: v1.EffectHTTP, Method: got.Method, URL: strings.Split(tt.spec.URL, "?")[0], Host: host, HTTPStatus: 200}}
			if d := cmp.Diff(v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(content), Effects: effects, Attempts: 1}, res); d != "" {
				t.Errorf("result (-want +got):\n%s", d)
			}
		})
	}
}

// TestHTTPRefusesBeforeSending checks the errors that occur before a request is sent.
func TestHTTPRefusesBeforeSending(t *testing.T) {
	tests := []struct {
		name string
		spec v1.HTTPSpec
		vars map[string]string
		args string
		typ  string // type of the ValidationError; "" means an ExecutionError
		want string
	}{
		{"an argument in the host", v1.HTTPSpec{URL: "https://{{.h}}.example.com/"}, nil, `{"h":"x"}`, v1.ManifestInvalid, "arguments may appear only in the path and query of the URL, not in its scheme, user, host or port"},
		{"an argument in the port", v1.HTTPSpec{URL: "https://example.com:{{.p}}/"}, nil, `{}`, v1.ManifestInvalid, "not in its scheme, user, host or port"},
		{"an argument in the user", v1.HTTPSpec{URL: "https://{{.u}}@example.com/"}, nil, `{}`, v1.ManifestInvalid, "not in its scheme, user, host or port"},
		{"an argument in the scheme", v1.HTTPSpec{URL: "{{.s}}://example.com/"}, nil, `{}`, v1.ManifestInvalid, "not in its scheme, user, host or port"},
		{"an argument after a variable with the host", v1.HTTPSpec{URL: "${BASE}{{.s}}/x"}, map[string]string{"BASE": "http://x"}, `{}`, v1.ManifestInvalid, "not in its scheme, user, host or port"},
		{"a template that does not parse", v1.HTTPSpec{URL: "http://x/{{.a"}, nil, `{}`, v1.ManifestInvalid, "api.yaml: spec.http.url: line 1: "},
		{"no host", v1.HTTPSpec{URL: "http:///x"}, nil, `{}`, v1.ManifestInvalid, `"http:///x" is not an http or https URL with a host`},
		{"a scheme in a variable", v1.HTTPSpec{URL: "${BASE}/x"}, map[string]string{"BASE": "file:///etc"}, `{}`, v1.ManifestInvalid, `"file:///etc/x" is not an http or https URL with a host`},
		{"dots in the manifest", v1.HTTPSpec{URL: "http://x/a/../b"}, nil, `{}`, v1.ManifestInvalid, `the path of the URL must not contain the segments "." and ".."`},
		{"an argument that climbs", v1.HTTPSpec{URL: "http://x/a/{{.p}}/b"}, nil, `{"p":".."}`, v1.ArgsInvalid, `an argument makes the path segment "..", which leads to another path`},
		{"an argument that climbs by slashes", v1.HTTPSpec{URL: "http://x/a/{{.p}}"}, nil, `{"p":"x/../../admin"}`, v1.ArgsInvalid, `leads to another path`},
		{"an argument that climbs by backslashes", v1.HTTPSpec{URL: "http://x/a/{{.p}}"}, nil, `{"p":"..\\x"}`, v1.ArgsInvalid, `leads to another path`},
		{"an argument that climbs in pieces", v1.HTTPSpec{URL: "http://x/a/.{{.p}}/b"}, nil, `{"p":"."}`, v1.ArgsInvalid, `leads to another path`},
		{"an empty argument in the path", v1.HTTPSpec{URL: "http://x/users/{{.id}}", Method: "DELETE"}, nil, `{"id":""}`, v1.ArgsInvalid, "a path segment of the URL cannot be empty"},
		{"a missing argument in the URL", v1.HTTPSpec{URL: "http://x/{{.city}}"}, nil, `{}`, v1.ArgsInvalid, `/city: spec.http.url: line 1: .city: argument "city" is missing`},
		{"a null argument in the URL", v1.HTTPSpec{URL: "http://x/{{.city}}"}, nil, `{"city":null}`, v1.ArgsInvalid, `argument "city" is null`},
		{"a missing argument in a header", v1.HTTPSpec{URL: "http://x/", Request: &v1.HTTPRequest{HeaderParams: map[string]string{"X-A": "{{.a}}"}}}, nil, `{}`, v1.ArgsInvalid, `/a: spec.http.request.header_params.X-A: line 1: .a: argument "a" is missing`},
		{"a line break in a header", v1.HTTPSpec{URL: "http://x/", Request: &v1.HTTPRequest{HeaderParams: map[string]string{"X-A": "{{.a}}"}}}, nil, `{"a":"x\r\nEvil: 1"}`, v1.ArgsInvalid, `a header value cannot contain a line break`},
		{"a line break in a variable", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"X-A": "${A}"}}, map[string]string{"A": "secret\n"}, `{}`, v1.ManifestInvalid, `spec.http.headers.X-A: a header value cannot contain a line break`},
		{"a line break in the manifest", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"X-A": "a\nb"}}, nil, `{}`, v1.ManifestInvalid, `spec.http.headers.X-A: a header value cannot contain a line break`},
		{"a header name", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"X A": "a"}}, nil, `{}`, v1.ManifestInvalid, `"X A" is not a header name`},
		{"a header of the transport", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"content-length": "3"}}, nil, `{}`, v1.ManifestInvalid, `the header "Content-Length" is set by toolctl itself`},
		{"two authorizations", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"authorization": "x"}, Auth: &v1.Auth{BearerEnv: "T"}}, nil, `{}`, v1.ManifestInvalid, `the header "Authorization" and spec.http.auth exclude each other`},
		{"an unset variable", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"Authorization": "Bearer ${WEATHER_API_KEY}"}}, nil, `{}`, v1.ManifestInvalid,
			`tool "api": invalid manifest: api.yaml: spec.http.headers.Authorization: environment variable "WEATHER_API_KEY" is not set`},
		{"every unset variable", v1.HTTPSpec{URL: "http://x/${B}", HeadersFromEnv: []string{"X=A"}, Auth: &v1.Auth{BearerEnv: "C"}}, map[string]string{"C": ""}, `{}`, v1.ManifestInvalid,
			`spec.http.url: environment variable "B" is not set; api.yaml: spec.http.headers_from_env[0]: environment variable "A" is not set; api.yaml: spec.http.auth.bearer_env: environment variable "C" is not set`},
		{"a variable that is not listed", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"X": "${HOME} ${OK}"}, HeadersFromEnv: []string{"OK"}}, map[string]string{"HOME": "x", "OK": "x"}, `{}`, v1.ManifestInvalid,
			`environment variable "HOME" may not be read: spec.http.headers_from_env does not list it`},
		{"a variable that does not end", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"X": "${HOME"}}, nil, `{}`, v1.ManifestInvalid, `"${" has no "}"`},
		{"a variable without a name", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"X": "${1}"}}, nil, `{}`, v1.ManifestInvalid, `"1" is not the name of a variable`},
		{"the mark of a place", v1.HTTPSpec{URL: "http://x/", Headers: map[string]string{"X": "a\x011\x01"}}, nil, `{}`, v1.ManifestInvalid, "the text must not contain the control character U+0001"},
		{"the mark of a place in an argument", v1.HTTPSpec{URL: "http://x/", Request: &v1.HTTPRequest{HeaderParams: map[string]string{"X": "{{.a}}${KEY}"}}}, map[string]string{"KEY": "s3cret"}, `{"a":"\u00011\u0001"}`, v1.ArgsInvalid, "a header value cannot contain a line break or another control character"},
		{"a variable in an action", v1.HTTPSpec{URL: `http://x/{{default "${A}" .a}}`}, nil, `{}`, v1.ManifestInvalid, `${A} is inside {{ }}: put it outside`},
		{"a body of GET", v1.HTTPSpec{URL: "http://x/", Method: "GET", Request: &v1.HTTPRequest{BodyMapping: "a"}}, nil, `{}`, v1.ManifestInvalid, `a GET request has no body`},
		{"in query_params and exclude", v1.HTTPSpec{URL: "http://x/", Request: &v1.HTTPRequest{QueryParams: []string{"a"}, Exclude: []string{"a"}}}, nil, `{}`, v1.ManifestInvalid, `cannot be both in query_params and in exclude`},
		{"a mapping that does not parse", v1.HTTPSpec{URL: "http://x/", Request: &v1.HTTPRequest{BodyMapping: "{"}}, nil, `{}`, v1.ManifestInvalid, `spec.http.request.body_mapping: not a JMESPath expression`},
		{"a mapping that fails", v1.HTTPSpec{URL: "http://x/", Request: &v1.HTTPRequest{BodyMapping: "length(a)"}}, nil, `{"a":1}`, "", `spec.http.request.body_mapping: `},
		{"a mapping that finds nothing", v1.HTTPSpec{URL: "http://x/", Request: &v1.HTTPRequest{BodyMapping: "b"}}, nil, `{"a":1}`, "", `spec.http.request.body_mapping found nothing in the arguments; nothing was sent`},
		{"a mapping that makes no object for static_body", v1.HTTPSpec{URL: "http://x/", Request: &v1.HTTPRequest{BodyMapping: "a", StaticBody: raws("s", "1")}}, nil, `{"a":1}`, "", `static_body needs an object`},
		{"arguments that are no object", v1.HTTPSpec{URL: "http://x/"}, nil, `[1]`, v1.ArgsInvalid, `the arguments must be a JSON object, got array`},
		{"arguments that are no object, for a query", v1.HTTPSpec{URL: "http://x/", Method: "GET"}, nil, `[1]`, v1.ArgsInvalid, `the arguments must be a JSON object, got array`},
		{"no http block", v1.HTTPSpec{}, nil, `{}`, v1.ManifestInvalid, ""},
		{"a certificate that is not there", v1.HTTPSpec{URL: "https://x/", TLS: &v1.TLS{CAFile: "nowhere/ca.pem"}}, nil, `{}`, v1.ManifestInvalid, `spec.http.tls.ca_file: stat nowhere/ca.pem: no such file or directory`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newTestHTTP(t, tt.vars)
			h.transports[connection{private: true}] = &http.Transport{DialContext: noDial(t)}
			tool := httpToolOf(tt.spec)
			if tt.spec.URL == "" {
				tool.Spec.HTTP = nil
			}
			res, err := h.Execute(t.Context(), tool, json.RawMessage(tt.args))
			var invalid *v1.ValidationError
			var failed *v1.ExecutionError
			switch {
			case tt.typ != "" && (!errors.As(err, &invalid) || invalid.Type != tt.typ):
				t.Fatalf("got %T %v, want a ValidationError of type %s", err, err, tt.typ)
			case tt.typ == "" && (!errors.As(err, &failed) || failed.Phase != v1.PhaseValidate):
				t.Fatalf("got %T %v, want an ExecutionError of phase validate", err, err)
			case !strings.Contains(err.Error(), tt.want):
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if res.Attempts != 0 || res.Content != nil {
				t.Errorf("got the result %+v", res)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error holds a secret: %v", err)
			}
		})
	}
}

func TestHTTPCheckFindsEveryViolation(t *testing.T) {
	h := newTestHTTP(t, nil)
	tool := httpToolOf(v1.HTTPSpec{URL: "http://x/{{.a", Headers: map[string]string{"X": "${"}, Response: &v1.HTTPResponse{BodyMapping: "["}})
	var paths []string
	for _, f := range h.Check(tool) {
		paths = append(paths, f.Path)
		if f.Source.File != "api.yaml" {
			t.Errorf("the error %v has the source %v", f, f.Source)
		}
	}
	if d := cmp.Diff([]string{"/spec/http/url", "/spec/http/headers/X", "/spec/http/response/body_mapping"}, paths); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if fs := h.Check(httpToolOf(v1.HTTPSpec{URL: "https://x/${UNSET}"})); fs != nil {
		t.Errorf("a variable that is not set here is a error: %v", fs)
	}
}

func TestHTTPTraceHeaders(t *testing.T) {
	var got seen
	srv := echo(t, &got, `{}`)
	type key struct{}
	h := newTestHTTP(t, nil, func(o *Options) {
		o.Propagate = func(ctx context.Context, header http.Header) { header.Set("traceparent", ctx.Value(key{}).(string)) }
	})
	ctx := context.WithValue(t.Context(), key{}, "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	if _, err := h.Execute(ctx, httpToolOf(v1.HTTPSpec{URL: srv.URL}), nil); err != nil {
		t.Fatal(err)
	}
	if v := got.Header.Get("traceparent"); !strings.HasPrefix(v, "00-4bf9") {
		t.Errorf("traceparent: got %q", v)
	}
}

func TestHTTPAfterClose(t *testing.T) {
	h := NewHTTP(Options{})
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := h.Execute(t.Context(), httpToolOf(v1.HTTPSpec{URL: "http://x"}), nil)
	if err == nil || !strings.Contains(err.Error(), "the HTTP executor is closed") {
		t.Errorf("got %v", err)
	}
}
