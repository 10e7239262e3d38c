package executors

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

func TestHTTPResponses(t *testing.T) {
	multi := &v1.HTTPMultimodal{Enabled: true}
	png := "\x89PNG\r\n\x1a\n\x00\xff"
	tests := []struct {
		name  string
		spec  v1.HTTPSpec
		typ   string // Content-Type; "-" means no such header
		body  string
		want  string
		parts []v1.Part
	}{
		{"JSON as it is", v1.HTTPSpec{}, "application/json", "{\"b\": 12345678901234567890,\n \"a\":1.50}", "{\"b\": 12345678901234567890,\n \"a\":1.50}", nil},
		{"a JSON scalar", v1.HTTPSpec{}, "application/json; charset=utf-8", "12345678901234567890", "12345678901234567890", nil},
		{"a suffix of JSON", v1.HTTPSpec{}, "application/vnd.api+json", "[1]", "[1]", nil},
		{"JSON that calls itself text", v1.HTTPSpec{}, "text/plain", ` {"a":1}`, ` {"a":1}`, nil},
		{"JSON with a byte order mark", v1.HTTPSpec{}, "application/json", "\ufeff{}", "{}", nil},
		{"JSON with a broken character", v1.HTTPSpec{}, "application/json", "{\"a\":\"\xff\"}", "{\"a\":\"\uFFFD\"}", nil},
		{"text", v1.HTTPSpec{}, "text/plain", "hello <b> \"x\"\n", `{"result":"hello <b> \"x\"\n"}`, nil},
		{"a number that calls itself text", v1.HTTPSpec{}, "text/html", "42\n", "42\n", nil},
		{"a string of JSON that calls itself binary", v1.HTTPSpec{}, "application/octet-stream", `"x"`, `"x"`, nil},
		{"a mapping of a scalar", v1.HTTPSpec{Response: &v1.HTTPResponse{BodyMapping: "{ok: @}"}}, "text/plain", "true", `{"ok":true}`, nil},
		{"text without a type", v1.HTTPSpec{}, "-", "hello", `{"result":"hello"}`, nil},
		{"text that calls itself JSON", v1.HTTPSpec{}, "application/json", "OK", `{"result":"OK"}`, nil},
		{"half of JSON", v1.HTTPSpec{}, "text/plain", `{"a":`, `{"result":"{\"a\":"}`, nil},
		{"text that is not UTF-8", v1.HTTPSpec{}, "text/plain", "a\xffb\xc3", `{"result":"a` + "\uFFFD" + `b` + "\uFFFD" + `"}`, nil},
		{"text in Latin-1", v1.HTTPSpec{}, "text/plain; charset=ISO-8859-1", "caf\xe9", `{"result":"café"}`, nil},
		{"JSON in windows-1252", v1.HTTPSpec{}, `application/json; charset="windows-1252"`, "{\"a\":\"5 \x80 \xa7\x9f\"}", `{"a":"5 € §Ÿ"}`, nil},
		{"UTF-8 that calls itself Latin-1", v1.HTTPSpec{}, "application/json;charset=iso-8859-1", `{"a":"café"}`, `{"a":"café"}`, nil},
		{"JSON in UTF-16 with a mark", v1.HTTPSpec{}, "application/json; charset=utf-16", "\xff\xfe[\x001\x00]\x00", `[1]`, nil},
		{"text in UTF-16 without one", v1.HTTPSpec{}, "text/plain; charset=utf-16", "\x00h\xd8\x3d\xde\x00\xd8\x3d", `{"result":"h😀` + "\uFFFD" + `"}`, nil},
		{"text in UTF-16LE", v1.HTTPSpec{}, "text/plain; charset=utf-16le", "h\x00i\x00", `{"result":"hi"}`, nil},
		{"half of a character of UTF-16", v1.HTTPSpec{}, "text/plain; charset=utf-16", "h\x00i", `{"result":"h\u0000i"}`, nil},
		{"nothing", v1.HTTPSpec{}, "application/json", "", "null", nil},
		{"binary", v1.HTTPSpec{}, "image/png", png, `{"mime_type":"image/png","size":10}`, []v1.Part{{Type: v1.PartImage, MIMEType: "image/png", Data: base64.StdEncoding.EncodeToString([]byte(png))}}},
		{"binary without a type", v1.HTTPSpec{}, "-", png, `{"mime_type":"image/png","size":10}`, []v1.Part{{Type: v1.PartImage, MIMEType: "image/png", Data: base64.StdEncoding.EncodeToString([]byte(png))}}},
		{"an image", v1.HTTPSpec{Multimodal: multi}, "image/png", png, `{"mime_type":"image/png","size":10}`, []v1.Part{{Type: v1.PartImage, MIMEType: "image/png", Data: base64.StdEncoding.EncodeToString([]byte(png))}}},
		{"sound", v1.HTTPSpec{Multimodal: multi}, "audio/ogg", "x", `{"mime_type":"audio/ogg","size":1}`, []v1.Part{{Type: v1.PartAudio, MIMEType: "audio/ogg", Data: "eA=="}}},
		{"film", v1.HTTPSpec{Multimodal: multi}, "VIDEO/mp4; codecs=x", "x", `{"mime_type":"video/mp4","size":1}`, []v1.Part{{Type: v1.PartVideo, MIMEType: "video/mp4", Data: "eA=="}}},
		{"a document", v1.HTTPSpec{Multimodal: multi}, "application/pdf", "x", `{"mime_type":"application/pdf","size":1}`, []v1.Part{{Type: v1.PartDocument, MIMEType: "application/pdf", Data: "eA=="}}},
		{"JSON where parts are accepted", v1.HTTPSpec{Multimodal: multi}, "application/json", "[]", "[]", nil},
		{"a type that is not listed", v1.HTTPSpec{Multimodal: &v1.HTTPMultimodal{Enabled: true, AcceptTypes: []string{"image/png"}}}, "image/gif", "GIF\xff", `{"mime_type":"image/gif","size":4}`, []v1.Part{{Type: v1.PartImage, MIMEType: "image/gif", Data: "R0lG/w=="}}},
		{"binary of no known type", v1.HTTPSpec{Response: &v1.HTTPResponse{BodyMapping: "x"}}, "application/x-own", "\x00\xff", `{"mime_type":"application/x-own","size":2}`, []v1.Part{{Type: v1.PartDocument, MIMEType: "application/x-own", Data: "AP8="}}},
		{"parts that are off", v1.HTTPSpec{Multimodal: &v1.HTTPMultimodal{AcceptTypes: []string{"image/*"}}}, "image/svg+xml", "<svg/>", `{"result":"<svg/>"}`, nil},
		{"a mapping", v1.HTTPSpec{Response: &v1.HTTPResponse{BodyMapping: "data.items[0]"}}, "application/json", `{"data":{"items":[{"id":9007199254740993,"t":"<x>"}]}}`, `{"id":9007199254740993,"t":"<x>"}`, nil},
		{"a mapping that finds nothing", v1.HTTPSpec{Response: &v1.HTTPResponse{BodyMapping: "x"}}, "application/json", `{}`, `null`, nil},
		{"a mapping of text", v1.HTTPSpec{Response: &v1.HTTPResponse{BodyMapping: "result"}}, "text/plain", `hello`, `"hello"`, nil},
		{"a mapping that finds nothing in text", v1.HTTPSpec{Response: &v1.HTTPResponse{BodyMapping: "items[].id"}}, "text/plain", `try later`, `{"result":"try later"}`, nil},
		{"redact is the registry's, after validation", v1.HTTPSpec{Redact: []string{"pin"}}, "application/json", `{"a":[{"pin":1}]}`, `{"a":[{"pin":1}]}`, nil},
		{"redact before a mapping", v1.HTTPSpec{Redact: []string{"pin", "other"}, Response: &v1.HTTPResponse{BodyMapping: "{x: a.pin, other: a.n}"}}, "application/json", `{"a":{"pin":1,"n":2}}`, `{"other":2,"x":"[REDACTED]"}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv, _ := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				if w.Header()["Content-Type"] = nil; tt.typ != "-" {
					w.Header().Set("Content-Type", tt.typ)
				}
				io.WriteString(w, tt.body)
			})
			tt.spec.URL = srv.URL
			res, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(tt.spec), nil)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(tt.want), Parts: tt.parts, Effects: res.Effects, Attempts: 1}, res); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestHTTPPacked checks that a response with an unsupported compression is an error.
func TestHTTPPacked(t *testing.T) {
	for coding, refused := range map[string]bool{"br": true, "Deflate": true, "gzip, zstd": true, "identity": false, "utf-8": false, "": false} {
		srv, _ := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", coding)
			io.WriteString(w, "{}")
		})
		res, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(v1.HTTPSpec{URL: srv.URL, Method: "GET"}), nil)
		var failed *v1.ExecutionError
		switch {
		case !refused && (err != nil || string(res.Content) != "{}"):
			t.Errorf("%q: %s, %v", coding, res.Content, err)
		case refused && (!errors.As(err, &failed) || failed.Phase != v1.PhaseValidate || res.Attempts != 1 || !strings.Contains(err.Error(), "expected gzip or no compression")):
			t.Errorf("%q: %+v, %v", coding, res, err)
		}
	}
}

func TestHTTPFailures(t *testing.T) {
	problem := "application/problem+json"
	tests := []struct {
		name   string
		code   int
		typ    string
		body   string
		redact []string
		want   string // the text between `tool "api": ` and the place
	}{
		{"no body", 404, "", "", nil, "HTTP 404 Not Found"},
		{"text", 400, "text/plain", " bad \x1b[31mcity\x00 ", nil, "HTTP 400 Bad Request: bad [31mcity"},
		{"JSON", 400, "application/json", `{"error": "bad city"}`, nil, `HTTP 400 Bad Request: {"error": "bad city"}`},
		{"redacted JSON", 400, "application/json", `{"e":[{"pin":[1]}]}`, []string{"pin"}, `HTTP 400 Bad Request: {"e":[{"pin":"[REDACTED]"}]}`},
		{"what cannot be redacted", 400, "text/plain", `data: {"pin": 1}`, []string{"/e/pin"}, `HTTP 400 Bad Request: [REDACTED]`},
		{"text that names nothing redacted", 400, "text/plain", `sorry`, []string{"pin"}, `HTTP 400 Bad Request: sorry`},
		{"problem details", 422, problem, `{"type":"https://x.example/out-of-range","title":"Out of range","status":422,"detail":"lat is 91","lat":91}`, nil,
			`HTTP 422 Unprocessable Entity: Out of range: lat is 91 (https://x.example/out-of-range) {"lat":91}`},
		{"problem details without words", 422, problem, `{"type":"about:blank","status":422}`, nil, `HTTP 422 Unprocessable Entity: {"type":"about:blank","status":422}`},
		{"redacted problem details", 422, problem, `{"title":"No","pin":1}`, []string{"pin"}, `HTTP 422 Unprocessable Entity: No {"pin":"[REDACTED]"}`},
		{"problem details that are not JSON", 500, problem, `oops`, nil, `HTTP 500 Internal Server Error: oops`},
		{"a redirect that leads nowhere", 304, "", "", nil, `HTTP 304 Not Modified`},
		{"a long body", 500, "text/plain", strings.Repeat("é", 3000), nil, "HTTP 500 Internal Server Error: " + strings.Repeat("é", 1024) + "…"},
		{"a body over the limit", 500, "text/plain", strings.Repeat("x", 1<<20), nil, "HTTP 500 Internal Server Error: " + strings.Repeat("x", 2048) + "…"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv, _ := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", tt.typ)
				w.WriteHeader(tt.code)
				io.WriteString(w, tt.body)
			})
			spec := v1.HTTPSpec{URL: srv.URL + "/p?q=1", Redact: tt.redact, Response: &v1.HTTPResponse{MaxBytes: 100_000}}
			res, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(spec), nil)
			var failed *v1.ExecutionError
			if !errors.As(err, &failed) || failed.Phase != v1.PhaseExecute {
				t.Fatalf("got %v, want an ExecutionError of phase execute", err)
			}
			if want := `tool "api": ` + tt.want + " (POST " + srv.URL + "/p?q=1)"; strings.TrimSuffix(err.Error(), "; spec.http.method is not set, which means POST") != want || strings.HasSuffix(err.Error(), "means POST") != (tt.code == 404) {
				t.Errorf("got  %s\nwant %s", err, want)
			}
			if len(res.Effects) != 1 || res.Effects[0].HTTPStatus/100 < 3 {
				t.Errorf("effects %+v", res.Effects)
			}
			res.Effects = nil
			if d := cmp.Diff(v1.Result{Status: v1.StatusFailed, Attempts: 1}, res); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestHTTPBodyLimits(t *testing.T) {
	big := `"` + strings.Repeat("x", 20<<20) + `"`
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	for range 128 {
		if _, err := z.Write(make([]byte, 1<<20)); err != nil { // 128 MiB of zeros
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		limit int64
		serve func(w http.ResponseWriter)
		want  int // length of the content; 0 means that it is too large
	}{
		{"20 MB, declared", 0, func(w http.ResponseWriter) { w.Header().Set("Content-Length", "20971522"); io.WriteString(w, big) }, 0},
		{"20 MB, chunked", 0, func(w http.ResponseWriter) { io.WriteString(w, big) }, 0},
		{"20 MB within max_bytes", 21 << 20, func(w http.ResponseWriter) { io.WriteString(w, big) }, len(big)},
		{"exactly max_bytes", 3, func(w http.ResponseWriter) { io.WriteString(w, "123") }, 3},
		{"one byte more", 3, func(w http.ResponseWriter) { io.WriteString(w, "1234") }, 0},
		{"a gzip bomb", 0, func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip"); w.Write(bomb.Bytes()) }, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			srv, n := serve(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				tt.serve(w)
			})
			spec := v1.HTTPSpec{URL: srv.URL, Method: "GET", Response: &v1.HTTPResponse{MaxBytes: tt.limit}}
			res, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(spec), nil)
			if tt.want > 0 {
				if err != nil || len(res.Content) != tt.want {
					t.Errorf("got %d bytes, %v, want %d", len(res.Content), err, tt.want)
				}
				return
			}
			var failed *v1.ExecutionError
			if !errors.As(err, &failed) || failed.Phase != v1.PhaseValidate || !strings.Contains(err.Error(), "(spec.http.response.max_bytes)") {
				t.Errorf("got %v, want an error about max_bytes", err)
			}
			if res.Content != nil || n.Load() != 1 {
				t.Errorf("got %d bytes of content and %d requests", len(res.Content), n.Load())
			}
		})
	}
}

