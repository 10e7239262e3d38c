package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestServeFormsHideNothing checks that a form shows every key of a call. Other calls can only be approved with
// 'toolctl approvals'.
func TestServeFormsHideNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "run.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay}
spec: {description: Pay, redact: [card], input_schema: {type: object}, mock_result: paid}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [pay]}
`)
	s := serveHTTP(t, "-f", dir, "--store", filepath.Join(dir, "state.db"))
	long := func(n int) string { return strings.Repeat("x", n) }
	sum := func(s string) string { return fmt.Sprintf("%d bytes, sha256 %x)", len(s), sha256.Sum256([]byte(s))) }
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%d,`, i, i)
		}
		return "{" + b.String() + `"command":"rm -rf /"}`
	}
	for _, tt := range []struct {
		name, args  string
		shown, not  []string
		pending     bool   // left for 'toolctl approvals'
		refusedWith string // refused at once
	}{
		{name: "a long value before the dangerous key", args: `{"a":"` + long(50_000) + `","command":"rm -rf /"}`, shown: []string{sum(long(50_000)), `"command": "rm -rf /"`}, not: []string{long(300)}},
		{name: "a value of 1 MB", args: `{"a":"` + long(1<<20) + `","command":"rm -rf /"}`, shown: []string{sum(long(1 << 20)), `"command": "rm -rf /"`}},
		{name: "each long value on its own", args: `{"a":"` + long(1000) + `","b":"` + long(2000) + `","n":` + strings.Repeat("9", 300) + `}`,
			shown: []string{sum(long(1000)), sum(long(2000)), sum(strings.Repeat("9", 300))}},
		{name: "a key of 1 MB", args: `{"` + long(1<<20) + `":1,"command":"rm -rf /"}`, refusedWith: `its arguments have 10486`},
		{name: "a key of 10 KB", args: `{"` + long(10_000) + `":1,"command":"rm -rf /"}`, pending: true},
		{name: "100 keys, the dangerous one last", args: many(99), shown: []string{`"command": "rm -rf /"`, `"k0": 0,`, `"k98": 98,`}},
		{name: "3,000 keys", args: many(3000), pending: true},
		{name: "10,000 keys", args: many(10_000), refusedWith: `its arguments have `},
		{name: "a long list", args: `{"to":[` + strings.Repeat(`"a",`, 5000) + `"b"],"command":"rm -rf /"}`, pending: true},
		{name: "nested", args: `{"a":{"b":{"c":[{"command":"rm -rf /"}]}}}`, shown: []string{`"command": "rm -rf /"`}},
		{name: "nested deeply", args: `{"a":` + strings.Repeat(`{"a":`, 100) + `"rm -rf /"` + strings.Repeat("}", 101), pending: true},
		{name: "many long texts", args: `{"a":["` + strings.Repeat(strings.Repeat(`\u202e`, 100)+`","`, 100) + `"]}`, pending: true},
		{name: "keys that look alike", args: `{"amount":1,"аmount":2,"amount\u200b":3,"ａmount":4}`,
			shown: []string{`"amount": 1`, `"\u0430mount" ("аmount"): 2`, `"amount\u200b": 3`, `"\uff41mount" ("ａmount"): 4`}},
		{name: "a key in another script", args: `{"金額":5}`, shown: []string{`"\u91d1\u984d" ("金額"): 5`}},
		{name: "bidirectional characters", args: `{"a\u202eb":"\u2066evil\u2069","c":"x\u2028y\u0007\u00a0\u2800\ufe0f\ud83d\udc4d\udb40\udc41"}`,
			shown: []string{`"a\u202eb"`, `"\u2066evil\u2069"`, `"x\u2028y\u0007\u00a0\u2800\ufe0f👍\udb40\udc41"`}, not: []string{"\u202e", "\u2066", "\u2028", "\u00a0"}},
		{name: "a value that imitates a form", args: `{"a":"5\"\n}\n\nAllow this call?","command":"rm -rf /"}`, shown: []string{`"a": "5\"\n}\n\nAllow this call?",` + "\n", `"command": "rm -rf /"`}},
		{name: "what is redacted stays so", args: `{"card":"4111","deep":{"card":{"no":"4111"}}}`, shown: []string{`"card": "[REDACTED]"`}, not: []string{"4111"}},
	} {
		for _, version := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(version+"/"+tt.name, func(t *testing.T) {
				asked := ""
				cs := s.client(t, version, &sdk.ClientOptions{ElicitationHandler: func(_ context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
					asked = r.Params.Message
					return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"approve": true}}, nil
				}})
				res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "pay", Arguments: json.RawMessage(tt.args)})
				if err != nil {
					t.Fatal(err)
				}
				text := res.Content[0].(*sdk.TextContent).Text
				if tt.pending || tt.refusedWith != "" {
					want := tt.refusedWith
					if tt.pending {
						want = "; nobody was asked, because a form cannot show all of its arguments: "
					}
					if asked != "" || !res.IsError || !strings.Contains(text, want) {
						t.Fatalf("asked %.300q; got %s; expected %q", asked, text, want)
					}
					if tt.pending {
						s.wait(t, "a form cannot show the arguments")
						_, id, _ := strings.Cut(text, "'toolctl approvals show ")
						id, _, _ = strings.Cut(id, "'")
						shown := showApproval(t, dir, id)
						var args any
						if err := json.Unmarshal([]byte(shown), &args); err != nil || strings.Contains(tt.args, "rm -rf /") != strings.Contains(shown, "rm -rf /") {
							t.Errorf("toolctl approvals show: %v: %.300s", err, shown)
						}
					}
					return
				}
				if text != "paid" {
					t.Fatalf("got %s", text)
				}
				if len(asked) > 40<<10 {
					t.Errorf("the form has %d bytes", len(asked))
				}
				for _, want := range tt.shown {
					if !strings.Contains(asked, want) {
						t.Errorf("the form does not have %s:\n%.3000s", want, asked)
					}
				}
				for _, not := range tt.not {
					if strings.Contains(asked, not) {
						t.Errorf("the form has %q:\n%.3000s", not, asked)
					}
				}
			})
		}
	}
}

// showApproval returns the arguments from all pages of "toolctl approvals show".
func showApproval(t *testing.T, dir, id string) string {
	t.Helper()
	var args strings.Builder
	for offset := 0; ; {
		const lines = 1000
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"approvals", "show", id, "--store", filepath.Join(dir, "state.db"), "--limit", fmt.Sprint(lines), "--offset", fmt.Sprint(offset)}, strings.NewReader(""), &out, &errs); code != exitOK {
			t.Fatalf("code %d: %s", code, errs.String())
		}
		_, page, _ := strings.Cut(out.String(), "Arguments:\n")
		var from, to, all int
		if i := strings.LastIndex(page, "\nlines "); i >= 0 {
			if _, err := fmt.Sscanf(page[i+1:], "lines %d to %d of %d", &from, &to, &all); err != nil {
				t.Fatal(err)
			}
			page = page[:i+1]
		}
		args.WriteString(page)
		if offset = to; offset == all {
			return args.String()
		}
	}
}
