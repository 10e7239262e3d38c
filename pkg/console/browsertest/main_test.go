package browsertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// program is the path of the toolctl that the tests start, and chromium the path of the browser.
var program, chromium string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	for _, name := range []string{os.Getenv("TOOLCTL_CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			chromium = path
			break
		}
	}
	if chromium == "" {
		return m.Run() // every test skips
	}
	http.DefaultTransport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".localhost") { // resolve names as browsers do
			address = net.JoinHostPort("127.0.0.1", port)
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	dir, err := os.MkdirTemp("", "toolctl-console")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if program = os.Getenv("TOOLCTL_PROGRAM"); program == "" {
		program = filepath.Join(dir, "toolctl")
		build := exec.Command("go", "build", "-o", program, "./cmd/toolctl")
		build.Dir = "../../.."
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v: %s", err, out)
			return 1
		}
	}
	return m.Run()
}

// served is a running "toolctl serve --ui".
type served struct {
	url  string // address of the console, with a slash at the end
	link string // link with which the person at this machine signs in; equal to url with tokens
}

// serve runs toolctl serve --ui until the test ends.
func serve(t *testing.T, args ...string) served {
	t.Helper()
	if chromium == "" {
		t.Skip("there is no Chromium: install Debian's chromium, or name one with TOOLCTL_CHROMIUM")
	}
	cmd := exec.Command(program, append([]string{"serve", "--http", "127.0.0.1:0", "--ui", "--access-log", "none"}, args...)...)
	cmd.Dir = t.TempDir()
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	found := make(chan string, 1)
	ended := make(chan string)
	go func() {
		var all strings.Builder
		for lines := bufio.NewScanner(log); lines.Scan(); {
			fmt.Fprintln(&all, lines.Text())
			var line struct{ Msg, URL string }
			if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "the console" {
				found <- line.URL
			}
		}
		ended <- all.String()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		text := <-ended
		if err := cmd.Wait(); err != nil && t.Failed() {
			t.Logf("toolctl: %v\n%s", err, text)
		}
	})
	select {
	case link := <-found:
		url, _, _ := strings.Cut(link, "sign-in")
		return served{url, link}
	case text := <-ended:
		go func() { ended <- text }()
		t.Fatalf("toolctl did not serve:\n%s", text)
		return served{}
	}
}

// api sends a request to the JSON API with a token.
func (s served) api(t *testing.T, method, path, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequest(method, s.url+"api/"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(raw)
}

// browser is a tab of a Chromium. It records violations of the content security policy.
type browser struct {
	t   *testing.T
	ctx context.Context
	mu  sync.Mutex
	bad []string
}

// open starts a Chromium until the test ends. At the end, it fails the test if the content security policy was
// violated or a script failed.
func open(t *testing.T, more ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	if chromium == "" {
		t.Skip("there is no Chromium: install Debian's chromium, or name one with TOOLCTL_CHROMIUM")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.NoSandbox, chromedp.WSURLReadTimeout(time.Minute), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WindowSize(1280, 900))
	alloc, stopAlloc := chromedp.NewExecAllocator(context.Background(), append(options, more...)...)
	ctx, stop := chromedp.NewContext(alloc)
	ctx, stopTime := context.WithTimeout(ctx, 3*time.Minute)
	b := &browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx)
		stopTime()
		stop()
		stopAlloc()
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.bad) > 0 {
			t.Errorf("the browser complained:\n%s", strings.Join(b.bad, "\n"))
		}
	})
	chromedp.ListenTarget(ctx, func(e any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := e.(type) {
		case *log.EventEntryAdded:
			if string(e.Entry.Source) == "security" || strings.Contains(e.Entry.Text, "Content Security Policy") {
				b.bad = append(b.bad, e.Entry.Text)
			}
		case *runtime.EventExceptionThrown:
			b.bad = append(b.bad, e.ExceptionDetails.Text+" "+e.ExceptionDetails.Exception.Description)
		case *runtime.EventConsoleAPICalled:
			if e.Type == runtime.APITypeError {
				b.bad = append(b.bad, fmt.Sprint("console.error: ", string(e.Args[0].Value)))
			}
		case *page.EventJavascriptDialogOpening:
			b.bad = append(b.bad, "a dialog: "+e.Message)
			go func() { _ = chromedp.Run(ctx, page.HandleJavaScriptDialog(true)) }()
		}
	})
	b.run(log.Enable(), runtime.Enable())
	return b
}

