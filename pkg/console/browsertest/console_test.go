package browsertest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// tokens writes a file in which the token of each name is the name.
func tokens(t *testing.T, names ...string) string {
	t.Helper()
	var b strings.Builder
	for _, n := range names {
		fmt.Fprintf(&b, "%s:%x\n", n, sha256.Sum256([]byte(n)))
	}
	return write(t, filepath.Join(t.TempDir(), "tokens"), b.String())
}

// signIn signs in with the form.
func signIn(s served, token string) chromedp.Action {
	return chromedp.Tasks{chromedp.Navigate(s.url), see("#token"), keys("#token", token+kb.Enter), see("#results")}
}

func TestSignInByLink(t *testing.T) {
	s, b := shop(t), open(t)
	var at string
	var cookies []*network.Cookie
	b.run(chromedp.Navigate(s.link), see("#results"), chromedp.Location(&at), chromedp.ActionFunc(func(ctx context.Context) (err error) {
		cookies, err = network.GetCookies().Do(ctx)
		return err
	}))
	if at != s.url {
		t.Errorf("at %s: the secret stays in the address", at)
	}
	if len(cookies) != 1 || !cookies[0].HTTPOnly || cookies[0].SameSite != network.CookieSameSiteStrict {
		t.Errorf("cookies %+v", cookies)
	}
	res, err := http.Get(s.link)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("the link works twice: %d", res.StatusCode)
	}
	b.follow(".who button")
	if text := b.text("h1"); text != "Sign in" {
		t.Errorf("after signing out: %s", text)
	}
}

// TestAnotherPortGetsNoCookie checks that another user's program on the machine never receives the console's cookie,
// at any of the host names. Cookies are not bound to ports.
func TestAnotherPortGetsNoCookie(t *testing.T) {
	s, b := shop(t), open(t)
	var mu sync.Mutex
	visits, cookies := 0, ""
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if r.URL.Path == "/" {
			visits++
		}
		cookies += r.Header.Get("Cookie")
		fmt.Fprint(w, "<!doctype html><title>other</title><h1>other</h1>")
	}))
	t.Cleanup(other.Close)
	_, port, _ := strings.Cut(strings.TrimPrefix(other.URL, "http://"), ":")
	b.run(chromedp.Navigate(s.link), see("#results"))
	for _, host := range []string{"127.0.0.1", "localhost", "other.localhost"} {
		b.run(chromedp.Navigate("http://"+host+":"+port+"/"), see("h1"))
	}
	mu.Lock()
	defer mu.Unlock()
	if visits != 3 || cookies != "" {
		t.Errorf("%d visits, with the cookies %q", visits, cookies)
	}
	// The person can still use the address and the link.
	b.run(chromedp.Navigate(s.url+"approvals"), see("#open"), chromedp.Navigate(s.link), see("#results"))
	// For such a name, browsers try ::1 first, so the console must have its port at ::1, too.
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	if ln, err := net.Listen("tcp", "[::1]:"+u.Port()); err == nil {
		ln.Close()
		t.Error("another program can listen at the console's port of ::1")
	}
}

func TestSignInByToken(t *testing.T) {
	s, b := shop(t, "--token-file", tokens(t, "ann")), open(t)
	b.run(chromedp.Navigate(s.url+"approvals"), see("#token"), keys("#token", "wrong"+kb.Enter), see(".problem"))
	if text := b.text(".problem"); text != "The token was not accepted: the token is unknown." {
		t.Error(text)
	}
	b.run(chromedp.Navigate(s.url+"approvals"), see("#token"), keys("#token", "ann"), click("main button.primary"), see("#open"))
	var at string
	b.run(chromedp.Location(&at))
	if at != s.url+"approvals" || b.text(".who span") != "ann" {
		t.Errorf("at %s as %s", at, b.text(".who span"))
	}
}

