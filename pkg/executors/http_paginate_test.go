package executors

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	v1 "toolctl.dev/toolctl/api/v1"
)

// numbersFrom returns a JSON array of at most n numbers from start. The total is the number of all numbers.
func numbersFrom(start, n, total int) string {
	list := []string{}
	for i := start; i < min(start+n, total); i++ {
		list = append(list, strconv.Itoa(i))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Errorf("the query has %q for a number", s)
	}
	return n
}

func TestHTTPPaginate(t *testing.T) {
	zero := 0
	const seven = "[0,1,2,3,4,5,6]"
	link := func(t *testing.T, w http.ResponseWriter, r *http.Request) {
		p, _ := strconv.Atoi(r.URL.Query().Get("p"))
		if p < 2 {
			w.Header().Add("Link", `</first>; rel="first", <`+fmt.Sprintf("?p=%d", p+1)+`>; title="a, \"b\""; rel="last next"`)
		}
		io.WriteString(w, numbersFrom(3*p, 3, 7))
	}
	cursor := func(t *testing.T, w http.ResponseWriter, r *http.Request) {
		at, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Query().Get("after"), "c/"))
		next := "null"
		if at+3 < 7 {
			next = fmt.Sprintf(`"c/%d"`, at+3)
		}
		fmt.Fprintf(w, `{"data":{"items":%s},"meta":{"next":%s}}`, numbersFrom(at, 3, 7), next)
	}
	page := func(t *testing.T, w http.ResponseWriter, r *http.Request) {
		p := number(t, r.URL.Query().Get("page"))
		io.WriteString(w, numbersFrom(3*(p-1), 3, 7))
	}
	offset := func(t *testing.T, w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, numbersFrom(number(t, r.URL.Query().Get("skip")), number(t, r.URL.Query().Get("limit")), 7))
	}
	always := func(body string, header ...string) func(*testing.T, http.ResponseWriter, *http.Request) {
		return func(_ *testing.T, w http.ResponseWriter, _ *http.Request) {
			if header != nil {
				w.Header().Set("Link", header[0])
			}
			io.WriteString(w, body)
		}
	}
	tests := []struct {
		name     string
		paginate v1.HTTPPaginate
		spec     v1.HTTPSpec
		args     string
		serve    func(*testing.T, http.ResponseWriter, *http.Request)
		requests int32
		want     string // the content, or the error
		cut      bool   // the result reports that there may be more
	}{
		{"links", v1.HTTPPaginate{Style: "link"}, v1.HTTPSpec{}, "", link, 3, seven, false},
		{"links in the body", v1.HTTPPaginate{Style: "link", Items: "rows", Cursor: "next"}, v1.HTTPSpec{}, "",
			func(_ *testing.T, w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/more" {
					io.WriteString(w, `{"rows":[2],"next":""}`)
					return
				}
				fmt.Fprintf(w, `{"rows":[1],"next":"http://%s/more"}`, r.Host)
			}, 2, "[1,2]", false},
		{"cursors", v1.HTTPPaginate{Style: "cursor", Items: "data.items", Cursor: "meta.next", Param: "after"}, v1.HTTPSpec{}, "", cursor, 3, seven, false},
		{"a cursor that the caller has", v1.HTTPPaginate{Style: "cursor", Items: "data.items", Cursor: "meta.next", Param: "after"}, v1.HTTPSpec{}, `{"after":"c/6"}`, cursor, 1, "[6]", false},
		{"pages", v1.HTTPPaginate{Style: "page"}, v1.HTTPSpec{}, "", page, 4, seven, false},
		{"pages of a size", v1.HTTPPaginate{Style: "page", Size: 3}, v1.HTTPSpec{}, "", page, 3, seven, false},
		{"from a page that the caller names", v1.HTTPPaginate{Style: "page", Size: 3}, v1.HTTPSpec{}, `{"page":2}`, page, 2, "[3,4,5,6]", false},
		{"offsets", v1.HTTPPaginate{Style: "offset", Param: "skip", SizeParam: "limit", Size: 3, Start: &zero}, v1.HTTPSpec{}, "", offset, 3, seven, false},
		{"at most pages", v1.HTTPPaginate{Style: "page", MaxPages: 2}, v1.HTTPSpec{}, "", page, 2, "[0,1,2,3,4,5]", true},
		{"at most items", v1.HTTPPaginate{Style: "page", MaxItems: 4}, v1.HTTPSpec{}, "", page, 2, "[0,1,2,3]", true},
		{"a mapping of the whole list", v1.HTTPPaginate{Style: "page"}, v1.HTTPSpec{Response: &v1.HTTPResponse{BodyMapping: "{n: length(@)}"}}, "", page, 4, `{"n":7}`, false},
		{"long numbers", v1.HTTPPaginate{Style: "link"}, v1.HTTPSpec{}, "", always("[12345678901234567890, 1.50]"), 1, "[12345678901234567890,1.50]", false},
		{"no items", v1.HTTPPaginate{Style: "page"}, v1.HTTPSpec{}, "", always("[]"), 1, "[]", false},
		{"no body", v1.HTTPPaginate{Style: "offset"}, v1.HTTPSpec{}, "", always(""), 1, "[]", false},
		{"masked before items are taken", v1.HTTPPaginate{Style: "link", Items: "rows"}, v1.HTTPSpec{Redact: []string{"/rows/0/pin"}}, "", always(`{"rows":[{"pin":1},{"pin":2}]}`), 1, `[{"pin":"[REDACTED]"},{"pin":2}]`, false},
		{"the last cursor repeated", v1.HTTPPaginate{Style: "cursor", Items: "a", Cursor: "c"}, v1.HTTPSpec{}, `{"cursor":"x"}`, always(`{"a":[],"c":"x"}`), 1, "[]", false},

		{"in a circle", v1.HTTPPaginate{Style: "cursor", Items: "a", Cursor: "c"}, v1.HTTPSpec{}, "", always(`{"a":[1],"c":7}`), 2, "page 2: the next page was already read", false},
		{"another host", v1.HTTPPaginate{Style: "link"}, v1.HTTPSpec{}, "", always("[1]", `<http://localhost:1/x>; rel=next`), 1, "the next page is at another origin, http://localhost:1: only", false},
		{"another scheme", v1.HTTPPaginate{Style: "link"}, v1.HTTPSpec{}, "", always("[1]", `<file:///etc/passwd>; rel=next`), 1, "the next page is at another origin, file://", false},
		{"not a list", v1.HTTPPaginate{Style: "link"}, v1.HTTPSpec{}, "", always(`{"a":1}`), 1, "the body of a page is a JSON object: name its list in spec.http.paginate.items", false},
		{"no list there", v1.HTTPPaginate{Style: "link", Items: "b"}, v1.HTTPSpec{}, "", always(`{"a":1}`), 1, "spec.http.paginate.items found nothing: if a page may lack the list, end the expression with || `[]`", false},
		{"another kind there", v1.HTTPPaginate{Style: "link", Items: "a"}, v1.HTTPSpec{}, "", always(`{"a":1}`), 1, "spec.http.paginate.items found a JSON number: expected an array", false},
		{"not JSON", v1.HTTPPaginate{Style: "link"}, v1.HTTPSpec{}, "", always(`<html>`), 1, "needs JSON pages", false},
		{"a cursor that is an object", v1.HTTPPaginate{Style: "cursor", Items: "a", Cursor: "c"}, v1.HTTPSpec{}, "", always(`{"a":[1],"c":{}}`), 1, "spec.http.paginate.cursor found a JSON object", false},
		{"a long cursor", v1.HTTPPaginate{Style: "cursor", Items: "a", Cursor: "c"}, v1.HTTPSpec{}, "", always(`{"a":[1],"c":"` + strings.Repeat("x", maxNext+1) + `"}`), 1, "the limit is 8192", false},
		{"too large together", v1.HTTPPaginate{Style: "page"}, v1.HTTPSpec{Response: &v1.HTTPResponse{MaxBytes: 10}}, "", page, 2, "page 2: the pages together are larger than 10 bytes (spec.http.response.max_bytes)", false},
		{"a page that fails", v1.HTTPPaginate{Style: "page"}, v1.HTTPSpec{Retry: &v1.HTTPRetry{MaxAttempts: 1}}, "", func(t *testing.T, w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("page") == "2" {
				w.WriteHeader(http.StatusTeapot)
			}
			page(t, w, r)
		}, 2, "page 2: HTTP 418", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv, n := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) { tt.serve(t, w, r) })
			tt.spec.URL, tt.spec.Method, tt.spec.Paginate = srv.URL+"/list?fixed=1", "GET", &tt.paginate
			res, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(tt.spec), json.RawMessage(tt.args))
			if n.Load() != tt.requests || res.Attempts != 1 || res.Pages != int(tt.requests) {
				t.Errorf("%d requests, %d attempts, %d pages, want %d requests and pages in 1 attempt", n.Load(), res.Attempts, res.Pages, tt.requests)
			}
			if !strings.HasPrefix(tt.want, "[") && !strings.HasPrefix(tt.want, "{") {
				if err == nil || !strings.Contains(err.Error(), tt.want) || res.Content != nil {
					t.Errorf("got %s, %v, want %s", res.Content, err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, string(res.Content)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			if tt.cut != (len(res.Parts) == 1) {
				t.Errorf("parts %+v", res.Parts)
			}
		})
	}
}