func TestHTTPSends20MB(t *testing.T) {
	var got seen
	srv := echo(t, &got, `{}`)
	args := `{"a":"` + strings.Repeat("x", 20<<20) + `"}`
	if _, err := newTestHTTP(t, nil).Execute(t.Context(), httpToolOf(v1.HTTPSpec{URL: srv.URL}), json.RawMessage(args)); err != nil {
		t.Fatal(err)
	}
	if got.Body != args {
		t.Errorf("%d bytes arrived, want %d", len(got.Body), len(args))
	}
}

func TestMapping(t *testing.T) {
	tests := []struct{ name, expr, doc, want, wantErr string }{
		{"long numbers are moved", "{a: x, b: [y, z]}", `{"x":9007199254740993,"y":0.1234567890123456789,"z":1e400}`, `{"a":9007199254740993,"b":[0.1234567890123456789,1e400]}`, ""},
		{"and printed", "to_string(x)", `{"x":12345678901234567890}`, `"12345678901234567890"`, ""},
		{"and compared", "[?id >= `9007199254740992`].id", `[{"id":9007199254740993},{"id":1},{"id":1.0}]`, `[9007199254740993]`, ""},
		{"and sorted", "sort_by(@, &id)[].id", `[{"id":9007199254740995},{"id":5}]`, `[5,9007199254740995]`, ""},
		{"two that are one float64", "[?id > `1`]", `[{"id":9007199254740993},{"id":9007199254740992}]`, "", "computes with numbers that it cannot tell apart"},
		{"the same, the other way about", "[?id > `1`]", `[{"id":9007199254740992},{"id":9007199254740993}]`, "", "numbers that it cannot tell apart"},
		{"compared and printed", "[?id > `1`].to_string(id)", `[{"id":9007199254740993}]`, "", "numbers that it cannot tell apart"},
		{"plain numbers", "[0] > [1]", `[1.50, 1e0]`, `true`, ""},
		{"zero", "[?@ == `0`]", `[0, 0.0, -0, 0e9]`, `[0,0,-0,0]`, ""},
		{"functions", "sum(a)", `{"a":[1,2.5]}`, `3.5`, ""},
		{"no escapes of HTML", "a", `{"a":"<&>"}`, `"<&>"`, ""},
		{"a wrong type", "abs(a)", `{"a":"x"}`, "", "m: Invalid type for: x"},
		{"an unknown function", "nope(a)", `{"a":"x"}`, "", "m: unknown function: nope"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := compileMapping("m", tt.expr)
			if err != nil {
				t.Fatal(err)
			}
			got, err := m.apply(json.RawMessage(tt.doc))
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got %s, %v, want %s", got, err, tt.wantErr)
				}
			} else if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v, want %s", got, err, tt.want)
			}
		})
	}
	if _, err := compileMapping("m", strings.Repeat("(", (16<<10)+1)); err == nil || !strings.Contains(err.Error(), "at most 16384 are read") {
		t.Errorf("a long expression: %v", err)
	}
	if _, err := compileMapping("m", strings.Repeat("[", (16<<10))); err == nil {
		t.Error("a deep expression is read")
	}
}

