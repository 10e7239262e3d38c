package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"

	"toolctl.dev/toolctl/pkg/action"
)

// cli runs a command and returns its output.
func cli(t *testing.T, code int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, said strings.Builder
	if got := run(t.Context(), args, strings.NewReader(""), &out, &said); got != code {
		t.Errorf("toolctl %s: exit code %d, want %d: %s", strings.Join(args, " "), got, code, said.String())
	}
	return strings.TrimSpace(out.String()), said.String()
}

// TestPackages pushes a package from a folder to a registry, signs it, and serves it by its digest or by a tag whose
// packages are signed.
func TestPackages(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	srv := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(srv.Close)
	tag := "oci://" + strings.TrimPrefix(srv.URL, "http://") + "/tools:v1"
	dir := t.TempDir()
	tools, keyFile, keys := filepath.Join(dir, "tools"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "keys.pem")
	writeKeys(t, keyFile, keys)
	writeFile(t, filepath.Join(tools, "one.yaml"), strings.Replace(fmt.Sprintf(mockTool, "one"), "mock_result: {is: one}", "mock_result_file: result.json", 1))
	writeFile(t, filepath.Join(tools, "result.json"), `{"a": 1}`)
	writeFile(t, filepath.Join(tools, ".env"), "SECRET=1")
	writeFile(t, filepath.Join(tools, "notes.txt"), "not for others")

	pinned, _ := cli(t, exitOK, "package", "push", tag, "-f", tools)
	if again, _ := cli(t, exitOK, "package", "push", tag, "-f", tools); again != pinned || !strings.Contains(pinned, "/tools@sha256:") {
		t.Errorf("got %s and %s", pinned, again)
	}
	if _, said := cli(t, exitInvalid, "package", "verify", tag, "--key", keys); !strings.Contains(said, "the package is not signed by one of the keys") {
		t.Error(said)
	}
	if _, said := cli(t, exitInvalid, "package", "pull", tag, "--dir", filepath.Join(dir, "none"), "--key", keys); !strings.Contains(said, "not signed") {
		t.Error(said)
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("files of a package that nobody signed are written")
	}
	cli(t, exitOK, "package", "sign", pinned, "--key", keyFile)
	if out, _ := cli(t, exitOK, "package", "verify", tag, "--key", keys); !strings.HasPrefix(out, pinned+" is signed by key sha256:") {
		t.Error(out)
	}

	out, _ := cli(t, exitOK, "package", "pull", pinned, "--dir", filepath.Join(dir, "pulled"), "--key", keys, "-o", "json")
	var res action.Packaged
	if err := json.Unmarshal([]byte(out), &res); err != nil || res.Package != pinned || res.Files != 2 || res.Key == "" {
		t.Errorf("got %s, %v", out, err)
	}
	if out, _ := cli(t, exitOK, "call", "-f", filepath.Join(dir, "pulled"), "one"); out != `{"a":1}` {
		t.Errorf("got %s", out)
	}

	s := serveHTTP(t, "--source", pinned)
	if names := toolNames(t, s.client(t, "2025-11-25", nil)); names != "one" {
		t.Errorf("got %s", names)
	}
	if body := s.readyz(t); !strings.Contains(body, `"commit":"`+res.Digest+`"`) {
		t.Error(body)
	}
	s = serveHTTP(t, "--source", tag, "--require-signed", keys, "--interval", "1s")
	writeFile(t, filepath.Join(tools, "one.yaml"), fmt.Sprintf(mockTool, "two"))
	next, _ := cli(t, exitOK, "package", "push", tag, "-f", tools)
	_, digest, _ := strings.Cut(next, "@")
	if line := s.wait(t, `"msg":"the reload failed`); !strings.Contains(line, digest+": the package is not signed") {
		t.Error(line)
	}
	cli(t, exitOK, "package", "push", strings.Replace(tag, ":v1", ":other", 1), "-f", tools) // the package already exists
	if body := s.readyz(t); !strings.Contains(body, `"commit":"`+res.Digest+`"`) || !strings.Contains(body, digest) {
		t.Error(body)
	}
	db := filepath.Join(dir, "state.db")
	cli(t, exitOK, "reconcile", "--source", pinned, "--once", "--store", db)
	if out, _ := cli(t, exitOK, "status", "--store", db, "-o", "json"); !strings.Contains(out, `"commit": "`+res.Digest+`"`) {
		t.Error(out)
	}

	for want, args := range map[string][]string{
		"is a tag, which can move":           {"serve", "--http", "127.0.0.1:0", "--source", tag},
		"expected oci://HOST/REPOSITORY":     {"package", "pull", "https://example.com/x", "--dir", filepath.Join(dir, "x")},
		"name the manifests to push with -f": {"package", "push", tag},
		"name the private key with --key":    {"package", "sign", tag},
		"name the public keys with --key":    {"package", "verify", tag},
		"it is not empty":                    {"package", "pull", tag, "--dir", tools},
	} {
		if _, said := cli(t, exitUsage, args...); !strings.Contains(said, want) {
			t.Errorf("%v: got %s, want %s", args, said, want)
		}
	}
	if _, said := cli(t, exitUnavailable, "package", "pull", strings.Replace(tag, ":v1", ":none", 1), "--dir", filepath.Join(dir, "x")); !strings.Contains(said, "the registry has no none") {
		t.Error(said)
	}
	if _, said := cli(t, exitInvalid, "package", "verify", tag, "--key", keyFile); !strings.Contains(said, "expected Ed25519 or ECDSA public keys") {
		t.Error(said)
	}
	writeFile(t, filepath.Join(tools, "one.yaml"), "kind: [")
	cli(t, exitInvalid, "package", "push", tag, "-f", tools)
}

