package lines_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"toolctl.dev/toolctl/internal/lines"
)

// writes counts the writes.
type writes struct {
	strings.Builder
	n   int
	err error
}

func (w *writes) Write(p []byte) (int, error) {
	w.n++
	if w.err != nil {
		return 0, w.err
	}
	return w.Builder.Write(p)
}

func TestLinesAreWrittenTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out writes
		w := lines.New(&out)
		for range 100 {
			_, _ = w.Write([]byte("line\n"))
		}
		if out.n != 0 {
			t.Errorf("%d writes at once", out.n)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if out.n != 1 || out.Len() != 500 {
			t.Errorf("%d writes of %d bytes", out.n, out.Len())
		}
		_, _ = w.Write([]byte(strings.Repeat("x", 64<<10)))
		if out.n != 2 {
			t.Errorf("%d writes: much is not kept", out.n)
		}
		_, _ = w.Write([]byte("last\n"))
		if err := w.Close(); err != nil || !strings.HasSuffix(out.String(), "last\n") {
			t.Errorf("after the end: %v", err)
		}
		_, _ = w.Write([]byte("later\n"))
		if !strings.HasSuffix(out.String(), "later\n") {
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