func TestSearch(t *testing.T) {
	s, b := shop(t), open(t)
	b.run(chromedp.Navigate(s.link), see("#results"), keys("#q", "invoice"), until(`document.querySelectorAll("#results tbody tr").length === 1`))
	if text := b.text("#results tbody th"); text != "default/pay-invoice" {
		t.Error(text)
	}
	b.run(keys("#q", strings.Repeat(kb.Backspace, 7)+"team=sales"), until(`document.querySelector("#results tbody th")?.innerText === "default/find-orders" && document.querySelectorAll("#results tbody tr").length === 1`))
	b.run(chromedp.Navigate(s.url), see("#results"), within(soon, chromedp.SetValue("#state", "blocked", chromedp.ByQuery)), click("#search button"),
		until(`document.querySelectorAll("#results tbody tr").length === 1 && document.querySelector("#results tbody")?.innerText.includes("refused by careful")`)) // the list may be replaced twice
}

// TestTry makes calls with a form: nested objects, lists and choices, with the JSON kept in step.
func TestTry(t *testing.T) {
	s, b := shop(t), open(t)
	b.run(
		chromedp.Navigate(s.link), see("#results"), click(`a[href$="find-orders"]`), see("#input"), click("a.primary"), see("#run"),
		keys(`[name="v:/customer/name"]`, "Ann"), until(`document.getElementById("raw").value.includes('"name": "Ann"')`),
		click(`button[value="open /states"]`), see(`[name="v:/states/0"]`), keys(`[name="v:/states/0"]`, "paid"), click(`button[value="add /states"]`), see(`[name="v:/states/1"]`), keys(`[name="v:/states/1"]`, "sent"),
		click(`button[value="remove /states/0"]`), until(`!document.querySelector('[name="v:/states/1"]')`),
		keys(`[name="c:/by"]`, "Number"), see(`[name="v:/by/~c/number"]`), keys(`[name="v:/by/~c/number"]`, "7"),
		until(`document.getElementById("raw").value.includes('"number": 7')`),
	)
	var raw string
	b.run(chromedp.Value("#raw", &raw, chromedp.ByQuery))
	var got, want any
	if err := json.Unmarshal([]byte(raw), &got); err != nil {
		t.Fatal(err)
	}
	_ = json.Unmarshal([]byte(`{"customer":{"name":"Ann"},"states":["sent"],"limit":10,"by":{"number":7}}`), &want)
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	b.run(click(`button[value="plan"]`), see("#plan-title"), click(`button[value="explain"]`), see("#explain-title"), click("#run"), see("#result-title"))
	if text := b.text("#outcome table"); !strings.Contains(text, "A-1") {
		t.Errorf("no table: %s", text)
	}
	b.run(openAll())
	if text := b.text("#outcome .tree"); !strings.Contains(text, "orders") {
		t.Errorf("no tree: %s", text)
	}
	var copies []string
	b.run(chromedp.Evaluate(`[...document.querySelectorAll("#copy-title ~ details pre")].map((p) => p.textContent)`, &copies))
	if len(copies) != 5 || !strings.HasPrefix(copies[0], "toolctl call default/find-orders -a ") || !strings.HasPrefix(copies[1], "curl ") {
		t.Errorf("copies %q", copies)
	}

	// The fields show the typed JSON, with errors at their fields.
	b.run(emptied("#raw"), keys("#raw", `{"customer": {"name": "Bob", "email": "none"}, "limit": 1000}`),
		until(`document.querySelector('[name="v:/customer/name"]')?.value === "Bob"`), click("#run"), see(".field.wrong"))
	for _, name := range []string{"v:/limit", "v:/customer/email"} {
		if text := b.text(fmt.Sprintf(`.field:has(> [name="%s"]) .violations`, name)); text == "" {
			t.Errorf("nothing is said at %s", name)
		}
	}
	b.run(emptied("#raw"), keys("#raw", `{"customer": `), see("#raw-error"))

	b.run(chromedp.Navigate(s.url+"tools/default/draw-chart/try"), see("#run"), click("#run"), see(".part img"),
		until(`document.querySelector(".part img").naturalWidth === 1`),
		chromedp.Navigate(s.url+"tools/default/pay-invoice/try"), see("#run"), click(`a[href="try?example=0"]`), until(`document.getElementById("raw").value.includes("INV-7")`))
}

