package template

import (
	"bytes"
	"errors"
	"net/url"
	"testing"
)

var errDots = errors.New("a path segment must not be \"..\"")

// urlEscape escapes as a URL template does: as a path segment before "?", as a query value after it.
func urlEscape(out []byte, value string) (string, error) {
	switch {
	case bytes.IndexByte(out, '?') >= 0:
		return url.QueryEscape(value), nil
	case value == "..":
		return "", errDots
	}
	return url.PathEscape(value), nil
}

func TestText(t *testing.T) {
	tests := []struct {
		name, src, args string
		escape          func([]byte, string) (string, error)
		want, wantErr   string
	}{
		{name: "plain", src: `Hello {{.name}}, {{.n}} {{.l}} {{.b}}`, args: `{"name": "\"A\" <b>", "n": 1.50, "l": ["x"], "b": false}`, want: `Hello "A" <b>, 1.5 ["x"] false`},
		{name: "path and query", src: `https://h/x/{{.id}}?q={{.q}}`, args: `{"id": "a/b?c", "q": "d&e=f/g"}`, escape: urlEscape, want: `https://h/x/a%2Fb%3Fc?q=d%26e%3Df%2Fg`},
		{name: "escape refuses", src: "https://h/\n{{.id}}", args: `{"id": ".."}`, escape: urlEscape, wantErr: `url: line 2: .id: a path segment must not be ".."`},
		{name: "absent", src: `{{.id}}`, wantErr: `url: line 1: .id: argument "id" is missing: pass it, or use default or if in the template`},
		{name: "null", src: `{{.id}}`, args: `{"id": null}`, wantErr: `url: line 1: .id: argument "id" is null: guard it with default or if`},
		{name: "no JSON is asked for", src: `"{{.x}}`, args: `{"x": "y"}`, want: `"y`},
		{name: "empty", src: ``, want: ``},
		{name: "html", src: `{{html .x}} {{js .x}} {{urlquery .x .x}}`, args: `{"x": "<'&"}`, want: `&lt;&#39;&amp; \u003C\'\u0026 %3C%27%26%3C%27%26`},
		{name: "print and println", src: `{{print 1 2 "a" "b" 3}}|{{println .x 2.5}}`, args: `{"x": "y"}`, want: "1 2ab3|y 2.5\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tmpl, err := ParseText("url", tt.src, Options{Escape: tt.escape})
			if err != nil {
				t.Fatal(err)
			}
			got, err := tmpl.Render(t.Context(), decode(t, tt.args))
			if tt.wantErr != "" {
				if err == nil || err.Error() != tt.wantErr {
					t.Fatalf("got error %v, want %s", err, tt.wantErr)
				}
				if tt.escape != nil && !errors.Is(err, errDots) {
					t.Errorf("the error of Escape is not wrapped: %v", err)
				}
				return
			}
			if err != nil || got != tt.want {
				t.Errorf("got  %q, %v\nwant %q", got, err, tt.want)
			}
		})
	}
}