// TestMappingKeepsNumbers passes numbers of any length through an expression, and through one that compares.
func TestMappingKeepsNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,24})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,2})?`).Draw(t, "number")
		for _, expr := range []string{"{a: [x]}", "[{a: [x]}][?a[0] == a[0]] | [0]"} {
			m, err := compileMapping("m", expr)
			if err != nil {
				t.Fatal(err)
			}
			out, err := m.apply(json.RawMessage(`{"x":` + number + `}`))
			if err != nil {
				t.Fatal(err)
			}
			got := strings.TrimSuffix(strings.TrimPrefix(string(out), `{"a":[`), `]}`)
			want, _ := jsontext.Number(number)
			if n, ok := jsontext.Number(got); !ok || n.Cmp(want) != 0 {
				t.Fatalf("%s: %s became %s", expr, number, got)
			}
		}
	})
}

func FuzzMapping(f *testing.F) {
	f.Add("{a: x, b: y[?z > `1`]}", `{"x":1,"y":[{"z":2}]}`)
	f.Add("sort_by(@, &a)[::-1] | [0].to_string(@)", `[{"a":9007199254740993}]`)
	f.Fuzz(func(t *testing.T, expr, doc string) {
		m, err := compileMapping("m", expr)
		if err != nil {
			return
		}
		if out, err := m.apply(json.RawMessage(doc)); err == nil && !json.Valid(out) {
			t.Errorf("%q over %q gives %q", expr, doc, out)
		}
	})
}