func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	if err := chromedp.Run(b.ctx, actions...); err != nil {
		var text, at string
		within, stop := context.WithTimeout(b.ctx, 5*time.Second)
		defer stop()
		_ = chromedp.Run(within, chromedp.Location(&at), chromedp.Text("body", &text))
		b.t.Fatalf("%v, at %s:\n%s", err, at, text)
	}
}

// within limits the time of actions.
func within(d time.Duration, actions ...chromedp.Action) chromedp.Action {
	return chromedp.ActionFunc(func(ctx context.Context) error {
		ctx, stop := context.WithTimeout(ctx, d)
		defer stop()
		for {
			err := chromedp.Tasks(actions).Do(ctx)
			var gone *cdproto.Error // the page was replaced after the element was found and before it was used
			if !errors.As(err, &gone) || gone.Code != -32000 {
				return err
			}
		}
	})
}

// load runs actions that open another page, and waits for that page.
func (b *browser) load(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, stop := context.WithTimeout(b.ctx, soon)
	defer stop()
	if _, err := chromedp.RunResponse(ctx, actions...); err != nil {
		b.t.Fatalf("the next page: %v", err)
	}
}

// follow clicks on an element that opens another page, and waits for that page.
func (b *browser) follow(selector string) {
	b.t.Helper()
	b.load(click(selector))
}

// settled waits until no part of the page is being replaced.
func settled() chromedp.Action {
	return until(`document.readyState === "complete" && !document.querySelector(".htmx-request, .htmx-swapping, .htmx-settling, .htmx-added")`)
}

// soon is the time limit for a page on a busy machine.
const soon = 20 * time.Second

// see waits until an element exists.
func see(selector string) chromedp.Action {
	return within(soon, chromedp.WaitVisible(selector, chromedp.ByQuery))
}

func click(selector string) chromedp.Action {
	return within(soon, chromedp.Click(selector, chromedp.ByQuery, chromedp.NodeVisible))
}

func keys(selector, text string) chromedp.Action {
	return within(soon, chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// emptied deletes the text of a field with the keyboard.
func emptied(selector string) chromedp.Action {
	return within(soon, chromedp.Focus(selector, chromedp.ByQuery), chromedp.KeyEvent("a", chromedp.KeyModifiers(input.ModifierCtrl)), chromedp.KeyEvent(kb.Delete))
}

// openAll opens all collapsed parts of a page.
func openAll() chromedp.Action {
	return chromedp.Evaluate(`document.querySelectorAll("main details").forEach((d) => { d.open = true })`, nil)
}

// text returns the text of an element.
func (b *browser) text(selector string) string {
	b.t.Helper()
	var s string
	b.run(within(soon, chromedp.Text(selector, &s, chromedp.ByQuery)))
	return s
}

// until waits until a JavaScript expression without side effects is true.
func until(expression string) chromedp.Action {
	return within(soon, chromedp.ActionFunc(func(ctx context.Context) error {
		for {
			var is bool
			if err := chromedp.Evaluate("!!("+expression+")", &is).Do(ctx); err == nil && is { // an error means that the page is being loaded
				return nil
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("until %s: %w", expression, ctx.Err())
			case <-time.After(20 * time.Millisecond):
			}
		}
	}))
}

func dark(on bool) chromedp.Action {
	value := "light"
	if on {
		value = "dark"
	}
	return emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: value}})
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
