package main

import (
	"bytes"
	"io"
	"strings"
	"syscall"
	"testing"

	"toolctl.dev/toolctl/internal/clip"
)

// failing is a stdout whose writes fail.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

func TestOutputThatIsLost(t *testing.T) {
	t.Setenv("CITIES_TOKEN", "x") // otherwise validate warns that it is not set
	commands := [][]string{
		{"validate", "../../manifests"},
		{"validate", "../../manifests", "-o", "json"},
		{"list", "-f", "../../manifests"},
		{"list", "-f", "../../manifests", "-o", "name"},
		{"call", "-f", "../../manifests", "get-weather", "-a", "location=Oslo"},
		{"describe", "-f", "../../manifests", "tool/get-weather"},
		{"apply", "-f", "../../manifests/weather.yaml", "--store", ":memory:"},
		{"explain", "tool"},
		{"completion", "bash"},
		{"version"},
		{"--help"},
	}
	for _, tt := range []struct {
		name, want string
		err        error
	}{
		{"a full disk", "error: the output could not be written: no space left on device\n", syscall.ENOSPC},
		{"a closed pipe", "", syscall.EPIPE},
	} {
		for _, args := range commands {
			t.Run(tt.name+"/"+strings.Join(args, " "), func(t *testing.T) {
				var stderr bytes.Buffer
				code := run(t.Context(), args, strings.NewReader(""), failing{tt.err}, &stderr)
				if code != exitFailed || stderr.String() != tt.want {
					t.Errorf("exit %d, %q; want %d, %q", code, stderr.String(), exitFailed, tt.want)
				}
			})
		}
	}
	if code := run(t.Context(), []string{"version"}, strings.NewReader(""), io.Discard, io.Discard); code != exitOK {
		t.Errorf("exit %d", code)
	}
}

func TestOneLine(t *testing.T) {
	painted := paintOf(red) + "failed" + paintEnd
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "Grüße", "Grüße"},
		{"line breaks", "a\r\nb\tc", "a  b c"},
		{"our own paint", painted, painted},
		{"paint of another", "a \x1b[31mfailed\x1b[0m", "a [31mfailed[0m"},
		{"begins with an escape sequence", "\x1b[2J\x1b]0;title\a gone", "[2J]0;title gone"},
		{"what stands in the paint", paintOf(green) + "a\x1b[2J\nb" + paintEnd, paintOf(green) + "a[2J b" + paintEnd},
		{"turned around", "a\u202eb\u2066c", "abc"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := clip.Line(tt.in); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}
