package executors

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
)

// built returns the request that a tool would send, without sending it.
func built(t interface{ Fatal(...any) }, tool *v1.Tool, vars map[string]string, args json.RawMessage) (*httpCall, error) {
	h := NewHTTP(Options{Env: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }})
	p := h.prepared(tool)
	if len(p.violations) > 0 {
		t.Fatal(p.violations)
	}
	ctx := context.Background()
	d, err := p.draft(ctx, "api", args)
	if err != nil {
		return nil, err
	}
	c := &httpCall{h: h, tool: tool, p: p, args: args, draft: d}
	return c, c.prepare(ctx)
}

// TestHTTPArgumentsStayInTheirPlace puts arbitrary texts into a URL, its query and a header: each arrives unchanged in
// its place, or is refused, and nothing else changes.
func TestHTTPArgumentsStayInTheirPlace(t *testing.T) {
	tool := httpToolOf(v1.HTTPSpec{URL: "https://api.example.com/v1/{{.seg}}/end?q={{.q}}", Method: "GET",
		Request: &v1.HTTPRequest{HeaderParams: map[string]string{"X-H": "<{{.h}}>"}}})
	text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[./\\%?#&=@: \r\na{}$]{0,8}`), rapid.SampledFrom([]string{"..", "%2e%2e", "../..", "${KEY}", "{{.q}}", "\uFDD00\uFDD1"}))
	rapid.Check(t, func(t *rapid.T) {
		seg, q, header, left := text.Draw(t, "seg"), text.Draw(t, "q"), text.Draw(t, "header"), text.Draw(t, "left")
		args, err := json.Marshal(map[string]string{"seg": seg, "q": q, "h": header, "left&": left})
		if err != nil {
			t.Fatal(err)
		}
		c, err := built(t, tool, map[string]string{"KEY": "topsecret"}, args)
		if err != nil {
			var invalid *v1.ValidationError
			if !errors.As(err, &invalid) || invalid.Type != v1.ArgsInvalid {
				t.Fatalf("got %v, want an error about the arguments", err)
			}
			return
		}
		u, err := url.Parse(c.req.URL.String())
		if err != nil {
			t.Fatal(err)
		}
		if u.Scheme != "https" || u.Host != "api.example.com" || u.User != nil || u.Fragment != "" {
			t.Fatalf("%q led to %s", args, u)
		}
		parts := strings.Split(u.EscapedPath(), "/")
		if got, err := url.PathUnescape(parts[2]); len(parts) != 4 || parts[1] != "v1" || parts[3] != "end" || got != seg || err != nil {
			t.Fatalf("%q made the path %s", seg, u.EscapedPath())
		}
		for _, part := range strings.FieldsFunc(seg, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part == ".." {
				t.Fatalf("%q was let through", seg)
			}
		}
		query, err := url.ParseQuery(u.RawQuery)
		if err != nil || len(query) != 2 || query.Get("q") != q || query.Get("left&") != left {
			t.Fatalf("%q made the query %q, %v", args, u.RawQuery, err)
		}
		if got := c.req.Header.Get("X-H"); got != "<"+header+">" {
			t.Fatalf("%q made the header %q", header, got)
		}
	})
}

// FuzzHTTPManifest prepares arbitrary manifests and drafts a request with arbitrary arguments.
func FuzzHTTPManifest(f *testing.F) {
	f.Add("https://x/{{.a}}?b=${B:-c}", "Bearer ${A}", "{a: b}", `{"a":"x"}`)
	f.Add("${A}/{{if .a}}{{.a}}{{end}}#x", "$${", "a[0]", `{"a":[1,null,{}]}`)
	f.Add("http://${A}@x:{{.a}}/", "\uFDD0", "", `[]`)
	f.Fuzz(func(t *testing.T, address, header, mapping, args string) {
		styles := []string{"", v1.StyleComma, v1.StyleSpace, v1.StylePipe, v1.StyleDeepObject, v1.StyleMembers}
		tool := httpToolOf(v1.HTTPSpec{URL: address, OmitEmpty: len(header)%2 == 1, Headers: map[string]string{"X": header}, Request: &v1.HTTPRequest{BodyMapping: mapping, HeaderParams: map[string]string{"Y": header},
			QueryParams: []string{"a"}, QueryStyles: map[string]string{"a": styles[len(args)%len(styles)]}}})
		h := NewHTTP(Options{Env: func(string) (string, bool) { return "topsecret", true }})
		if h.Check(tool) != nil {
			return
		}
		plan, err := h.Plan(t.Context(), tool, json.RawMessage(args))
		if err != nil {
			return
		}
		if _, err := json.Marshal(plan); err != nil {
			t.Errorf("the plan does not marshal: %v", err)
		}
		if u := plan.(*HTTPPlan).URL; strings.Contains(u, emptied) && !strings.Contains(address, emptied) {
			t.Errorf("%q has the mark of an empty value", u)
		}
		plan.(*HTTPPlan).Curl()
	})
}

func TestHTTPForgetsToolsThatAreGone(t *testing.T) {
	h := newTestHTTP(t, nil)
	kept := func() (n int) {
		h.tools.made.Range(func(any, any) bool { n++; return true })
		return n
	}
	for range 100 {
		h.Check(httpToolOf(v1.HTTPSpec{URL: "https://x/{{.a}}"}))
	}
	last := httpToolOf(v1.HTTPSpec{URL: "https://x/"})
	h.Check(last)
	for range 100 {
		if kept() == 1 {
			break
		}
		runtime.GC()
		runtime.Gosched()
	}
	if n := kept(); n != 1 {
		t.Errorf("%d tools are kept, want the one that lives", n)
	}
	last.Spec.HTTP = &v1.HTTPSpec{URL: "https://{{.a}}/"}
	if h.Check(last) == nil {
		t.Error("what was made of an old spec.http is used for a new one")
	}
}

// TestHTTPWeatherExample checks the example of the project: POST with a bearer token from the environment.
func TestHTTPWeatherExample(t *testing.T) {
	var got seen
	srv := echo(t, &got, weather)
	spec := v1.HTTPSpec{URL: srv.URL + "/weather", Method: http.MethodPost, Headers: map[string]string{"Authorization": "Bearer ${WEATHER_API_KEY}"}, TimeoutMS: 2000}
	res, err := newTestHTTP(t, map[string]string{"WEATHER_API_KEY": "wk-12345"}).Execute(t.Context(), httpToolOf(spec), json.RawMessage(`{"location":"Oslo"}`))
	if err != nil || string(res.Content) != weather || got.Header.Get("Authorization") != "Bearer wk-12345" || got.Body != `{"location":"Oslo"}` {
		t.Errorf("got %s, %v and the request %+v", res.Content, err, got)
	}
	got = seen{}
	_, err = newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(spec), json.RawMessage(`{"location":"Oslo"}`))
	want := `tool "api": invalid manifest: api.yaml: spec.http.headers.Authorization: environment variable "WEATHER_API_KEY" is not set`
	if err == nil || err.Error() != want || got.Method != "" {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
