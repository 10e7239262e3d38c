package main

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// exampleCalls has a command line and a part of its output for every tool of manifests/. The tools of
// manifests/scenarios are called by their scenarios.
var exampleCalls = map[string][]struct {
	args []string
	code int
	want string
}{
	"get-weather": {
		{args: []string{"-a", "location=Oslo"}, want: `{"location":"Oslo","temperature":21.5,"units":"metric","conditions":"sunny"}`},
	},
	"count": {
		{args: []string{"-a", "from=-1", "-a", "to=1"}, want: `["-1","0","1"]`},
	},
	"get-exchange-rates": {
		{want: `{"USD":1.0842,"NOK":11.615,"JPY":162.37}`},
	},
	"book-table": {
		{args: []string{"-a", "restaurant=Harbour", "-a", "guests=4", "-a", "phone=555 0100"}, want: `{"booked":true,"restaurant":"Harbour","guests":4,"phone":"[REDACTED]","note":"no names given"}`},
		{args: []string{"-a", "restaurant=Harbour", "-a", "guests=9", "-a", `names:=["Ada","Bo"]`}, want: `"booked":false`},
	},
	"list-stations": {
		{want: `{"code":"SKO","name":"Skøyen"}`},
	},
	"plan-trip": {
		{args: []string{"-a", "from=Oslo S", "-a", "to=Skøyen"}, want: `{"legs":[{"from":"Oslo S","to":"Skøyen"}]}`},
		{args: []string{"-a", "from=A", "-a", "to=C", "-a", `stops:=["B"]`}, want: `{"legs":[{"from":"A","to":"B"},{"from":"B","to":"C"}]}`},
	},
	"draw-chart": {
		{args: []string{"-a", "title=Sales"}, want: `{"chart":"chart-1","format":"png"}`},
		{args: []string{"-a", "title=Sales", "-o", "json"}, want: `"mime_type": "image/png"`},
		{args: []string{"-a", "title=Sales", "-o", "text"}, want: `A bar chart with three bars`},
	},
	"search-cities": {
		{args: []string{"-a", "country=NO", "-a", "name=Oslo", "--dry-run", "-o", "curl"}, want: `Authorization: Bearer '"$CITIES_TOKEN"`},
	},
	"pay-invoice": {
		{args: []string{"-a", "invoice=INV-7", "-a", "amount=12.5"}, want: `{"invoice":"INV-7","paid":12.5}`},
		{args: []string{"-a", "invoice=7", "-a", "amount=1"}, code: exitInvalid, want: `/invoice: expected a string that matches the pattern "^INV-[0-9]+$"`},
	},
	"refund-order": {
		{args: []string{"-a", "order=O-1", "-a", "amount=5"}, code: exitPending, want: `tool "refund-order" needs approval by policy "refunds/ask-first"`},
		{args: []string{"-a", "order=O-1", "-a", "amount=5", "--principal", "guest-7"}, code: exitRefused, want: `refused by policy "refunds/guests-refund-nothing", rule blocklist`},
	},
	"delete-invoice": {
		{args: []string{"-a", "invoice=INV-7"}, code: exitRefused, want: `refused by policy "payments/no-deletes", rule blocklist`},
	},
}

func TestManifests(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../../manifests")
	if err != nil {
		t.Fatal(err)
	}
	set, err := manifest.Load(t.Context(), []string{root}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, o := range set.Objects {
		h := o.Head()
		kinds = append(kinds, h.Kind)
		if h.Kind == v1.KindTool && !strings.Contains(h.Source.File, "scenarios") && len(exampleCalls[h.Metadata.Name]) == 0 {
			t.Errorf("%s: no call of tool %q", h.Source, h.Metadata.Name)
		}
	}
	for _, kind := range v1.Kinds() {
		if !slices.Contains(kinds, kind) {
			t.Errorf("no example of kind %s", kind)
		}
	}
	t.Run("validate", func(t *testing.T) {
		code, out := runCommand(t.Context(), "validate", "--strict", root)
		if code != exitOK {
			t.Errorf("exit %d: %s", code, out)
		}
	})
	for tool, calls := range exampleCalls {
		t.Run(tool, func(t *testing.T) {
			if tool == "count" && raceDetector {
				t.Skip("its child starts as this program below limits.memory_mb, less than the race detector reserves")
			}
			for _, c := range calls {
				code, out := runCommand(t.Context(), append([]string{"call", "-f", root, tool}, c.args...)...)
				if code != c.code || !strings.Contains(out, c.want) {
					t.Errorf("%q: exit %d, want %d: got %s, want %s", c.args, code, c.code, out, c.want)
				}
			}
		})
	}
}

// runCommand runs a command line in this process and returns its exit code and its whole output.
func runCommand(ctx context.Context, args ...string) (int, string) {
	var out bytes.Buffer
	code := run(ctx, args, strings.NewReader(""), &out, &out)
	return code, out.String()
}
