//go:build unix

package gateway_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/gateway"
)

// Anyone who can write the file of tokens can add their own token.
func TestTokenFileThatOthersCanWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	line := "ann:" + strings.Repeat("0", 64) + "\n"
	if err := os.WriteFile(path, []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o644: false, 0o664: true, 0o606: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := gateway.ReadTokens(path)
		if refused != (err != nil) || refused && !strings.Contains(err.Error(), "other users can write the file: run: chmod go-w ") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
}
