package seal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const one, two = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff", "FFeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

func mustRead(t *testing.T, text string) *Keys {
	t.Helper()
	k, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestRotation(t *testing.T) {
	old, first, second, last := mustRead(t, one), mustRead(t, one+"\n"+two+"\n"), mustRead(t, "\n "+two+" \r\n"+one), mustRead(t, two)
	for _, step := range []struct{ before, after *Keys }{{old, first}, {first, second}, {second, last}} {
		for _, pair := range [][2]*Keys{{step.before, step.after}, {step.after, step.before}} {
			if plain, ok := pair[1].Open("p", pair[0].Seal("p", []byte("text"))); !ok || string(plain) != "text" {
				t.Errorf("what one sealed the other does not open")
			}
		}
	}
	if _, ok := last.Open("p", old.Seal("p", nil)); ok {
		t.Error("a key that is gone opens")
	}
	k := mustRead(t, one)
	k.Set(last)
	if !k.Equal(last) || k.Equal(old) || first.Equal(second) || first.Equal(old) {
		t.Error("Set and Equal")
	}
}

func TestForged(t *testing.T) {
	k := mustRead(t, one)
	text := k.Seal("p", []byte("some text"))
	if text == k.Seal("p", []byte("some text")) {
		t.Error("two texts are equal")
	}
	for i := range text {
		other := byte('A')
		if text[i] == other {
			other = 'B'
		}
		if _, ok := k.Open("p", text[:i]+string(other)+text[i+1:]); ok {
			t.Errorf("altered at %d it opens", i)
		}
		if _, ok := k.Open("p", text[:i]); ok {
			t.Errorf("cut at %d it opens", i)
		}
	}
	for _, text := range []string{"", "x", text + "A", text + "=", strings.Repeat("A", maxText+1), Random().Seal("p", nil)} {
		if _, ok := k.Open("p", text); ok {
			t.Errorf("%.50q opens", text)
		}
	}
	if _, ok := k.Open("q", text); ok {
		t.Error("it opens for another purpose")
	}
}

func TestReadErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "got 0 lines"},
		{one[:63], "line 1: got 63 characters"},
		{one + "\n" + two + "\n" + one, "got 3 lines"},
		{one + "\n" + strings.Repeat("x", 64), "line 2: got other characters"},
		{strings.Repeat("0", 64), "a key of zeros"},
		{strings.Repeat("\n", 5000), "more than 4096 bytes"},
	} {
		_, err := Read(strings.NewReader(tt.text))
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "openssl rand -hex 32") || strings.Contains(err.Error(), one[:20]) {
			t.Errorf("%.30q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if _, err := ReadFile(path); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, []byte(one), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[os.FileMode]bool{0o400: false, 0o600: false, 0o440: false, 0o640: false, 0o644: true, 0o604: true, 0o620: true, 0o602: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := ReadFile(path)
		if (err != nil) != refused || refused && !strings.Contains(err.Error(), "run: chmod g-w,o-rwx "+path) {
			t.Errorf("%o: %v", mode, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	k, err := Read(strings.NewReader(one + "\n" + two))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(k.Seal("p", []byte("x")))
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		if _, ok := k.Open("another", text); ok {
			t.Error("it opens")
		}
	})
}
