package schemas

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	fields := []Field{
		{Name: "per", Type: "string", Required: true, Description: "per is the span.", Enum: []string{"turn", "session"}, Default: "turn"},
		{Name: "match", Type: "Match", Description: "match says which tools are counted, which is told at some length so that the line is wrapped.",
			Fields: []Field{{Name: "tools", Type: "[]string", Description: "tools are names."}}},
	}
	tests := []struct {
		name string
		doc  Doc
		want string
	}{
		{"field with values", Doc{Kind: "ToolPolicy", Version: "v1", Name: "per", Type: "string", Required: true,
			Description: "per is the span.", Enum: []string{"turn", "session"}, Default: "turn", Example: "session"}, `KIND:       ToolPolicy
VERSION:    v1

FIELD: per <string> -required-

ENUM:
    turn
    session

DESCRIPTION:
    per is the span.

DEFAULT:
    turn

EXAMPLE:
    per: session
`},
		{"object", Doc{Kind: "ToolPolicy", Version: "v1", Name: "limits", Type: "[]Limit",
			Description: "limits bound calls.\n\nLimit bounds the calls of some tools.", Fields: fields}, `KIND:       ToolPolicy
VERSION:    v1

FIELD: limits <[]Limit>

DESCRIPTION:
    limits bound calls.

    Limit bounds the calls of some tools.

FIELDS:
  per	<string> -required-
  enum: turn, session
  default: turn
    per is the span.

  match	<Match>
    match says which tools are counted, which is told at some length so that the
    line is wrapped.
`},
		{"kind with all levels", Doc{Kind: "ToolPolicy", Version: "v1", Type: "ToolPolicy", recursive: true,
			Description: "ToolPolicy limits.", Example: "kind: ToolPolicy\nspec:\n  mode: audit", Fields: fields}, `KIND:       ToolPolicy
VERSION:    v1

DESCRIPTION:
    ToolPolicy limits.

EXAMPLE:
    kind: ToolPolicy
    spec:
      mode: audit

FIELDS:
  per	<string> -required-
  match	<Match>
    tools	<[]string>
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, tt.doc.Text()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWrapCountsCharacters(t *testing.T) {
	var b strings.Builder
	long := strings.Repeat("ö", 100)
	wrap(&b, "  ", strings.Repeat("é ", 45)+long+" end")
	want := "  " + strings.TrimSpace(strings.Repeat("é ", 39)) + "\n" +
		"  " + strings.TrimSpace(strings.Repeat("é ", 6)) + "\n  " + long + "\n  end\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
