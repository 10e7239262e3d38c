//go:build unix

package manifest

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Files that cannot be read are violations of theirs and stop no other.
func TestLoadUnreadable(t *testing.T) {
	write(t, map[string]string{"d/a.yaml": named("a"), "d/big.yaml": strings.Repeat("#", 2000), "secret.yaml": named("secret")})
	for link, target := range map[string]string{"d/leaves.yaml": "../secret.yaml", "d/stays.yaml": "a.yaml", "d/dangling.yaml": "none.yaml"} {
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo("d/pipe.yaml", 0o644); err != nil {
		t.Fatal(err)
	}
	set, err := Load(t.Context(), []string{"d"}, Options{MaxFileBytes: 1000})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"d/a.yaml:1:1: metadata.name: Tool default/a is declared twice: here and at d/stays.yaml:1:1",
		"d/big.yaml: the file is larger than 1000 bytes",
		"d/dangling.yaml: the file does not exist, or is a broken symlink",
		"d/leaves.yaml: the file is a symlink that leaves the folder that was given",
		"d/pipe.yaml: the file is not a regular file",
		"d/stays.yaml:1:1: metadata.name: Tool default/a is declared twice: here and at d/a.yaml:1:1",
	}
	if diff := cmp.Diff(want, violationStrings(set.Violations)); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
}
