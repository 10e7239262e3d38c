package fileset

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	for want, names := range map[string][]string{
		"":                                   {"a.yaml", "b/a.yaml", "b/c/ä.yaml", "com.yaml", "com10", "lpt.json", "auxiliary.yaml", "a b.yaml", "b/README"},
		"is not a path within the folder":    {"", ".", "..", "/a", "a//b", "a/../b", "./a", "a/", "\xff"},
		"not portable":                       {`a\b`, "C:a", "a\x00", "a\nb", "a?", "a*", "<a>", "a|b", `"a"`, ".\u200cgit/config", "\u200c.git/config"},
		"begins with a dot":                  {".git/config", "a/.git/hooks/post-checkout", ".envrc", "a/...", ".a"},
		"ends with a dot or a space":         {"a.", "a ", "b./c", "git ./x"},
		"is a device on Windows":             {"nul", "NUL.yaml", "a/Con/b", "com1.yaml", "LPT9", "lpt³.x", "aux .yaml", "conin$"},
		"is longer than 1024 bytes":          {strings.Repeat("abc/", 260) + "a"},
		"has more than 32 elements":          {strings.Repeat("a/", 32) + "a"},
		"an element that is longer than 255": {strings.Repeat("a", 256)},
	} {
		for _, name := range names {
			err := Check([]string{name})
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%q: got %v, want %s", name, err, want)
			}
		}
	}
	for want, names := range map[string][]string{
		`"a" occurs twice`: {"a", "a"},
		`"A" and "a" are the same name on systems that ignore case or Unicode forms`:                      {"A", "a"},
		`"A" and "a" are the same name on systems`:                                                        {"A/b", "a/c"},
		"\"caf\u00e9\" and \"cafe\u0301\" are the same name on systems that ignore case or Unicode forms": {"caf\u00e9", "cafe\u0301"},
		"\"CAFE\u0301/x\" and \"caf\u00e9/x\" are the same name":                                          {"CAFE\u0301/x", "caf\u00e9/x"},
		`"stra\u00dfe" and "STRASSE" are the same name`:                                                   {"stra\u00dfe", "STRASSE"},
		`"a" is both a file and a folder`:                                                                 {"a", "a/b.yaml"},
		`"b" is both a file and a folder`:                                                                 {"b/c/d.yaml", "b"},
		"\".x\" has an element that begins with a dot\n\"y \" has an":                                     {".x", "a", "y "},
	} {
		if err := Check(names); err == nil || !strings.Contains(err.Error(), strings.ReplaceAll(want, `\u00df`, "\u00df")) {
			t.Errorf("%q: got %v, want %s", names, err, want)
		}
	}
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf(".%d", i))
	}
	if err := Check(many); err == nil || strings.Count(err.Error(), "\n") != 20 || !strings.HasSuffix(err.Error(), "\nand 80 more") {
		t.Errorf("got %v", err)
	}
}

func TestWrite(t *testing.T) {
	tmp := t.TempDir()
	files := map[string][]byte{"a.yaml": []byte("1"), "b/c.yaml": []byte("2")}
	empty := filepath.Join(tmp, "empty")
	if err := os.Mkdir(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir(empty)
	for _, dir := range []string{filepath.Join(tmp, "x", "y", "new") + "/", "."} {
		if err := Write(dir, files); err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			if got, err := os.ReadFile(filepath.Join(dir, name)); string(got) != string(want) {
				t.Errorf("%s in %s: got %q, %v", name, dir, got, err)
			}
		}
		for _, at := range []string{dir, filepath.Dir(filepath.Clean(dir))} {
			if left, _ := filepath.Glob(filepath.Join(at, ".toolctl-*")); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		}
		if info, err := os.Stat(filepath.Join(dir, "b")); err != nil || info.Mode().Perm()&0o055 == 0 {
			t.Errorf("others cannot read %s: %v, %v", dir, info.Mode(), err)
		}
	}
	if err := Write(".", files); err == nil || err.Error() != ". is not empty" {
		t.Errorf("got %v", err)
	}
	if err := Write(filepath.Join(tmp, "none"), map[string][]byte{"a": nil, "a/b": nil}); err == nil {
		t.Error("a file that is a folder is written")
	}
	if _, err := os.Stat(filepath.Join(tmp, "none")); err == nil {
		t.Error("a part of it is written")
	}
}

// What cannot be moved whole is not moved: somebody else may write into the folder meanwhile.
func TestMoveIsWhole(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	for _, file := range []string{filepath.Join(from, "a"), filepath.Join(from, "b"), filepath.Join(to, "b")} {
		if err := os.WriteFile(file, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := move(from, to); err == nil {
		t.Error("a file is written over")
	}
	if entries, err := os.ReadDir(to); err != nil || len(entries) != 1 || entries[0].Name() != "b" {
		t.Errorf("got %v, %v", entries, err)
	}
}

func TestReplace(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.json")
	for _, text := range []string{"old", "new"} {
		if err := Replace(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		got, err2 := os.ReadFile(file)
		if err != nil || err2 != nil || string(got) != text || runtime.GOOS != "windows" && info.Mode() != 0o600 {
			t.Errorf("got %q with mode %s, %v, %v, want %q with mode 600", got, info.Mode(), err, err2, text)
		}
	}
	taken := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(taken, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Replace(taken, []byte("text"), 0o600); err == nil {
		t.Error("a folder was replaced")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 2 {
		t.Errorf("the folder has %v, %v, want the file and the folder", left, err)
	}
}