// TestHTTPPaginateSends checks the request of every page, including a page that is retried.
func TestHTTPPaginateSends(t *testing.T) {
	var got []string
	srv, _ := serve(t, func(n int, w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("X-Key")+" "+string(body))
		if n == 2 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		if n < 3 {
			w.Header().Set("Link", `</list?p=2>; rel=next`)
		}
		io.WriteString(w, "[1]")
	})
	spec := quick(v1.HTTPSpec{URL: srv.URL + "/list", Headers: map[string]string{"X-Key": "${KEY}"}, Paginate: &v1.HTTPPaginate{Style: "link"},
		Request: &v1.HTTPRequest{StaticQuery: map[string]string{"token": "${KEY}"}}})
	tool := httpToolOf(spec)
	tool.Spec.Hints = &v1.Hints{ReadOnly: &yes}
	res, err := newTestHTTP(t, map[string]string{"KEY": "s3cret-value"}).Execute(t.Context(), tool, json.RawMessage(`{"q":1}`))
	if err != nil || string(res.Content) != "[1,1]" || res.Attempts != 2 || res.Pages != 2 {
		t.Fatalf("got %s after %d attempts and %d pages, %v", res.Content, res.Attempts, res.Pages, err)
	}
	want := []string{`POST /list?token=s3cret-value s3cret-value {"q":1}`, `POST /list?p=2&token=s3cret-value s3cret-value {"q":1}`, `POST /list?p=2&token=s3cret-value s3cret-value {"q":1}`}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestNextLink(t *testing.T) {
	tests := []struct{ header, want string }{
		{`<https://x/2>; rel="next"`, "https://x/2"},
		{`<a>; rel=prev, <b>; rel=NEXT`, "b"},
		{`<a,;b>; foo; rel="prev next"`, "a,;b"},
		{`<a>; rel=prev; rel=next`, ""},
		{`<a>; title="<b>; rel=next"`, ""},
		{`<a>; title="x\", <b>; rel=next"; rel="next"`, "a"},
		{`<a>`, ""}, {`<a`, ""}, {``, ""}, {`rel=next`, ""}, {`<a>; rel="next`, "a"}, {`<a>;=;rel=next`, "a"},
	}
	for _, tt := range tests {
		if got := nextLink([]string{tt.header}); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.header, got, tt.want)
		}
	}
}

func FuzzNextLink(f *testing.F) {
	f.Add(`<a>; rel="prev", <b>; title="\""; rel=next`)
	f.Fuzz(func(_ *testing.T, h string) { nextLink([]string{h, h}) })
}