// TestApprove checks that a person approves the call of another person with other arguments, and that the call
// continues.
func TestApprove(t *testing.T) {
	for _, script := range []bool{true, false} {
		t.Run(fmt.Sprintf("JavaScript %t", script), func(t *testing.T) {
			s, b := shop(t, "--token-file", tokens(t, "ann", "bob")), open(t)
			if !script {
				b.run(emulation.SetScriptExecutionDisabled(true))
			}
			pay := func() string {
				t.Helper()
				code, body := s.api(t, "POST", "tools/default/pay-invoice/call", "bob", `{"args":{"invoice":"INV-1","amount":5,"card":"4111"}}`)
				if code != http.StatusOK || strings.Contains(body, "4111") {
					t.Fatalf("%d %s", code, body)
				}
				return body
			}
			b.run(signIn(s, "ann"))
			if body := pay(); !strings.Contains(body, `"status":"pending"`) || !strings.Contains(body, `"callback_url":"`+s.url+"approvals/") {
				t.Fatal(body)
			}
			if script {
				b.run(until(`document.title.startsWith("(1) ")`), until(`document.getElementById("waiting").innerText.includes("1")`))
			}
			b.run(click(`nav a[href$="approvals"]`), see("#open"), click("#open ~ div a.button"), see("#args-title"))
			if text := b.text("pre"); !strings.Contains(text, `"amount": 5`) || !strings.Contains(text, "[REDACTED]") {
				t.Errorf("arguments %s", text)
			}
			var title string
			b.run(chromedp.Title(&title))
			if !strings.HasPrefix(title, "(1) Approval of pay-invoice") {
				t.Errorf("title %s", title)
			}
			edited := `{"invoice": "INV-1", "amount": "many", "card": "[REDACTED]"}`
			b.run(click("details summary"), see("#args"), emptied("#args"), keys("#args", edited), click(`button[value="approve"]`), see(".violations"))
			if text := b.text(".violations"); !strings.Contains(text, "/amount") {
				t.Errorf("violations %s", text)
			}
			b.run(emptied("#args"), keys("#args", strings.Replace(edited, `"many"`, "4", 1)), keys("#note", "agreed"), click(`button[value="approve"]`), see("#past"))
			if text := b.text("#past ~ div table"); !strings.Contains(text, "ann") || !strings.Contains(text, "agreed") || !strings.Contains(text, "approved") {
				t.Error(text)
			}
			if body := pay(); !strings.Contains(body, `"paid":4`) {
				t.Error(body)
			}
		})
	}
}

// TestEnterInTheNote checks that Enter in the note does not submit a decision.
func TestEnterInTheNote(t *testing.T) {
	s, b := shop(t, "--token-file", tokens(t, "ann", "bob")), open(t)
	if code, body := s.api(t, "POST", "tools/default/pay-invoice/call", "bob", `{"args":{"invoice":"INV-1","amount":5}}`); code != http.StatusOK {
		t.Fatal(body)
	}
	var sent int
	b.run(signIn(s, "ann"), click(`nav a[href$="approvals"]`), see("#open"), click("#open ~ div a.button"), see("#note"),
		chromedp.Evaluate(`window.sent = 0, document.addEventListener("submit", (e) => { window.sent++; e.preventDefault(); })`, nil),
		keys("#note", "no"+kb.Enter), chromedp.Evaluate(`window.sent`, &sent))
	if sent > 0 {
		t.Error("the decision was sent")
	}
	b.run(click(`button[value="deny"]`), chromedp.Evaluate(`window.sent`, &sent))
	if sent != 1 {
		t.Errorf("Deny was sent %d times", sent)
	}
}

