package browsertest

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// many serves 120 tools, two thirds of which are in the namespace a.
func many(t *testing.T, args ...string) served {
	t.Helper()
	var b strings.Builder
	for i := range 120 {
		fmt.Fprintf(&b, "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: tool-%03d, namespace: %s, labels: {team: t%d}}\nspec: {description: 'Does thing %d. %s', input_schema: {type: object}, mock_result: {}}\n---\n", i, []string{"a", "a", "b"}[i%3], i%7, i, strings.Repeat("More words on it. ", 20))
	}
	dir := t.TempDir()
	return serve(t, append([]string{"-f", write(t, filepath.Join(dir, "many.yaml"), b.String()), "--store", filepath.Join(dir, "s.db")}, args...)...)
}

// TestLists checks that a list is compact, and that its address contains the order, the filter and the page.
func TestLists(t *testing.T) {
	s, b := many(t), open(t)
	var at string
	var rows int
	b.run(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(s.link), see("#results"),
		chromedp.Evaluate(`[...document.querySelectorAll("#results tbody tr")].filter((r) => r.getBoundingClientRect().bottom <= 800).length`, &rows))
	if rows < 15 {
		t.Errorf("%d rows in 800 pixels", rows)
	}
	if text := b.text("[aria-sort]"); text != "Name" {
		t.Errorf("ordered by %s", text)
	}
	b.follow(`thead a[href*="sort="]`)
	if text := b.text("#results tbody th"); text != "b/tool-119" {
		t.Errorf("the last is %s", text)
	}
	b.run(see(`[aria-sort="descending"]`))
	b.follow(`.pages a[href*="page=3"]`)
	if text := b.text("#results [role=status]"); text != "101 to 120 of 120" {
		t.Error(text)
	}
	b.run(within(soon, chromedp.SetValue("#namespace", "b", chromedp.ByQuery)), click("#search button"), until(`location.search.includes("namespace=b") && document.querySelectorAll("#results tbody tr").length === 40`), settled(), chromedp.Location(&at))
	if !strings.Contains(at, "sort=-name") || strings.Contains(at, "page=") || b.text("#results tbody th") != "b/tool-119" {
		t.Errorf("at %s", at)
	}
	// The same address shows the same list.
	b.run(chromedp.Navigate(at), see("#results"))
	if text := b.text("#results [role=status]"); text != "1 to 40 of 40 found, 120 in all" {
		t.Error(text)
	}
	b.run(keys("#q", "nowhere"), see("#results .empty"))
	b.follow("#results .empty a")
	if text := b.text("#results [role=status]"); text != "1 to 50 of 120" {
		t.Error(text)
	}
}

// TestClickAfterSearch checks that leaving the search field sends no request, so that no row is replaced under a
// click.
func TestClickAfterSearch(t *testing.T) {
	const requests = `performance.getEntriesByType("resource").filter((e) => e.name.includes("q=")).length`
	s, b := many(t), open(t)
	var asked, after int
	b.run(chromedp.Navigate(s.link), see("#results"), chromedp.Navigate(s.url), see("#results"), settled(),
		keys("#q", "tool-07"), until(`document.querySelectorAll("#results tbody tr").length === 10`), settled(), chromedp.Evaluate(requests, &asked),
		chromedp.Focus("#namespace", chromedp.ByQuery), settled(), chromedp.Evaluate(requests, &after))
	if asked == 0 || after != asked {
		t.Errorf("%d requests, and %d after the search was left", asked, after)
	}
	// A choice filters the list at once.
	b.run(keys("#namespace", "b"), until(`location.search.includes("namespace=b") && document.querySelectorAll("#results tbody tr").length < 10`))
}

