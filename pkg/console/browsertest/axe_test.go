package browsertest

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// axe checks pages by the rules of WCAG 2.2 AA.
type axe struct {
	*browser
	source string
}

func newAxe(t *testing.T) axe {
	t.Helper()
	file := os.Getenv("TOOLCTL_AXE")
	if file == "" {
		t.Skip("TOOLCTL_AXE names no axe.min.js: .ci/chromium installs it")
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return axe{open(t), string(source)}
}

// check checks the current page, light and dark, on a phone and a desktop.
func (a axe) check(name string) {
	a.t.Helper()
	for _, width := range []int64{390, 1280} {
		for _, night := range []bool{false, true} {
			var found []string
			var wide int
			a.run(chromedp.EmulateViewport(width, 900), dark(night), chromedp.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &wide), chromedp.Evaluate(a.source+";0", nil),
				chromedp.Evaluate(`axe.run({runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]}).then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + n.target.join(" ") + ": " + n.failureSummary)))`, &found,
					func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
			if wide > 0 {
				a.t.Errorf("%s is %d pixels too wide for %d", name, wide, width)
			}
			if len(found) > 0 {
				a.t.Errorf("%s, %d pixels wide, dark %t:\n%s", name, width, night, strings.Join(found, "\n"))
			}
		}
	}
}

func TestAccessible(t *testing.T) {
	a := newAxe(t)
	visit := func(s served, what string) {
		for _, name := range slices.Sorted(maps.Keys(pages)) {
			if what == "empty" && (name == "tool" || name == "try" || name == "prompt") {
				continue
			}
			a.run(chromedp.Navigate(s.url+pages[name]), see("main h1"))
			a.check(fmt.Sprintf("%s, %s", name, what))
		}
	}
	empty := serve(t, "--store", "memory:")
	a.run(chromedp.Navigate(empty.url), see("main h1"))
	a.check("sign in")
	a.run(chromedp.Navigate(empty.link), see("#results"))
	visit(empty, "empty")

	s := applied(t)
	a.run(chromedp.Navigate(s.link), see("#results"))
	fill(t, a.browser, s)
	a.check("a result")
	visit(s, "filled")
	for _, name := range slices.Sorted(maps.Keys(morePages)) {
		a.run(chromedp.Navigate(s.url+morePages[name]), see("main h1"), openAll())
		a.check(name)
	}
	a.run(chromedp.Navigate(s.url+pages["prompt"]), see("#run"), click("#run"), see(".field.wrong"))
	a.check("a prompt with errors")
	a.run(keys(`[name="v:/customer"]`, "Ann"), keys(`[name="v:/tone"]`, "kind"), click("#run"), see("#result-title"))
	a.check("a prompt rendered")
	a.run(chromedp.Navigate(s.url+"changes/undo?set=shop&revision=99"), see(".problem"))
	a.check("no such revision")
	a.run(chromedp.Navigate(s.url+"tools/default/pay-invoice/try"), see("#run"), click("#run"), see(".field.wrong"))
	a.check("a form with errors")
	a.run(chromedp.Navigate(s.url+"tools/default/find-orders/try"), see("#run"), click(`button[value="open /states"]`), see(`[name="v:/states/0"]`),
		keys(`[name="c:/by"]`, "Number"), see(`[name="v:/by/~c/number"]`))
	a.check("a form with lists and choices")
	a.run(chromedp.Navigate(s.url+"tools/default/find-orders/try"), see("#run"), keys(`[name="v:/customer/name"]`, "Ann"), click(`button[value="explain"]`), see("#explain-title"))
	a.check("policies explained")
	a.run(chromedp.Navigate(s.url+"approvals"), see("#open"), click("#open ~ div a.button"), see("#args-title"))
	a.check("an approval")
	a.run(click("details summary"), see("#args"), keys("#args", "x"), click(`button[value="approve"]`), see(".problem"))
	a.check("an approval with errors")
	a.run(click(`button[value="deny"]`), see("#past ~ div table"))
	a.check("decided")
	a.run(chromedp.Navigate(s.url+"activity"), see("#rows a"), click("#rows a"), see("main dl"))
	a.check("a call")
	a.run(chromedp.Navigate(s.url+"audit"), see("main form button"), click("main form button"), see("p.good"))
	a.check("the audit verified")
	a.run(chromedp.Navigate(s.url+"nothing"), see("main h1"))
	a.check("no such page")
}