// TestRefusals checks the status for people without the right to do something.
func TestRefusals(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, "-f", write(t, filepath.Join(dir, "shop.yaml"), strings.Replace(shopManifests, "  blocklist: [drop-table]", "  approvers: {principals: [ann, bob]}", 1)+`
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: not-for-eve}
spec: {blocklist: [find-orders], match: {principals: [eve]}}
`), "--store", filepath.Join(dir, "s.db"), "--token-file", tokens(t, "ann", "bob", "eve"))
	_, body := s.api(t, "POST", "tools/default/pay-invoice/call", "bob", `{"args":{"invoice":"INV-1","amount":5}}`)
	var res struct{ Pending struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &res); err != nil || res.Pending.ID == "" {
		t.Fatal(body)
	}
	own := strings.TrimSuffix(s.url, "/ui/")
	for _, tt := range []struct {
		name, method, path, token, host, origin, body string
		want                                          int
	}{
		{name: "ok", path: "api/tools", token: "ann", want: 200},
		{name: "own origin", path: "api/tools", token: "ann", origin: own, want: 200},
		{name: "foreign Origin", path: "api/tools", token: "ann", origin: "https://evil.example", want: 403},
		{name: "foreign Origin, a post", method: "POST", path: "api/approvals/" + res.Pending.ID, token: "ann", origin: "https://evil.example", body: `{"approve":true}`, want: 403},
		{name: "null Origin", method: "POST", path: "sign-in", origin: "null", want: 403},
		{name: "foreign Host", path: "api/tools", token: "ann", host: "evil.example", want: 403},
		{name: "no cookie", path: "", want: 401},
		{name: "no cookie, API", path: "api/tools", want: 401},
		{name: "no cookie, events", path: "events", want: 401},
		{name: "wrong token", path: "api/tools", token: "nobody", want: 401},
		{name: "own approval", method: "POST", path: "api/approvals/" + res.Pending.ID, token: "bob", body: `{"approve":true}`, want: 403},
		{name: "not an approver", method: "POST", path: "api/approvals/" + res.Pending.ID, token: "eve", body: `{"approve":true}`, want: 403},
		{name: "hidden by a policy", path: "api/tools/default/find-orders", token: "eve", want: 404},
		{name: "call what is hidden", method: "POST", path: "api/tools/default/find-orders/call", token: "eve", body: `{"args":{"customer":{"name":"x"}}}`, want: 404},
		{name: "not valid", method: "POST", path: "api/tools/default/pay-invoice/call", token: "ann", body: `{"args":{}}`, want: 422},
		{name: "edited wrongly", method: "POST", path: "api/approvals/" + res.Pending.ID, token: "ann", body: `{"approve":true,"args":{"amount":"x"}}`, want: 422},
		{name: "an approver", method: "POST", path: "api/approvals/" + res.Pending.ID, token: "ann", body: `{"approve":true}`, want: 200},
		{name: "twice", method: "POST", path: "api/approvals/" + res.Pending.ID, token: "ann", body: `{"approve":true}`, want: 409},
		{name: "no such approval", path: "api/approvals/none", token: "ann", want: 404},
		{name: "no such page", path: "nothing", token: "ann", want: 404},
		{name: "OpenAPI", path: "api/openapi.json", want: 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			method := tt.method
			if method == "" {
				method = http.MethodGet
			}
			req, err := http.NewRequest(method, s.url+tt.path, strings.NewReader(tt.body))
			if err != nil {
				t.Fatal(err)
			}
			if tt.token != "" {
				req.Header.Set("Authorization", "Bearer "+tt.token)
			}
			if tt.origin != "" {
				req.Header.Set("Origin", tt.origin)
			}
			req.Host = tt.host
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if res.StatusCode != tt.want {
				t.Errorf("got %d, want %d", res.StatusCode, tt.want)
			}
			if tt.want == 200 || tt.want == 401 {
				for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"} {
					if got := res.Header.Get(name); !strings.HasPrefix(got, want) {
						t.Errorf("%s: %q", name, got)
					}
				}
				if !strings.Contains(res.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
					t.Error("frames are allowed")
				}
			}
		})
	}
}

