package main

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var longFlag = regexp.MustCompile(`(?:^|[\s"'\[])(--[a-z][a-z-]+)`)

// TestFlagsInDeploy checks that the flags in deploy/ exist.
func TestFlagsInDeploy(t *testing.T) {
	var help bytes.Buffer
	if code := run(context.Background(), []string{"serve", "--help"}, strings.NewReader(""), &help, &help); code != 0 {
		t.Fatal(help.String())
	}
	found := 0
	// Files that are not in this list run no gateway.
	for _, dir := range []string{"compose", "container", "helm/toolctl/templates/deployment.yaml", "kubernetes/gateway", "systemd"} {
		err := filepath.WalkDir(filepath.Join("../../deploy", dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := os.ReadFile(path)
			for n, line := range strings.Split(string(text), "\n") {
				if strings.HasPrefix(strings.TrimSpace(line), "#") || !strings.Contains(line, "--") || strings.HasPrefix(line, "COPY") || strings.HasPrefix(line, "RUN") {
					continue
				}
				for _, m := range longFlag.FindAllStringSubmatch(line, -1) {
					found++
					if !regexp.MustCompile(regexp.QuoteMeta(m[1])+`[ ,\n]`).MatchString(help.String()) && m[1] != "--set" {
						t.Errorf("%s:%d: toolctl serve has no flag %s", path, n+1, m[1])
					}
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
	if found < 15 {
		t.Errorf("only %d flags were found", found)
	}
}

// TestSystemdUnit checks that systemd accepts the unit unchanged, except for the program, which is not installed here.
func TestSystemdUnit(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed: it is in the package systemd")
	}
	text, err := os.ReadFile("../../deploy/systemd/toolctl.service")
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "toolctl.service")
	writeFile(t, unit, strings.ReplaceAll(string(text), "/usr/local/bin/toolctl", self))
	if out, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	writeFile(t, unit, strings.ReplaceAll(string(text), "/usr/local/bin/toolctl", self)+"\n[Service]\nNoSuchSetting=yes\n")
	if out, _ := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput(); !bytes.Contains(out, []byte("NoSuchSetting")) {
		t.Errorf("a setting that there is not: %q", out)
	}
}
