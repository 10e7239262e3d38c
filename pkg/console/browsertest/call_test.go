package browsertest

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestResultIsSeen checks that a running call is visible and is made only once, however often Call is pressed, that
// its result is in view and announced, and that the focus does not move.
func TestResultIsSeen(t *testing.T) {
	const held = `{
		const real = window.fetch;
		window.calls = 0;
		window.fetch = (at, how) => how.body.get("action") !== "run" ? real(at, how) : new Promise((done) => {
			window.calls++;
			window.release = () => done(real(at, how));
		});
	}`
	const running = `document.getElementById("run").textContent === "Calling…" && document.getElementById("run").ariaDisabled === "true" && document.getElementById("status").textContent === "Calling…"`
	s, b := shop(t), open(t)
	b.run(chromedp.Navigate(s.link), see("#results"))
	for _, width := range []int64{1280, 390} {
		b.run(chromedp.EmulateViewport(width, 800), chromedp.Navigate(s.url+"tools/default/find-orders/try"), see("#run"), chromedp.Evaluate(held, nil))
		var calls int
		var reachable bool
		b.run(keys(`[name="v:/customer/name"]`, "Ann"), chromedp.Evaluate(`scrollTo(0, 0), document.getElementById("run").getBoundingClientRect().bottom <= innerHeight`, &reachable),
			click("#run"), until(running), click("#run"), click("#run"), chromedp.Evaluate(`window.calls`, &calls), chromedp.Evaluate(`window.release()`, nil), see("#result-title"),
			until(`document.getElementById("status").textContent.startsWith("Status of the call: complete") && document.getElementById("run").textContent === "Call"`),
			until(`(() => { const at = document.getElementById("result-title").getBoundingClientRect(); return at.top >= 0 && at.bottom < innerHeight })()`),
			until(`document.activeElement.id === "run"`))
		if calls != 1 {
			t.Errorf("%d pixels: %d calls", width, calls)
		}
		if !reachable {
			t.Errorf("%d pixels: Call is not in view at the top of the page", width)
		}
	}
	// A call that Enter starts leaves the focus in its field.
	b.run(keys(`[name="v:/customer/name"]`, kb.Enter), until(running), chromedp.Evaluate(`window.release()`, nil), until(`document.getElementById("run").textContent === "Call" && document.activeElement.name === "v:/customer/name"`))
	// Text that is typed during a call stays.
	b.run(keys(`[name="v:/customer/name"]`, kb.Enter), until(running), keys(`[name="v:/customer/name"]`, kb.End+" Lee"), chromedp.Evaluate(`window.release()`, nil), until(`document.getElementById("run").textContent === "Call"`))
	var name string
	if b.run(within(soon, chromedp.Value(`[name="v:/customer/name"]`, &name, chromedp.ByQuery))); name != "Ann Lee" {
		t.Errorf("the name is %q", name)
	}
	b.run(until(`document.getElementById("raw").value.includes("Ann Lee")`))
	// An unreachable server is reported.
	b.run(chromedp.Evaluate(`window.fetch = () => Promise.reject(new TypeError("gone"))`, nil), click("#run"), see("#outcome .problem"))
	if text := b.text("#outcome"); !strings.Contains(text, "The server did not answer") {
		t.Error(text)
	}
	// An answer of another program, or of a later start, is shown unchanged.
	b.run(chromedp.Evaluate(`window.fetch = () => Promise.resolve(new Response("this address belongs to an earlier run", { status: 403, headers: { "Content-Type": "text/plain" } }))`, nil), click("#run"),
		until(`document.querySelector("#outcome .problem")?.textContent === "this address belongs to an earlier run"`))
}

// TestTableOfAPart checks that a table of a part of a result has the name of that part, beside the rest of the result.
func TestTableOfAPart(t *testing.T) {
	dir := t.TempDir()
	s, b := serve(t, "-f", write(t, filepath.Join(dir, "box.yaml"), `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-play}
spec:
  description: One play.
  input_schema: {type: object}
  mock_result: {title: Ghosts, at: "2026-12-01T19:30:00Z", cast: [{role: Oswald, from: "2026-12-01T19:30:00Z"}]}
`), "--store", filepath.Join(dir, "state.db")), open(t)
	b.run(chromedp.Navigate(s.link), see("#results"), chromedp.Navigate(s.url+"tools/default/get-play/try"), see("#run"), click("#run"), see("#result-title"))
	if got := b.text("#outcome h3"); got != "cast" {
		t.Errorf("the table is %q", got)
	}
	if text := b.text("#outcome .tree"); !strings.Contains(text, "title Ghosts") || strings.Contains(text, "Oswald") {
		t.Errorf("beside the table: %s", text)
	}
	b.run(until(`document.querySelector("#outcome td.word:last-child").getClientRects().length === 1 && getComputedStyle(document.querySelector("#outcome td.word")).whiteSpace === "nowrap"`))
}