// TestHostileTexts checks that output of tools and models is shown as text and cannot change the page.
func TestHostileTexts(t *testing.T) {
	long := strings.Repeat("A", 100<<10)
	evil := `<script>alert(1)</script><img src=x onerror=alert(2)><svg onload=alert(3)> "'` + "`" + `}}{{ <!-- ]]> \u202Egnp.exe\u202C \u200B`
	text, _ := json.Marshal(strings.NewReplacer(`\u202E`, "\u202e", `\u202C`, "\u202c", `\u200B`, "\u200b").Replace(evil))
	svg := "PHN2ZyB4bWxucz0iaHR0cDovL3d3dy53My5vcmcvMjAwMC9zdmciPjxzY3JpcHQ+YWxlcnQoNCk8L3NjcmlwdD48L3N2Zz4="
	dir := t.TempDir()
	s := serve(t, "--store", filepath.Join(dir, "s.db"), "-f", write(t, filepath.Join(dir, "evil.yaml"), fmt.Sprintf(`
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: evil, labels: {a: b}}
spec:
  description: %[1]s
  hints: {title: %[1]s}
  input_schema: {type: object, title: %[1]s, description: %[1]s, properties: {%[1]s: {type: string, title: %[1]s, description: %[1]s, examples: [%[1]s], default: %[1]s}, pick: {enum: [%[1]s]}}}
  mock_result: {%[1]s: %[1]s, list: [{%[1]s: %[1]s}], long: %[2]q}
  mock_parts:
  - {type: text, text: %[1]s}
  - {type: image, media: {mime_type: image/svg+xml, data: %[3]q}}
  - {type: image, media: {mime_type: %[1]s, data: aGk=}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: long}
spec: {description: %[2]q, input_schema: {type: object}, mock_result: %[2]q}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: careful}
spec: {require_approval: [long]}
`, text, long, svg)))
	b := open(t)
	b.run(chromedp.Navigate(s.link), see("#results"),
		chromedp.Navigate(s.url+"tools/default/evil"), see("main h1"),
		chromedp.Navigate(s.url+"tools/default/evil/try"), see("#run"), click("#run"), until(`document.getElementById("result-title") !== null`))
	var shown string
	b.run(openAll(), chromedp.Evaluate(`document.querySelector("#outcome .tree").innerText`, &shown))
	if text := shown; !strings.Contains(text, "<script>alert(1)</script>") || !strings.Contains(text, "⟨U+202E⟩") {
		t.Errorf("not as text: %.300s", text)
	}
	for _, path := range []string{"", "tools/default/evil", "tools/default/long", "tools/default/long/try", "activity", "audit"} {
		b.run(chromedp.Navigate(s.url+path), see("main h1"))
		var alien, wide int
		b.run(chromedp.Evaluate(`document.querySelectorAll("main script, main img:not(.part img), main svg:not(.chart svg, .icon), [onerror], [onload]").length`, &alien),
			chromedp.Evaluate(`document.documentElement.scrollWidth - document.documentElement.clientWidth`, &wide))
		if alien != 0 || wide > 0 {
			t.Errorf("%s: %d elements of a text, and the page is %d pixels too wide", path, alien, wide)
		}
	}
	b.run(chromedp.Navigate(s.url+"tools/default/long/try"), see("#run"), click("#run"), until(`document.querySelector("#outcome a") !== null`), click("#outcome a"), see("#args-title"))
}

