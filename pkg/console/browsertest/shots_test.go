package browsertest

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestScreenshots takes a screenshot of each page, light and dark, on a phone and a desktop, into the folder
// TOOLCTL_SCREENSHOTS, for a person to check.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("TOOLCTL_SCREENSHOTS")
	if dir == "" {
		t.Skip("TOOLCTL_SCREENSHOTS names no folder")
	}
	s := applied(t)
	b := open(t)
	b.run(chromedp.Navigate(s.link), see("#results"))
	fill(t, b, s)
	// The screenshot for README.md is a form with the result of a call.
	var readme []byte
	b.run(chromedp.EmulateViewport(1280, 900), dark(false), chromedp.Navigate(s.url+"tools/default/find-orders/try"), see("#run"), keys(`[name="v:/customer/name"]`, "Ann"),
		until(`document.getElementById("raw").value.includes("Ann")`), click("#run"), see("#result-title"), chromedp.CaptureScreenshot(&readme))
	if err := os.WriteFile(filepath.Join(dir, "console.png"), readme, 0o600); err != nil {
		t.Fatal(err)
	}
	all := maps.Clone(pages)
	maps.Copy(all, morePages)
	for name, path := range all {
		for _, size := range []struct {
			name string
			w, h int64
		}{{"phone", 390, 844}, {"desktop", 1280, 900}} {
			for _, scheme := range []string{"light", "dark"} {
				var png []byte
				b.run(chromedp.EmulateViewport(size.w, size.h), dark(scheme == "dark"), chromedp.Navigate(s.url+path), see("main h1"), chromedp.FullScreenshot(&png, 100))
				file := filepath.Join(dir, fmt.Sprintf("%s-%s-%s.png", name, size.name, scheme))
				if err := os.WriteFile(file, png, 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}
