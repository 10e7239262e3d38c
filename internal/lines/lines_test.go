package lines_test

import (
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"toolctl.dev/toolctl/internal/lines"
)

// writes counts the writes.
type writes struct {
	mu   sync.Mutex
	text strings.Builder
	n    int
	err  error
}

func (w *writes) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n++
	if w.err != nil {
		return 0, w.err
	}
	return w.text.Write(p)
}

func (w *writes) seen() (n int, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n, w.text.String()
}

func TestLinesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out writes
		w := lines.New(&out)
		for range 100 {
			_, _ = w.Write([]byte("line\n"))
		}
		if n, _ := out.seen(); n != 0 {
			t.Errorf("%d writes at once", n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if n, text := out.seen(); n != 1 || len(text) != 500 {
			t.Errorf("%d writes of %d bytes", n, len(text))
		}
		_, _ = w.Write([]byte(strings.Repeat("x", 64<<10)))
		if n, _ := out.seen(); n != 2 {
			t.Errorf("%d writes: much is not kept", n)
		}
		_, _ = w.Write([]byte("last\n"))
		err := w.Close()
		if _, text := out.seen(); err != nil || !strings.HasSuffix(text, "last\n") {
			t.Errorf("after the end: %v", err)
		}
		_, _ = w.Write([]byte("later\n"))
		if _, text := out.seen(); !strings.HasSuffix(text, "later\n") {
			t.Error("a line after the end is lost")
		}
	})
}

func TestErrorsAreTold(t *testing.T) {
	out := writes{err: errors.New("full")}
	w := lines.New(&out)
	_, _ = w.Write([]byte("a\n"))
	if err := w.Close(); err == nil {
		t.Error("no error")
	}
}
