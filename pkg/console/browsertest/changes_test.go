package browsertest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// TestPrompts checks that a form renders a prompt from its variables, and that the page shows the last test.
func TestPrompts(t *testing.T) {
	s, b := applied(t), open(t)
	b.run(chromedp.Navigate(s.link), see("#results"), click(`nav a[href$="prompts"]`), see("#tests-title"))
	if text := b.text("main"); !strings.Contains(text, "1 failed") || !strings.Contains(text, "1 passed") || !strings.Contains(text, "expected failed") || !strings.Contains(text, "Coverage:") {
		t.Error(text)
	}
	b.run(click(`a[href$="remind"]`), see("#run"), click("#run"), see(".field.wrong"))
	b.run(keys(`[name="v:/customer"]`, "Ann"), keys(`[name="v:/tone"]`, "firm"), click(`button[value="open /invoices"]`),
		see(`[name="v:/invoices/0"]`), keys(`[name="v:/invoices/0"]`, "INV-7"),
		until(`document.getElementById("raw").value.includes('"INV-7"')`), click("#run"), see("#result-title"))
	if text := b.text("#outcome"); !strings.Contains(text, "in a firm tone") || !strings.Contains(text, "Remind Ann of INV-7") {
		t.Error(text)
	}
}

// TestUndo checks that an operator sees the changes of a revision and can restore it with one confirmation, also
// without JavaScript.
func TestUndo(t *testing.T) {
	for _, script := range []bool{true, false} {
		t.Run(fmt.Sprintf("JavaScript %t", script), func(t *testing.T) {
			s, b := applied(t, "--watch", "--token-file", tokens(t, "ann", "bob"), "--ui-operator", "ann"), open(t)
			if !script {
				b.run(emulation.SetScriptExecutionDisabled(true))
			}
			b.run(signIn(s, "ann"))
			b.follow(`nav a[href$="changes"]`)
			b.follow(`a[href*="revision=2"]`)
			if text := b.text("main"); !strings.Contains(text, "breaking") || !strings.Contains(text, "Witness") {
				t.Error(text)
			}
			b.follow(".crumbs a")
			b.follow(`a[href*="undo?"][href*="revision=1"]`)
			if text := b.text("main"); !strings.Contains(text, "from revision 3") {
				t.Error(text)
			}
			b.follow("button.danger")
			if text := b.text("main table"); !strings.Contains(text, "rollout undo to revision 1") || !strings.Contains(text, "ann") {
				t.Error(text)
			}
			b.follow(".who button")
			b.run(signIn(s, "bob"))
			b.follow(`nav a[href$="changes"]`)
			if text := b.text("main"); strings.Contains(text, "Go back") || !strings.Contains(text, "Only console operators") {
				t.Error(text)
			}
		})
	}
}

// TestSource checks that the page of a repository shows the served commit, and the changes in the newest commit.
func TestSource(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	commit := func(text string) {
		t.Helper()
		write(t, filepath.Join(dir, "shop.yaml"), text)
		git("add", "-A")
		git("commit", "-qm", "next")
	}
	git("init", "-q", "-b", "main")
	commit(shopManifests)
	s, b := serve(t, "--source", "git+file://"+dir, "--interval", "1h"), open(t)
	b.run(chromedp.Navigate(s.link), see("#results"), click(`nav a[href$="changes"]`), see("#source-title"))
	if text := b.text("main"); !strings.Contains(text, "git+file://") || !strings.Contains(text, " since ") {
		t.Error(text)
	}
	commit(strings.Replace(shopManifests, "maximum: 100", "maximum: 50", 1))
	b.run(click(`a[href$="changes/pending"]`), see(".card"))
	if text := b.text("main"); !strings.Contains(text, "breaking") || !strings.Contains(text, "find-orders") || !strings.Contains(text, `"limit"`) {
		t.Error(text)
	}
	b.run(click(`nav a[href="../"]`), see("#results"), click(`a[href$="find-orders"]`), see("#source"))
	if text := b.text("main"); !strings.Contains(text, "shop.yaml:") || !strings.Contains(text, "Commit") {
		t.Error(text)
	}
}

// TestCopiesWork checks that the copied forms of a call work where they belong.
func TestCopiesWork(t *testing.T) {
	dir := t.TempDir()
	file := write(t, filepath.Join(dir, "shop.yaml"), shopManifests)
	db := filepath.Join(dir, "state.db")
	s, b := serve(t, "-f", file, "--store", db), open(t)
	var copies []string
	b.run(chromedp.Navigate(s.link), see("#results"), chromedp.Navigate(s.url+"tools/default/find-orders/try"), see("#run"), keys(`[name="v:/customer/name"]`, "O'Hara & $HOME"), click("#run"), see("#copy-title"),
		chromedp.Evaluate(`[...document.querySelectorAll("#copy-title ~ details pre")].map((p) => p.textContent)`, &copies))
	if len(copies) != 5 {
		t.Fatalf("%d copies", len(copies))
	}
	shell := func(script string) string {
		t.Helper()
		cmd := exec.Command("sh", "-c", script)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(program)+":"+os.Getenv("PATH"), "TOOLCTL_STORE="+db)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", script, err, out)
		}
		return string(out)
	}
	toolctl(t, dir, 0, "apply", "-f", "shop.yaml", "--store", db)
	if out := shell(copies[0]); !strings.Contains(out, "A-1") {
		t.Errorf("toolctl call: %s", out)
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Log("there is no curl: its copy is not tried")
	} else if out := shell(copies[1] + " -sf"); !strings.Contains(out, "A-1") {
		t.Errorf("curl: %s", out)
	}
	// The example goes into its manifest, the scenario beside it, and the cassette replaces a mock.
	var indented strings.Builder
	for line := range strings.Lines(copies[2]) {
		indented.WriteString("  " + line)
	}
	withExample := strings.Replace(shopManifests, "  mock_result: {orders:", indented.String()+"  mock_result: {orders:", 1)
	for _, tt := range []struct{ name, manifests, more string }{
		{"example", withExample, ""},
		{"scenario", shopManifests, copies[3]},
		{"cassette", strings.Replace(shopManifests, "  mock_result: {orders:", "  http: {url: https://api.example.com}\n  # ", 1),
			strings.Replace(copies[3], "spec:\n", "spec:\n  mocks: {find-orders: {cassette: c.yaml}}\n", 1)},
	} {
		sub := filepath.Join(dir, tt.name)
		if err := os.Mkdir(sub, 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(sub, "shop.yaml"), strings.Split(tt.manifests, "---\napiVersion: toolctl.dev/v1\nkind: Scenario")[0])
		write(t, filepath.Join(sub, "c.yaml"), copies[4])
		if tt.more != "" {
			write(t, filepath.Join(sub, "scenario.yaml"), tt.more)
		}
		toolctl(t, sub, 0, "validate", ".")
		if tt.more == "" {
			if out := toolctl(t, sub, 1, "verify", "-f", "."); !strings.Contains(out, "PASS  find-orders  1 of 1 checks") { // verify fails because the example of another tool waits for approval
				t.Errorf("%s: %s", tt.name, out)
			}
			continue
		}
		if out := toolctl(t, sub, 0, "test", "."); !strings.Contains(out, "1 passed, 0 failed") {
			t.Errorf("%s: %s", tt.name, out)
		}
	}
}