// TestFiveThousandTools checks that the pages for 5,000 tools are small.
func TestFiveThousandTools(t *testing.T) {
	var b bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&b, "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: tool-%04d, labels: {team: t%d}}\nspec: {description: 'Does thing number %d, which is one of many things that are done. %s', input_schema: {type: object, properties: {a: {type: string}}}, mock_result: {}}\n---\n", i, i%50, i, strings.Repeat("More words on it. ", 20))
	}
	dir := t.TempDir()
	s := serve(t, "-f", write(t, filepath.Join(dir, "many.yaml"), b.String()), "--store", filepath.Join(dir, "s.db"), "--token-file", tokens(t, "ann"))
	for _, path := range []string{"", "?q=number+4999", "?q=things&page=40", "?namespace=default&state=ready"} {
		req, err := http.NewRequest(http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer ann")
		began := time.Now()
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%q: first byte after %s", path, time.Since(began))
		var page bytes.Buffer
		_, _ = page.ReadFrom(res.Body)
		res.Body.Close()
		if res.StatusCode != http.StatusOK || page.Len() > 200<<10 || !strings.Contains(page.String(), "5000") {
			t.Fatalf("%q: %d, %d bytes", path, res.StatusCode, page.Len())
		}
	}
}

// TestBelowAPath checks that all links work behind a proxy below another path.
func TestBelowAPath(t *testing.T) {
	s := shop(t)
	target, err := url.Parse(strings.TrimSuffix(s.url, "/ui/"))
	if err != nil {
		t.Fatal(err)
	}
	for _, keepsHost := range []bool{true, false} {
		t.Run(fmt.Sprintf("keeps the host %t", keepsHost), func(t *testing.T) {
			s := s
			if !keepsHost {
				s = shop(t) // the link works once
				target, _ = url.Parse(strings.TrimSuffix(s.url, "/ui/"))
			}
			proxy := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				if keepsHost {
					r.Out.Host = r.In.Host
				}
			}}
			front := httptest.NewServer(http.StripPrefix("/x/y", proxy))
			t.Cleanup(front.Close)
			b := open(t)
			secret := s.link[strings.Index(s.link, "sign-in"):]
			below := served{url: front.URL + "/x/y/ui/"}
			b.run(chromedp.Navigate(below.url+secret), see("#results"), keys("#q", "orders"), until(`location.search.includes("q=orders") && document.querySelectorAll("#results tbody tr").length === 1`), settled(),
				click("#results tbody th a"), see("#input"), click("a.primary"), see("#run"), settled(), keys(`[name="v:/customer/name"]`, "Ann"), until(`document.getElementById("raw").value.includes("Ann")`), click("#run"), see("#result-title"))
			fill(t, b, below)
			b.run(click(`nav a[href$="approvals"]`), see("#open"), click("#open ~ div a.button"), see("#args-title"), click(`button[value="deny"]`), see("#past ~ div table"),
				click(`nav a[href$="activity"]`), see("#rows tr"), click("#rows a"), see("main dl"), click(`nav a[href$="audit"]`), see("main form button"), click("main form button"), see("p.good"),
				click(`nav a[href$="servers"]`), see("main h1"))
			b.follow(".who button")
			var at string
			b.run(chromedp.Location(&at))
			if at != below.url+"sign-in" {
				t.Errorf("at %s", at)
			}
		})
	}
}

// TestLive checks that each new call appears as a row of the page that is open.
func TestLive(t *testing.T) {
	s, b := shop(t, "--token-file", tokens(t, "ann", "bob"), "--ui-operator", "ann"), open(t)
	b.run(signIn(s, "ann"), chromedp.Navigate(s.url+"activity"), see("#search"))
	b.run(chromedp.Evaluate(`new MutationObserver((all) => { for (const m of all) for (const n of m.addedNodes) (window.seen ||= {})[new URL(n.querySelector("a").href).pathname.split("/").pop()] = Date.now(); }).observe(document.getElementById("rows"), {childList: true})`, nil))
	const calls = 40
	at := map[string]time.Time{}
	for i := range calls {
		code, body := s.api(t, "POST", "tools/default/find-orders/call", "bob", fmt.Sprintf(`{"args":{"customer":{"name":"%d"}}}`, i))
		done := time.Now()
		if code != http.StatusOK {
			t.Fatalf("%d %s", code, body)
		}
		_, list := s.api(t, "GET", "calls?limit=1", "bob", "")
		var last struct {
			Items []struct {
				CallID string `json:"call_id"`
			}
		}
		for len(last.Items) == 0 || !at[last.Items[0].CallID].IsZero() {
			_, list = s.api(t, "GET", "calls?limit=1", "bob", "")
			if err := json.Unmarshal([]byte(list), &last); err != nil {
				t.Fatal(list)
			}
		}
		at[last.Items[0].CallID] = done
	}
	b.run(until(fmt.Sprintf(`Object.keys(window.seen || {}).length >= %d`, calls)))
	var seen map[string]float64
	b.run(chromedp.Evaluate("window.seen", &seen))
	var took []time.Duration
	for id, done := range at {
		took = append(took, time.UnixMilli(int64(seen[id])).Sub(done))
	}
	slices.Sort(took)
	t.Logf("from a call to its row: p50 %s, p95 %s", took[len(took)/2], took[len(took)*95/100])
}

