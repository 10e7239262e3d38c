package browsertest

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// shopManifests are the manifests that most tests serve.
const shopManifests = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: pay-invoice, labels: {team: pay}}
spec:
  description: Pays an invoice from the account of the shop.
  redact: [card]
  hints: {title: Pay, destructive: true}
  input_schema:
    type: object
    properties:
      invoice: {type: string, description: Number of the invoice, examples: [INV-1]}
      amount: {type: number, minimum: 0, description: How much to pay}
      currency: {type: string, enum: [EUR, NOK, USD], default: EUR}
      card: {type: string}
    required: [invoice, amount]
    additionalProperties: false
  mock_template: '{"invoice": "{{.invoice}}", "paid": {{.amount}}}'
  examples: [{name: small, args: {invoice: INV-7, amount: 5}}]
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: find-orders, labels: {team: sales}}
spec:
  description: Finds the orders of a customer, with the lines of each.
  hints: {read_only: true}
  input_schema:
    type: object
    properties:
      customer: {type: object, description: Who ordered, properties: {name: {type: string}, email: {type: string, format: email}}, required: [name]}
      states: {type: array, items: {type: string, enum: [open, paid, sent]}, description: Only orders in these states}
      since: {type: string, format: date}
      limit: {type: integer, default: 10, maximum: 100}
      by: {oneOf: [{title: Number, type: object, properties: {number: {type: integer}}, required: [number]}, {title: Text, type: string}]}
    required: [customer]
  output_schema: {type: object, properties: {orders: {type: array, items: {type: object, properties: {id: {type: string}}}}}}
  mock_result: {orders: [{id: A-1, total: 12.5, state: paid}, {id: A-2, total: 99, state: open}]}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: draw-chart}
spec:
  description: Draws a chart.
  input_schema: {type: object, properties: {title: {type: string}}}
  mock_parts:
  - {type: text, text: A chart of the year}
  - {type: image, media: {mime_type: image/png, data: iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: drop-table}
spec: {description: Drops a table., input_schema: {type: object}, mock_result: {}}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec:
  require_approval: ["pay-*"]
  blocklist: [drop-table]
  limits: [{tools: [find-orders], max_calls: 50, per: day}]
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: remind}
spec:
  title: Remind of an invoice
  description: Asks a customer to pay, in the tone that is wanted.
  system_prompt: You write for the shop, in a {{.tone}} tone.
  input:
    type: object
    properties: {customer: {type: string, description: Who has to pay}, tone: {type: string, enum: [kind, firm]}, invoices: {type: array, items: {type: string}}}
    required: [customer, tone]
  template: "Remind {{.customer}} of {{range .invoices}}{{.}} {{else}}what is open{{end}}."
---
apiVersion: toolctl.dev/v1
kind: Toolset
metadata: {name: desk}
spec: {description: Help customers with orders., discovery: search, pinned: [find-orders], groups: [support]}
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: pays}
spec: {turns: [{calls: [{tool: find-orders, args: {customer: {name: Ann}}, expect: {status: complete}}]}]}
---
apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: fails}
spec: {turns: [{calls: [{tool: draw-chart, args: {title: x}, expect: {status: failed}}]}]}
`

// pages has the addresses of the pages of the console, by their names in these tests.
var pages = map[string]string{
	"tools": "", "tool": "tools/default/find-orders", "try": "tools/default/find-orders/try", "approvals": "approvals", "activity": "activity", "audit": "audit", "servers": "servers",
	"prompts": "prompts", "prompt": "prompts/default/remind", "changes": "changes",
}

// morePages has the additional pages of the shop that applied serves.
var morePages = map[string]string{
	"revision": "changes/revision?set=shop&revision=2", "undo": "changes/undo?set=shop&revision=1", "pending": "changes/pending", "toolset": "toolsets/default/desk",
}

// toolctl runs the program and fails the test if its exit code is greater than most.
func toolctl(t *testing.T, dir string, most int, args ...string) string {
	t.Helper()
	if chromium == "" {
		t.Skip("there is no Chromium: install Debian's chromium, or name one with TOOLCTL_CHROMIUM")
	}
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() > most || cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("toolctl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// applied serves the shop from a store. The manifests were applied twice before the start and once after it, and the
// scenarios were run.
func applied(t *testing.T, args ...string) served {
	t.Helper()
	dir := t.TempDir()
	file, db := filepath.Join(dir, "shop.yaml"), filepath.Join(dir, "state.db")
	apply := func(text string) {
		t.Helper()
		write(t, file, text)
		toolctl(t, dir, 0, "apply", "-f", "shop.yaml", "--set", "shop", "--prune", "--store", db)
	}
	apply(strings.Replace(shopManifests, "amount: {type: number, minimum: 0,", "amount: {type: number,", 1))
	apply(shopManifests)
	toolctl(t, dir, 1, "test", "shop.yaml", "--store", db)
	s := serve(t, append([]string{"--store", db}, args...)...)
	apply(strings.Replace(strings.Replace(shopManifests, "maximum: 100", "maximum: 50", 1), "max_calls: 50", "max_calls: 500", 1))
	return s
}

// shop serves the shop with a store.
func shop(t *testing.T, args ...string) served {
	t.Helper()
	dir := t.TempDir()
	return serve(t, append([]string{"-f", write(t, filepath.Join(dir, "shop.yaml"), shopManifests), "--store", filepath.Join(dir, "state.db")}, args...)...)
}

// fill makes some calls with the forms of a signed-in browser.
func fill(t *testing.T, b *browser, s served) {
	t.Helper()
	b.run(
		chromedp.Navigate(s.url+"tools/default/find-orders/try"), see("#run"),
		keys(`[name="v:/customer/name"]`, "Ann"), click("#run"), see("#result-title"),
		chromedp.Navigate(s.url+"tools/default/pay-invoice/try"), see("#run"),
		keys(`[name="v:/invoice"]`, "INV-1"), keys(`[name="v:/amount"]`, "12.50"), click("#run"), see("#result-title"),
		chromedp.Navigate(s.url+"tools/default/draw-chart/try"), see("#run"), click("#run"), see(".part img"),
	)
}
