package browsertest

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	permissions "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// TestNotification checks that notifications appear only if the browser may show them.
func TestNotification(t *testing.T) {
	s, b := shop(t, "--token-file", tokens(t, "ann", "bob")), open(t)
	const watch = `if (window.Notification) {
		const Real = window.Notification;
		window.told = [];
		window.Notification = class extends Real {
			constructor(title, o) { super(title, o); window.told.push(title + ", " + o.body); }
		};
	}`
	pay := func(n int) {
		t.Helper()
		if code, body := s.api(t, "POST", "tools/default/pay-invoice/call", "bob", fmt.Sprintf(`{"args":{"invoice":"INV-%d","amount":5}}`, n)); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument(watch).Do(ctx)
		return err
	}), signIn(s, "ann"))
	pay(1)
	var told []string
	b.run(until(`document.title.startsWith("(1) ")`), chromedp.Evaluate("window.told", &told))
	if len(told) != 0 {
		t.Errorf("told without permission: %q", told)
	}
	b.run(chromedp.ActionFunc(func(ctx context.Context) error {
		return permissions.GrantPermissions([]permissions.PermissionType{permissions.PermissionTypeNotifications}).WithOrigin(strings.TrimSuffix(s.url, "/ui/")).
			Do(cdp.WithExecutor(ctx, chromedp.FromContext(ctx).Browser))
	}), click(`nav a[href$="activity"]`), see("#search"), until(`document.title.startsWith("(1) ") && Notification.permission === "granted"`))
	pay(2)
	b.run(until(`document.title.startsWith("(2) ")`), chromedp.Evaluate("window.told", &told))
	if len(told) != 1 || told[0] != "A call waits for your decision, 2 in all" {
		t.Errorf("told %q", told)
	}
}

// TestLockState checks that the page of a server's tool shows the state of its lock.
func TestLockState(t *testing.T) {
	dir := t.TempDir()
	inner := filepath.Join(dir, "inner.yaml")
	write(t, inner, shopManifests)
	write(t, filepath.Join(dir, "servers.yaml"), fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: shop}\nspec: {command: %q, args: [serve, -f, %q]}\n", program, inner))
	lock := filepath.Join(dir, "toolctl.lock")
	s, b := serve(t, "-f", filepath.Join(dir, "servers.yaml"), "--lock-file", lock), open(t)
	state := func() string {
		t.Helper()
		b.run(click(`a[href$="shop__find-orders"]`), see("#source"))
		text := b.text("#source ~ dl")
		b.run(click(".crumbs a"), see("#results"))
		return text
	}
	b.run(chromedp.Navigate(s.link), see("#results"))
	if text := state(); !strings.Contains(text, "not pinned: there is no toolctl.lock") || !strings.Contains(text, "default/shop, as find-orders") {
		t.Error(text)
	}
	toolctl(t, dir, 0, "lock", "-f", "servers.yaml", "--lock-file", lock)
	if text := state(); !strings.Contains(text, "as pinned in") || strings.Contains(text, "differs") {
		t.Error(text)
	}
	write(t, inner, strings.Replace(shopManifests, "Finds the orders of a customer", "Finds all", 1))
	toolctl(t, dir, 0, "lock", "-f", "servers.yaml", "--lock-file", lock, "--update", "shop")
	if text := state(); !strings.Contains(text, "differs") || !strings.Contains(text, "description") {
		t.Error(text)
	}
}

// TestCutLists checks that truncated lists report the omitted rows.
func TestCutLists(t *testing.T) {
	s, b := shop(t, "--token-file", tokens(t, "ann", "bob"), "--ui-operator", "ann"), open(t)
	for i := range 210 {
		if code, body := s.api(t, "POST", "tools/default/draw-chart/call", "bob", fmt.Sprintf(`{"session":"s%d"}`, i%25)); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	if code, body := s.api(t, "POST", "tools/default/find-orders/call", "bob", `{"args":{"customer":{"name":"x"}}}`); code != http.StatusOK {
		t.Fatal(code, body)
	}
	b.run(signIn(s, "ann"), click(`nav a[href$="activity"]`), see("#rows tr"), until(`document.querySelector("main").innerText.includes("1 to 50 of 211") || (location.reload(), false)`))
	text := b.text("main")
	for _, want := range []string{"1 to 20 of 26", "Budgets used", "1 of 50"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q: %s", want, text)
		}
	}
	if row := b.text("#budgets ~ div tbody tr"); !strings.HasPrefix(row, "bob") {
		t.Errorf("the budget of %s", row)
	}
	b.run(click(`nav a[href$="audit"]`), see("#results [role=status]"))
	if text := b.text("#results [role=status]"); !strings.Contains(text, "1 to 50 of 2") {
		t.Error(text)
	}
}
