package response

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
)

// The data of an event stays unchanged while the stream is read further.
func TestEventsOfAllSizes(t *testing.T) {
	var in strings.Builder
	var want []string
	for _, sizes := range [][]int{{10}, {40 << 10}, {300 << 10}, {5}, {1 << 20}, {700 << 10, 20}, {20, 700 << 10}, {200 << 10}, {1}} {
		var lines []string
		for i, n := range sizes {
			line := strings.Repeat(string(rune('a'+(len(want)+i)%26)), n)
			in.WriteString("data: " + line + "\n")
			lines = append(lines, line)
		}
		in.WriteString("id: 1\n\n")
		want = append(want, strings.Join(lines, "\n"))
	}
	for name, body := range map[string]io.Reader{
		"at once": strings.NewReader(in.String()),
		"halves":  iotest.HalfReader(strings.NewReader(in.String())),
	} {
		e := NewEvents(body, nil)
		var got [][]byte
		for {
			ev, err := e.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(name, ": ", err)
			}
			got = append(got, ev.Data)
		}
		other := NewEvents(strings.NewReader("data: "+strings.Repeat("#", 1<<20)+"\n\n"), nil)
		if _, err := other.Next(); err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d events, want %d", name, len(got), len(want))
		}
		for i := range got {
			if string(got[i]) != want[i] {
				t.Errorf("%s: event %d of %d bytes: got %d bytes that begin with %.20q", name, i, len(want[i]), len(got[i]), got[i])
			}
		}
	}
}

// A large event is allocated about twice while it grows, and is not copied again.
func TestLargeEventIsNotCopied(t *testing.T) {
	in := []byte("data: " + strings.Repeat("x", 3<<19) + "\n\n")
	read := func() {
		e := NewEvents(bytes.NewReader(in), nil)
		if ev, err := e.Next(); err != nil || len(ev.Data) != 3<<19 {
			t.Fatalf("%d bytes, %v", len(ev.Data), err)
		}
	}
	read()
	var before, after runtime.MemStats
	const n = 20
	runtime.ReadMemStats(&before)
	for range n {
		read()
	}
	runtime.ReadMemStats(&after)
	// Doubling allocates less than four times the final size; the rest allows for other goroutines.
	if each := float64(after.TotalAlloc-before.TotalAlloc) / n / float64(len(in)); each > 4.5 {
		t.Errorf("%.1f bytes are allocated for each of an event", each)
	}
}