// TestPhone checks that on a phone the navigation is one row, tables scroll but the page does not, and tools can be
// called.
func TestPhone(t *testing.T) {
	s, b := many(t), open(t)
	b.run(chromedp.EmulateViewport(390, 844), chromedp.Navigate(s.link), see("#results"))
	var got struct{ Rows, Wide, Box, Call, Nav int }
	b.run(chromedp.Evaluate(`({
		Rows: new Set([...document.querySelectorAll("nav li")].map((e) => e.getBoundingClientRect().top)).size,
		Nav: Math.max(...[...document.querySelectorAll("nav li")].map((e) => Math.ceil(e.getBoundingClientRect().right))),
		Wide: document.documentElement.scrollWidth,
		Box: document.querySelector(".scroll").scrollWidth,
		Call: Math.ceil(document.querySelector(".act a").getBoundingClientRect().right),
	})`, &got))
	if got.Rows != 1 || got.Nav > 390 || got.Wide > 390 || got.Box <= 390 || got.Call > 390 {
		t.Errorf("%+v", got)
	}
	b.follow(".act a")
	b.run(see("#run"))
}

// TestLocalTimes checks that times are in the time zone of the browser, with UTC on hover, also for new calls.
func TestLocalTimes(t *testing.T) {
	s, b := shop(t, "--token-file", tokens(t, "ann")), open(t)
	call := func() {
		t.Helper()
		if code, body := s.api(t, "POST", "tools/default/draw-chart/call", "ann", "{}"); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	call()
	b.run(emulation.SetTimezoneOverride("Asia/Tokyo"), signIn(s, "ann"), chromedp.Navigate(s.url+"activity"), see("#rows time"))
	call()
	b.run(until(`document.querySelectorAll("#rows time").length === 2`))
	var all []struct{ Local, UTC string }
	b.run(chromedp.Evaluate(`[...document.querySelectorAll("#rows time")].map((e) => ({Local: e.textContent, UTC: e.title}))`, &all))
	for _, one := range all {
		utc, err := time.Parse("2006-01-02 15:04:05 UTC", one.UTC)
		if err != nil || utc.Add(9*time.Hour).Format("2006-01-02 15:04:05") != one.Local {
			t.Errorf("%+v, %v", one, err)
		}
	}
}

// TestBadge checks that the badge counts the calls that the person may decide on, while the list also has the person's
// own calls.
func TestBadge(t *testing.T) {
	s, b := shop(t, "--token-file", tokens(t, "ann", "bob")), open(t)
	if code, body := s.api(t, "POST", "tools/default/pay-invoice/call", "bob", `{"args":{"invoice":"INV-1","amount":5}}`); code != http.StatusOK {
		t.Fatal(code, body)
	}
	for who, want := range map[string]string{"ann": "1", "bob": "0"} {
		b.run(signIn(s, who), chromedp.Navigate(s.url+"approvals"), see("#open ~ div table"))
		var badge string
		b.run(chromedp.Evaluate(`(() => { const e = document.getElementById("waiting"); return e.hidden ? "0" : e.querySelector("#waiting-count").textContent })()`, &badge))
		if badge != want {
			t.Errorf("%s has %s to decide on", who, badge)
		}
		b.follow(".who button")
	}
}

// TestSpentBudget checks that an exhausted budget is red.
func TestSpentBudget(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, "-f", write(t, filepath.Join(dir, "shop.yaml"), strings.Replace(shopManifests, "max_calls: 50", "max_calls: 1", 1)), "--store", filepath.Join(dir, "s.db"), "--token-file", tokens(t, "ann"))
	b := open(t)
	if code, body := s.api(t, "POST", "tools/default/find-orders/call", "ann", `{"args":{"customer":{"name":"x"}}}`); code != http.StatusOK {
		t.Fatal(code, body)
	}
	b.run(signIn(s, "ann"), chromedp.Navigate(s.url+"activity"), until(`document.querySelector("tr.spent") || (location.reload(), false)`))
	var red bool
	b.run(chromedp.Evaluate(`(() => { const [r, g, b] = getComputedStyle(document.querySelector("tr.spent td")).color.match(/\d+/g).map(Number); return r > g + 80 && r > b + 80 })()`, &red))
	if text := b.text("tr.spent"); !red || !strings.Contains(text, "1 of 1, used up") {
		t.Errorf("red %t: %s", red, text)
	}
	if text := b.text("#results-budgets"); !strings.Contains(text, "1 of 1") {
		t.Error(text)
	}
}