// TestNotice checks that the form shows before a call whether it will be refused or held.
func TestNotice(t *testing.T) {
	dir := t.TempDir()
	s, b := serve(t, "-f", write(t, filepath.Join(dir, "shop.yaml"), strings.Replace(shopManifests, "max_calls: 50", "max_calls: 0", 1)), "--store", filepath.Join(dir, "state.db")), open(t)
	b.run(chromedp.Navigate(s.link), see("#results"))
	for name, want := range map[string]string{
		"drop-table": "You may not call this tool now. Policy careful, rule blocklist, refuses the call: ", "pay-invoice": "Each call of this tool waits until a person approves it, by policy careful.",
		"find-orders": "You may not call this tool now. Policy careful, rule limits[0], refuses the call: no calls of \"find-orders\" are allowed today",
	} {
		b.run(chromedp.Navigate(s.url+"tools/default/"+name+"/try"), see("#run"))
		if text := b.text(".notice"); !strings.HasPrefix(text, want) {
			t.Errorf("%s: %q, want %q", name, text, want)
		}
	}
	var n int
	if b.run(chromedp.Navigate(s.url+"tools/default/draw-chart/try"), see("#run"), chromedp.Evaluate(`document.querySelectorAll(".notice").length`, &n)); n > 0 {
		t.Error(b.text(".notice"))
	}
}

// TestErrorsGo checks that an error disappears only when its field is corrected, and that the others stay.
func TestErrorsGo(t *testing.T) {
	s, b := shop(t), open(t)
	b.run(chromedp.Navigate(s.link), see("#results"), chromedp.Navigate(s.url+"tools/default/pay-invoice/try"), see("#run"), keys(`[name="v:/amount"]`, "-5"), click("#run"), see(".field.wrong"),
		until(`document.activeElement.name === "v:/invoice"`))
	if text := b.text("#wrong"); !strings.Contains(text, "2 arguments are not valid") || !strings.Contains(text, "invoice") || !strings.Contains(text, "amount") {
		t.Error(text)
	}
	wrong := func(name string) string {
		return `document.querySelector('.field.wrong > [name="v:/` + name + `"][aria-invalid]')`
	}
	b.run(keys(`[name="v:/invoice"]`, "INV-1"), until("!"+wrong("invoice")+" && "+wrong("amount")),
		emptied(`[name="v:/amount"]`), keys(`[name="v:/amount"]`, "-4"), until(`document.getElementById("raw").value.includes("-4") && `+wrong("amount")),
		emptied(`[name="v:/amount"]`), keys(`[name="v:/amount"]`, "4"), until(`!document.querySelector(".field.wrong, .violations, #wrong *, [aria-invalid]")`),
		emptied(`[name="v:/amount"]`), keys(`[name="v:/amount"]`, "x"), until(wrong("amount")))
	// The same holds for the page of a prompt.
	b.run(chromedp.Navigate(s.url+"prompts/default/remind"), see("#run"), click("#run"), see(".field.wrong"), keys(`[name="v:/customer"]`, "Ann"), until("!"+wrong("customer")+" && "+wrong("tone")))
}

// TestPastedLines checks that a text of several lines keeps its lines when it is pasted into a field of one line.
func TestPastedLines(t *testing.T) {
	s, b := shop(t), open(t)
	b.run(chromedp.Navigate(s.link), see("#results"), chromedp.Navigate(s.url+"tools/default/draw-chart/try"), see("#run"), keys(`input[name="v:/title"]`, "a"),
		chromedp.Evaluate(`{
			const data = new DataTransfer();
			data.setData("text/plain", "b\r\nc");
			document.querySelector('[name="v:/title"]').dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
		}`, nil),
		until(`document.activeElement.matches('textarea[name="v:/title"]') && document.getElementById("raw").value.includes('"ab\\nc"')`))
}

// TestToolPage checks that the page of a tool fits on two screens and has its description once, and that an exhausted
// budget is red.
func TestToolPage(t *testing.T) {
	dir := t.TempDir()
	s, b := serve(t, "-f", write(t, filepath.Join(dir, "shop.yaml"), strings.Replace(shopManifests, "max_calls: 50", "max_calls: 1", 1)), "--store", filepath.Join(dir, "state.db")), open(t)
	b.run(chromedp.EmulateViewport(1280, 800), chromedp.Navigate(s.link), see("#results"))
	fill(t, b, s)
	b.run(chromedp.Navigate(s.url+"tools/default/find-orders"), see("main h1"))
	var height, wide int
	var parts []string
	b.run(chromedp.Evaluate(`document.documentElement.scrollHeight`, &height), chromedp.Evaluate(`[...document.querySelectorAll("main h2")].map((h) => h.textContent)`, &parts))
	if height > 1600 {
		t.Errorf("the page is %d pixels high", height)
	}
	if want := "Arguments Result Policies and limits Who may call Source"; strings.Join(parts, " ") != want {
		t.Errorf("parts %q, want %q", parts, want)
	}
	text := b.text("main")
	if n := strings.Count(text, "Finds the orders of a customer"); n != 1 {
		t.Errorf("the description is there %d times", n)
	}
	if got := b.text(".spent"); got != "0 of 1" {
		t.Errorf("the budget is %q", got)
	}
	if !strings.Contains(text, "shop.yaml:") {
		t.Errorf("no file: %s", text)
	}
	b.run(chromedp.EmulateViewport(390, 800), chromedp.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &wide))
	if wide > 0 {
		t.Errorf("%d pixels too wide", wide)
	}
}
