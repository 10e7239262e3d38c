package console

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestAssets checks that assets.tar.gz has the content of the files. UPDATE_ASSETS=1 creates it again.
func TestAssets(t *testing.T) {
	names := []string{"openapi.json"}
	for _, pattern := range []string{"templates/*.html", "static/*"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, found...)
	}
	slices.Sort(names)
	want := map[string][]byte{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want[filepath.ToSlash(name)] = text
	}
	if os.Getenv("UPDATE_ASSETS") != "" {
		if err := os.WriteFile("assets.tar.gz", pack(t, names, want), 0o644); err != nil {
			t.Fatal(err)
		}
		return // the test binary embeds the old archive
	}
	got, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("assets.tar.gz holds %s, which is not there", name)
		}
	}
	for name, text := range want {
		if !bytes.Equal(got[name], text) {
			t.Errorf("assets.tar.gz holds another %s: UPDATE_ASSETS=1 go test ./pkg/console -run TestAssets", name)
		}
	}
}

// pack returns an archive that depends only on the files.
func pack(t *testing.T, names []string, files map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	w := tar.NewWriter(z)
	for _, name := range names {
		text := files[filepath.ToSlash(name)]
		if err := w.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
