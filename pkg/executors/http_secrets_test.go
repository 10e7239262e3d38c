package executors

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// everything returns all text of an outcome, including the chain of errors.
func everything(t *testing.T, res v1.Result, err error, more ...any) string {
	var b strings.Builder
	for e := err; e != nil; e = errors.Unwrap(e) {
		fmt.Fprintf(&b, "%v\n%+v\n%#v\n", e, e, e)
	}
	res.Error = v1.NewResultError(err)
	for _, v := range append(more, res) {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		b.Write(data)
	}
	return b.String()
}

// TestHTTPSecretsShowNowhere has servers repeat the request in every way, and checks that no output contains the
// secrets.
func TestHTTPSecretsShowNowhere(t *testing.T) {
	vars := map[string]string{"KEY": `s3cr3t/+k"ey\`, "USER": "ann-user", "PW": "p4ssw0rd", "SHORT": "abc"}
	echoes := map[string]func(w http.ResponseWriter, r *http.Request){
		"text": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			fmt.Fprintf(w, "%s %v", r.URL, r.Header)
		},
		"json": func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			data, err := json.Marshal(map[string]any{"url": r.URL.String(), "query": r.URL.Query(), "headers": r.Header, "body": string(body), r.Header.Get("X-Key"): 1})
			if err != nil {
				t.Error(err)
			}
			w.Header().Set("Content-Type", "application/json")
			w.Write(data)
		},
		"escaped": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `["`)
			for _, c := range r.Header.Get("X-Key") {
				fmt.Fprintf(w, `\u%04x`, c)
			}
			io.WriteString(w, `"]`)
		},
		"problem": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			data, err := json.Marshal(map[string]any{"title": "no", "detail": r.Header.Get("X-Key"), "more": r.Header})
			if err != nil {
				t.Error(err)
			}
			w.WriteHeader(401)
			w.Write(data)
		},
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.example/?"+r.URL.RawQuery+"&key="+r.Header.Get("X-Key"), http.StatusFound)
		},
		"location": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://[bad/"+r.Header.Get("X-Key"))
			w.WriteHeader(302)
		},
		"reset": func(w http.ResponseWriter, r *http.Request) { reset(t, w) },
	}
	for name, f := range echoes {
		for _, status := range []int{200, 400, 503} {
			t.Run(fmt.Sprint(name, status), func(t *testing.T) {
				srv, _ := serve(t, func(_ int, w http.ResponseWriter, r *http.Request) {
					f(&statusWriter{ResponseWriter: w, status: status}, r)
				})
				spec := quick(v1.HTTPSpec{URL: srv.URL + "/${SHORT}/x?key=${KEY}&s=${SHORT}", Method: "PUT",
					Headers: map[string]string{"X-Key": "${KEY}"}, HeadersFromEnv: []string{"X-User=USER"},
					Request: &v1.HTTPRequest{StaticBody: raws("k", `"${KEY}"`), QueryParams: []string{"ssn"}},
					Auth:    &v1.Auth{Basic: &v1.BasicAuth{UsernameEnv: "USER", PasswordEnv: "PW"}}, Redact: []string{"ssn"}})
				h := newTestHTTP(t, vars)
				tool := httpToolOf(spec)
				args := json.RawMessage(`{"ssn":"078-05-1120"}`)
				res, err := h.Execute(t.Context(), tool, args)
				if name == "text" && status == 200 && !strings.Contains(string(res.Content), "[REDACTED]") {
					t.Errorf("nothing is masked in %s", res.Content)
				}
				plan, planErr := h.Plan(t.Context(), tool, args)
				if planErr != nil {
					t.Fatal(planErr)
				}
				all := everything(t, res, err, plan) + plan.(*HTTPPlan).Curl()
				forms := []string{"078-05-1120", "s3cr3t", "p4ssw0rd", "ann-user", base64.StdEncoding.EncodeToString([]byte("ann-user:"))[:10]}
				for _, v := range []string{vars["KEY"], vars["PW"], base64.StdEncoding.EncodeToString([]byte("ann-user:p4ssw0rd"))} {
					forms = append(forms, v, url.QueryEscape(v), url.PathEscape(v), string(jsontext.Quote(v)[1:len(jsontext.Quote(v))-1]), fmt.Sprintf("%q", v))
				}
				if err != nil {
					forms = append(forms, srv.URL+"/abc")
				}
				if err == nil { // the manifest says where an argument is masked; other occurrences of its value stay
					forms = forms[1:]
				}
				for _, form := range forms {
					if strings.Contains(all, form) {
						t.Errorf("%q shows:\n%s", form, all)
					}
				}
				if err == nil && !json.Valid(res.Content) {
					t.Errorf("the masked content is not JSON: %s", res.Content)
				}
			})
		}
	}
}

// statusWriter sends its status if the handler sets none.
type statusWriter struct {
	http.ResponseWriter
	status int
	wrote  bool
}

func (w *statusWriter) WriteHeader(status int) {
	w.wrote = true
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if !w.wrote {
		w.WriteHeader(w.status)
	}
	return w.ResponseWriter.Write(b)
}

func (w *statusWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestSecretsInJSON(t *testing.T) {
	s := secrets{}
	s.add("secret1", "123456", `q"uote`, "short", "  secret1\n")
	tests := []struct{ name, in, want string }{
		{"nothing", `{"a": 1}`, `{"a": 1}`},
		{"a string", `{"a": "x secret1 y"}`, `{"a": "x [REDACTED] y"}`},
		{"a name", `{"secret1":1}`, `{"[REDACTED]":1}`},
		{"a number", `[12345678, 5]`, `["[REDACTED]", 5]`},
		{"a fraction", `{"n":0.123456}`, `{"n":"[REDACTED]"}`},
		{"an escaped string", `["\u0073ecret1\/x"]`, `["[REDACTED]/x"]`},
		{"a quote", `["q\"uote"]`, `["[REDACTED]"]`},
		{"what is not masked keeps its escapes", `["\u0041\/", "secret1"]`, `["\u0041\/", "[REDACTED]"]`},
		{"base64", `["c2VjcmV0MQ== secret1"]`, `["[REDACTED] [REDACTED]"]`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := s.json(json.RawMessage(tt.in)); string(got) != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestSecretsLeaveJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s secrets
		secret := rapid.StringMatching(`[0-9a-z"\\/é]{6,8}`).Draw(t, "secret")
		s.add(secret)
		doc, err := json.Marshal([]any{rapid.String().Draw(t, "before") + secret + rapid.String().Draw(t, "after"), rapid.Int().Draw(t, "n"), map[string]any{secret: nil}})
		if err != nil {
			t.Fatal(err)
		}
		out := s.json(doc)
		var back []any
		if err := json.Unmarshal(out, &back); err != nil {
			t.Fatalf("%s is not JSON: %v", out, err)
		}
		if strings.Contains(back[0].(string), secret) || strings.Contains(fmt.Sprint(back), "map["+secret) {
			t.Fatalf("%q shows in %s", secret, out)
		}
	})
}
