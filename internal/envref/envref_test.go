package envref_test

import (
	"strings"
	"testing"

	"toolctl.dev/toolctl/internal/envref"
)

func env(name string) (string, bool) {
	v, ok := map[string]string{"A": "x", "EMPTY": ""}[name]
	return v, ok
}

func TestParse(t *testing.T) {
	tests := []struct{ name, text, want, err string }{
		{"nothing", "", "", ""},
		{"no reference", "a $b {c} $", "a $b {c} $", ""},
		{"set", "<${A}>", "<x>", ""},
		{"not set", "<${B}>", "<!>", ""},
		{"set, empty", "<${EMPTY}>", "<>", ""},
		{"fallback of one that is set", "${A:-y}", "x", ""},
		{"fallback", "${B:-y z}", "y z", ""},
		{"fallback of an empty one", "${EMPTY:-y}", "y", ""},
		{"empty fallback", "<${B:-}>", "<>", ""},
		{"fallback with a colon", "${B:-http://x:1}", "http://x:1", ""},
		{"the text itself", "$${A} $$${A}", "${A} $${A}", ""},
		{"two", "${A}${A}", "xx", ""},
		{"dollar before", "$ ${A}", "$ x", ""},
		{"no end", "${A", "", `"${" has no "}"`},
		{"no name", "${}", "", `"" is not the name of a variable; write $${ for the text itself`},
		{"digit first", "${1A}", "", `"1A" is not the name`},
		{"space", "${A B}", "", `"A B" is not the name`},
		{"nested", "${B:-${A}}", "${A}", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pieces, err := envref.Parse(tt.text)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("got %v, want an error with %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, p := range pieces {
				if p.Ref == nil {
					got.WriteString(p.Text)
				} else if v, _, ok := p.Ref.Value(envref.Env{Lookup: env}); ok {
					got.WriteString(v)
				} else {
					got.WriteString("!")
				}
			}
			if got.String() != tt.want {
				t.Errorf("got %q, want %q", got.String(), tt.want)
			}
		})
	}
}

// A text is never lost: put together again, its pieces are what was read.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "a", "${A}", "$${A}", "${A:-b}$", "${", "$$${A}}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		pieces, err := envref.Parse(s)
		if err != nil {
			return
		}
		var again strings.Builder
		for i, p := range pieces {
			if p.Ref != nil {
				if !envref.IsName(p.Ref.Name) {
					t.Errorf("%q is no name", p.Ref.Name)
				}
				again.WriteString(p.Text)
				continue
			}
			if i > 0 && pieces[i-1].Ref == nil {
				t.Error("two literal pieces in a row")
			}
			again.WriteString(strings.ReplaceAll(p.Text, "${", "$${"))
		}
		if again.String() != s {
			t.Errorf("got %q back from %q", again.String(), s)
		}
	})
}