// TestKeyboard checks that everything can be done with the keyboard.
func TestKeyboard(t *testing.T) {
	s, b := shop(t), open(t)
	b.run(chromedp.Navigate(s.link), see("#results"))
	tabTo := func(selector string) {
		t.Helper()
		for range 80 {
			b.run(chromedp.KeyEvent(kb.Tab))
			var there, ringed bool
			b.run(chromedp.Evaluate(fmt.Sprintf(`document.activeElement.matches(%q)`, selector), &there), chromedp.Evaluate(`document.activeElement.matches(":focus-visible")`, &ringed))
			if there {
				if !ringed {
					t.Errorf("%s has the focus, and nothing shows it", selector)
				}
				return
			}
		}
		t.Fatalf("Tab does not lead to %s", selector)
	}
	press := func(k string) { t.Helper(); b.run(chromedp.KeyEvent(k)) }
	tabTo(`#results a[href$="pay-invoice"]`)
	press(kb.Enter)
	b.run(see("#input"))
	tabTo("a.primary")
	press(kb.Enter)
	b.run(see("#run"))
	tabTo(`[name="v:/invoice"]`)
	b.run(chromedp.KeyEvent("INV-9"))
	tabTo(`[name="v:/amount"]`)
	b.run(chromedp.KeyEvent("3"))
	press(kb.Enter) // Enter in a field makes the call
	b.run(see("#result-title"))
	tabTo("#outcome a")
	press(kb.Enter)
	b.run(see("#args-title"))
	tabTo(`button[value="approve"]`)
	press(" ")
	b.run(see("#past ~ div table"))
	if text := b.text("#past ~ div table"); !strings.Contains(text, "approved") {
		t.Error(text)
	}
}

// TestWithoutScript checks that people can read, call and decide without JavaScript.
func TestWithoutScript(t *testing.T) {
	s, b := shop(t), open(t)
	b.run(emulation.SetScriptExecutionDisabled(true), chromedp.Navigate(s.link), see("#results"))
	b.load(keys("#q", "orders"+kb.Enter))
	if text := b.text("#results [role=status]"); !strings.Contains(text, "1 to 1 of 1 found") {
		t.Error(text)
	}
	b.follow("#results tbody th a")
	b.follow("a.primary")
	b.run(keys(`[name="v:/customer/name"]`, "Ann"))
	b.follow(`button[value="open /states"]`)
	b.run(keys(`[name="v:/states/0"]`, "open"))
	b.follow(`button[value="form"]`)
	var raw string
	b.run(within(soon, chromedp.Value("#raw", &raw, chromedp.ByQuery)))
	if !strings.Contains(raw, `"open"`) || !strings.Contains(raw, "Ann") {
		t.Errorf("raw %s", raw)
	}
	b.run(click("#run"), see("#result-title"))
	fill(t, b, s)
	for name, path := range pages {
		b.run(chromedp.Navigate(s.url+path), see("main h1"))
		if text := b.text("main"); len(text) < 20 {
			t.Errorf("%s has no text: %s", name, text)
		}
	}
}