// TestPackageOfAnyWorkingDirectory checks that the digest of a package depends only on its manifests, and not on the
// folder in which it is built or how the manifests were named.
func TestPackageOfAnyWorkingDirectory(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	srv := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(srv.Close)
	tag := "oci://" + strings.TrimPrefix(srv.URL, "http://") + "/tools:v1"
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "work", "base", "tools", "one.yaml"), strings.Replace(fmt.Sprintf(mockTool, "one"), "mock_result: {is: one}", "mock_result_file: ../data/result.json", 1))
	writeFile(t, filepath.Join(dir, "work", "base", "data", "result.json"), `{"a": 1}`)
	writeFile(t, filepath.Join(dir, "work", "base", "kustomization.yaml"), "resources: [tools/one.yaml]\n")
	writeFile(t, filepath.Join(dir, "work", "prod", "kustomization.yaml"), "resources: [../base, two.yaml]\n")
	writeFile(t, filepath.Join(dir, "work", "prod", "two.yaml"), fmt.Sprintf(mockTool, "two"))
	for _, tc := range []struct {
		name string
		ways [][2]string // the working directory and the path
	}{
		{"-k", [][2]string{{"work", "prod"}, {".", "work/prod"}, {"work/prod", "."}, {"work/base", "../prod"}, {".", filepath.Join(dir, "work", "prod")}}},
		{"-f", [][2]string{{"work", "base"}, {".", "work/base"}, {"work/base", "."}, {"work/prod", "../base"}, {".", filepath.Join(dir, "work", "base")}}},
	} {
		pinned := ""
		for _, way := range tc.ways {
			t.Chdir(filepath.Join(dir, way[0]))
			now, _ := cli(t, exitOK, "package", "push", tag, tc.name, way[1])
			if pinned == "" {
				pinned = now
			}
			if now != pinned || !strings.Contains(now, "@sha256:") {
				t.Errorf("%s %s in %s: got %s, want %s", tc.name, way[1], way[0], now, pinned)
			}
		}
		pulled := filepath.Join(dir, "pulled"+tc.name)
		cli(t, exitOK, "package", "pull", pinned, "--dir", pulled)
		if _, err := os.Stat(filepath.Join(pulled, "work")); err == nil {
			t.Errorf("%s: the package has a folder of the machine that it was made on", tc.name)
		}
		if out, _ := cli(t, exitOK, "call", "-f", pulled, "one"); out != `{"a":1}` {
			t.Errorf("%s: got %s", tc.name, out)
		}
	}
}

func writeKeys(t *testing.T, private, public string) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, private, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})))
	if der, err = x509.MarshalPKIXPublicKey(pub); err != nil {
		t.Fatal(err)
	}
	writeFile(t, public, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
}
