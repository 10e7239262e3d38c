package ignore

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// beside finds ** beside something else in its segment.
var beside = regexp.MustCompile(`[^/!]\*\*|\*\*[^/]|.!\*\*`)

// ignored applies one list to a path and the folders above it, as a walk does.
func ignored(l List, p string, dir bool) bool {
	if parent := path.Dir(p); parent != "." && ignored(l, parent, true) {
		return true
	}
	out, _ := l.Match(p, dir)
	return out
}

func TestLikeGit(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("there is no git to compare with")
	}
	repo := t.TempDir()
	git := func(stdin string, args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", repo, "-c", "core.excludesFile=", "-c", "core.ignoreCase=false"}, args...)...)
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.Output()
		var exit *exec.ExitError
		if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != 1) { // 1: none is ignored
			t.Fatalf("git %v: %v", args, err)
		}
		return string(out)
	}
	git("", "init", "-q")
	var paths []string
	isDir := map[string]bool{}
	var grow func(dir string, depth int)
	grow = func(dir string, depth int) {
		for _, name := range []string{"f.x", "ab", ".h", "a b", "]x", "!n"} {
			p := path.Join(dir, name)
			if err := os.WriteFile(filepath.Join(repo, p), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, p)
		}
		for _, name := range []string{"a", "foo", "x.d"} {
			if depth == 3 {
				return
			}
			p := path.Join(dir, name)
			if err := os.Mkdir(filepath.Join(repo, p), 0o700); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, p)
			isDir[p] = true
			grow(p, depth+1)
		}
	}
	grow("", 1)
	piece := rapid.SampledFrom([]string{"a", "b", "foo", "x", "f.x", "ab", "x.d", ".h", "/", "/", "**", "**/", "/**", "*", "?", "!", "\\", " ", "#",
		"[ab]", "[!a]", "[^f]", "[a-f]", "[]x]", "[[:alpha:]]", "[[:nope:]]", "[", "]", "-", "[\\]x]", "[a-]", "[]", "\t"})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(piece, 1, 6).Draw(t, "pieces"), "")
		}), 1, 4).Draw(t, "lines")
		for _, line := range lines {
			if i := strings.IndexByte(line, '['); i >= 0 && strings.Contains(line[i:], "/") {
				t.Skip("a slash after a bracket may stand within it")
			}
			if strings.Contains(line, "/") && beside.MatchString(line) {
				t.Skip("asterisks that are no segment of their own")
			}
		}
		text := strings.Join(lines, rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "end")) + "\n"
		if err := os.WriteFile(filepath.Join(repo, ".gitignore"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, p := range strings.Split(git(strings.Join(paths, "\x00"), "check-ignore", "--no-index", "-z", "--stdin"), "\x00") {
			if p != "" {
				want = append(want, p)
			}
		}
		l := Parse([]byte(text))
		for _, p := range paths {
			if got := ignored(l, p, isDir[p]); got != slices.Contains(want, p) {
				t.Fatalf("%q: %q (folder %v): ignored %v, git says %v", text, p, isDir[p], got, !got)
			}
		}
	})
}

func TestLongPatternsEnd(t *testing.T) {
	l := Parse(bytes.Repeat([]byte(strings.Repeat("*a", 500)+"\n"+strings.Repeat("**/a/", 500)+"\n"), 10))
	if out, _ := l.Match(strings.Repeat("a", 2000)+"b", false); out {
		t.Error("it fits")
	}
	if out, _ := l.Match(strings.Repeat("a/", 1000)+"b", false); out {
		t.Error("it fits")
	}
}

func FuzzMatch(f *testing.F) {
	f.Add("a/**/b\n!c/\n[x", "a/c/b", true)
	f.Fuzz(func(_ *testing.T, list, p string, dir bool) { Parse([]byte(list)).Match(p, dir) })
}
