package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestInitializationIsSmall checks that packages initialize quickly, because every command waits for that. Slow work,
// such as compiling long expressions, must happen at the first use.
func TestInitializationIsSmall(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector takes memory of its own: the limit is checked without it")
	}
	const most = 80 << 10
	cmd := again(t, "toolctl", "version")
	cmd.Env = append(cmd.Environ(), "GODEBUG=inittrace=1")
	var trace strings.Builder
	cmd.Stderr = &trace
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, m := range regexp.MustCompile(`(?m)^init (toolctl\.dev/\S+) @.*, (\d+) bytes,`).FindAllStringSubmatch(trace.String(), -1) {
		if strings.HasSuffix(m[1], "/cmd/toolctl") { // the tests themselves
			continue
		}
		seen++
		if n, err := strconv.Atoi(m[2]); err != nil || n > most {
			t.Errorf("the initialization of %s allocates %s bytes, more than %d: do it when it is needed (sync.OnceValue)", m[1], m[2], most)
		}
	}
	if seen < 10 {
		t.Errorf("%d packages in the trace:\n%.500s", seen, trace.String())
	}
}
