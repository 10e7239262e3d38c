package source_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"toolctl.dev/toolctl/pkg/source"
)

// sshKey creates a key and returns its file and its line for allowed signers.
func sshKey(t *testing.T, who string) (file, allowed string) {
	t.Helper()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("ssh-keygen is not installed")
	}
	file = filepath.Join(t.TempDir(), who)
	if out, err := exec.CommandContext(t.Context(), "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", who, "-f", file).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	public, err := os.ReadFile(file + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	return file, who + " " + string(public)
}

func TestRequireSignedBySSH(t *testing.T) {
	r := newRepository(t)
	mine, allowed := sshKey(t, "me@example.com")
	other, _ := sshKey(t, "other@example.com")
	keys := filepath.Join(t.TempDir(), "signers")
	write(t, keys, "# who may\n"+allowed)
	sign := func(key string) []string {
		r.git(t, r.work, "config", "gpg.format", "ssh")
		r.git(t, r.work, "config", "user.signingKey", key)
		return []string{"-S"}
	}
	r.write(t, "a.yaml", tool("a"))
	signed := r.push(t, sign(mine)...)
	remote := open(t, r.at("?ref=main"), source.RepositoryOptions{RequireSigned: keys}, source.RemoteOptions{})
	if set, err := remote.Load(t.Context()); err != nil || names(set) != "a" {
		t.Fatalf("got %v, %v", set, err)
	}
	refused := func(what, commit string) {
		t.Helper()
		_, err := remote.Load(t.Context())
		if err == nil || !strings.Contains(err.Error(), "commit "+commit+": the commit is not signed by one of the keys in "+keys) {
			t.Errorf("%s: got %v", what, err)
		}
		if s := remote.Status(); s.Revision != signed || s.Failed.Revision != commit {
			t.Errorf("%s: got %+v", what, s)
		}
	}
	r.write(t, "a.yaml", tool("b"))
	refused("a commit without a signature", r.push(t))
	by := r.push(t, sign(other)...)
	refused("a commit that another key signed", by)

	// The signature of another commit is refused.
	raw := r.git(t, r.work, "cat-file", "commit", signed)
	tree := r.git(t, r.work, "rev-parse", "HEAD^{tree}")
	_, rest, _ := strings.Cut(raw, "\n")
	forged := r.hash(t, "commit", "tree "+tree+"\n"+rest+"\n")
	r.git(t, r.work, "push", "-q", "--force", "origin", forged+":refs/heads/main")
	refused("a commit with the signature of another", forged)

	// The repository and the user's settings cannot choose the program that verifies signatures.
	write(t, os.Getenv("GIT_CONFIG_GLOBAL"), "[gpg]\nprogram = true\n[gpg \"ssh\"]\nprogram = true\nallowedSignersFile = /dev/null\n")
	refused("a program that takes all", forged)

	// An added key is accepted without a restart.
	r.git(t, r.work, "push", "-q", "--force", "origin", by+":refs/heads/main")
	public, err := os.ReadFile(other + ".pub")
	if err != nil {
		t.Fatal(err)
	}
	refused("a commit that another key signed", by)
	write(t, keys, allowed+"other@example.com "+string(public))
	if set, err := remote.Load(t.Context()); err != nil || names(set) != "b" {
		t.Errorf("got %v, %v", set, err)
	}

	for text, want := range map[string]string{"": "expected allowed signers", "not a key at all\n": "expected allowed signers"} {
		write(t, keys, text)
		if _, err := remote.Load(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v", err)
		}
	}
}

func TestRequireSignedByOpenPGP(t *testing.T) {
	r := newRepository(t)
	if _, err := exec.LookPath("gpg"); err != nil {
		t.Skip("gpg is not installed")
	}
	home, err := os.MkdirTemp("", "gpg") // short, because it contains a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", home)
	r.env = append(r.env, "GNUPGHOME="+home)
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	gpg := func(args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "gpg", append([]string{"--batch", "--quiet", "--passphrase", ""}, args...)...).Output()
		if err != nil {
			t.Fatalf("gpg %s: %v", strings.Join(args, " "), err)
		}
		return string(out)
	}
	for _, who := range []string{"me@example.com", "other@example.com"} {
		gpg("--quick-generate-key", who, "ed25519", "sign", "never")
	}
	keys := filepath.Join(t.TempDir(), "keys.asc")
	write(t, keys, gpg("--armor", "--export", "me@example.com"))
	r.write(t, "a.yaml", tool("a"))
	r.push(t, "-Sme@example.com")
	remote := open(t, r.at("?ref=main"), source.RepositoryOptions{RequireSigned: keys}, source.RemoteOptions{})
	if set, err := remote.Load(t.Context()); err != nil || names(set) != "a" {
		t.Fatalf("got %v, %v", set, err)
	}
	for _, args := range [][]string{{"-Sother@example.com"}, nil} {
		r.write(t, "a.yaml", tool("b"))
		commit := r.push(t, args...)
		if _, err := remote.Load(t.Context()); err == nil || !strings.Contains(err.Error(), commit+": the commit is not signed") {
			t.Errorf("%v: got %v", args, err)
		}
	}
}
