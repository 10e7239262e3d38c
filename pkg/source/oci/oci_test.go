package oci_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/opencontainers/image-spec/specs-go/v1"
	"go.uber.org/goleak"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"

	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/source/oci"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a third-party registry. With referrers it has the referrers API; without it, oras stores them under a tag.
func serve(t *testing.T, referrers bool) string {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	srv := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(referrers)))
	t.Cleanup(srv.Close)
	return strings.TrimPrefix(srv.URL, "http://")
}

func open(t *testing.T, address string) *oci.Repository {
	t.Helper()
	a, err := source.ParseAddress(address)
	if err != nil {
		t.Fatal(err)
	}
	r, err := oci.Open(a, oci.Options{Env: func(string) (string, bool) { return "", false }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func keyPair(t *testing.T, private any, public any) (signer, keys []byte) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	pub, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: pub})
}

func ed(t *testing.T) (signer, keys []byte) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return keyPair(t, private, public)
}

func ec(t *testing.T, c elliptic.Curve) (signer, keys []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(c, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return keyPair(t, private, private.Public())
}

const toolText = "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: NAME}\nspec: {description: A tool., input_schema: {type: object}, mock_result: 1}\n"

func tool(name string) map[string][]byte {
	return map[string][]byte{"tools/" + name + ".yaml": []byte(strings.ReplaceAll(toolText, "NAME", name)), "tools/sub/x.json": []byte("1")}
}

func TestPushPull(t *testing.T) {
	host := serve(t, true)
	r := open(t, "oci://"+host+"/team/tools:v1")
	digest, err := r.Push(t.Context(), tool("a"))
	if err != nil {
		t.Fatal(err)
	}
	again, err := open(t, "oci://"+host+"/other:latest").Push(t.Context(), tool("a"))
	if err != nil || again != digest {
		t.Errorf("the same files make %s and %s: %v", digest, again, err)
	}
	if d, err := r.Digest(t.Context()); err != nil || d != digest {
		t.Errorf("got %s, %v", d, err)
	}
	files, err := open(t, r.At(digest)).Pull(t.Context(), digest)
	if err != nil || !maps.EqualFunc(files, tool("a"), bytes.Equal) {
		t.Errorf("got %v, %v", files, err)
	}
	if _, err := open(t, r.At(digest)).Push(t.Context(), tool("a")); err == nil {
		t.Error("it is pushed to a digest")
	}
	if _, err := open(t, "oci://"+host+"/team/tools:v2").Digest(t.Context()); err == nil || !strings.Contains(err.Error(), "the registry has no v2") {
		t.Errorf("got %v", err)
	}
	for _, name := range []string{"../a", "/a", "a/../b", "a\\b", "", ".git/config"} {
		if _, err := r.Push(t.Context(), map[string][]byte{name: nil}); err == nil {
			t.Errorf("%q is packed", name)
		}
	}
}

func TestSignVerify(t *testing.T) {
	for _, referrers := range []bool{true, false} {
		host := serve(t, referrers)
		r := open(t, "oci://"+host+"/tools:v1")
		digest, err := r.Push(t.Context(), tool("a"))
		if err != nil {
			t.Fatal(err)
		}
		other, err := r.Push(t.Context(), tool("b"))
		if err != nil {
			t.Fatal(err)
		}
		pairs := map[string]func() ([]byte, []byte){
			"ed25519": func() ([]byte, []byte) { return ed(t) },
			"p256":    func() ([]byte, []byte) { return ec(t, elliptic.P256()) },
			"p384":    func() ([]byte, []byte) { return ec(t, elliptic.P384()) },
			"p521":    func() ([]byte, []byte) { return ec(t, elliptic.P521()) },
		}
		var all []byte
		for _, name := range slices.Sorted(maps.Keys(pairs)) {
			private, public := pairs[name]()
			signer, err := oci.ReadSigner(private)
			if err != nil {
				t.Fatal(err)
			}
			keys, err := oci.ReadKeys(public)
			if err != nil {
				t.Fatal(err)
			}
			unsigned := new(source.RevisionError)
			if _, err := r.Verify(t.Context(), digest, keys); !errors.As(err, &unsigned) || unsigned.Revision != digest {
				t.Errorf("%s: before it is signed: %v", name, err)
			}
			if err := r.Sign(t.Context(), digest, signer); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if id, err := r.Verify(t.Context(), digest, keys); err != nil || id != signer.ID() {
				t.Errorf("%s: got %s, %v", name, id, err)
			}
			if _, err := r.Verify(t.Context(), other, keys); !errors.As(err, &unsigned) {
				t.Errorf("%s: the signature of one package is that of another: %v", name, err)
			}
			all = append(all, public...)
		}
		_, stranger := ed(t)
		keys, err := oci.ReadKeys(stranger)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Verify(t.Context(), digest, keys); err == nil {
			t.Error("the key of another is taken")
		}
		if keys, err = oci.ReadKeys(append(stranger, all...)); err != nil || len(keys) != 5 {
			t.Errorf("got %d keys, %v", len(keys), err)
		}
		if _, err := r.Verify(t.Context(), digest, keys); err != nil {
			t.Error(err)
		}
	}
}

// A signature of another package and an artifact that is not a signature are ignored.
func TestForgedSignatures(t *testing.T) {
	host := serve(t, true)
	r := open(t, "oci://"+host+"/tools:v1")
	signed, err := r.Push(t.Context(), tool("a"))
	if err != nil {
		t.Fatal(err)
	}
	target, err := r.Push(t.Context(), tool("b"))
	if err != nil {
		t.Fatal(err)
	}
	private, public := ed(t)
	signer, err := oci.ReadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := oci.ReadKeys(public)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Sign(t.Context(), signed, signer); err != nil {
		t.Fatal(err)
	}
	raw := rawRepository(t, host)
	subject, err := raw.Resolve(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	var stolen []byte
	from, err := raw.Resolve(t.Context(), signed)
	if err != nil {
		t.Fatal(err)
	}
	err = raw.Referrers(t.Context(), from, "", func(all []v1.Descriptor) error {
		next, err := content.Successors(t.Context(), raw, all[0])
		for _, n := range next {
			if n.MediaType == oci.SignatureLayer {
				stolen, err = content.FetchAll(t.Context(), raw, n)
			}
		}
		return err
	})
	if err != nil || stolen == nil {
		t.Fatalf("got %s, %v", stolen, err)
	}
	for name, data := range map[string][]byte{
		"that of another package":        stolen,
		"with the digest changed":        bytes.ReplaceAll(stolen, []byte(signed), []byte(target)),
		"not valid JSON":                 []byte("{"),
		"without a signature":            fmt.Appendf(nil, `{"digest":%q,"key":%q,"signature":""}`, target, signer.ID()),
		"larger than a signature may be": bytes.Repeat([]byte(" "), 20<<10),
	} {
		putRaw(t, raw, oci.SignatureType, oci.SignatureLayer, data, &subject)
		bad := new(source.RevisionError)
		if _, err := r.Verify(t.Context(), target, keys); !errors.As(err, &bad) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func rawRepository(t *testing.T, host string) *remote.Repository {
	t.Helper()
	raw, err := remote.NewRepository(host + "/tools")
	if err != nil {
		t.Fatal(err)
	}
	raw.PlainHTTP = true
	transport := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(transport.CloseIdleConnections)
	raw.Client = &http.Client{Transport: transport}
	return raw
}

func putRaw(t *testing.T, raw *remote.Repository, kind, layerType string, data []byte, subject *v1.Descriptor) string {
	t.Helper()
	layer := content.NewDescriptorFromBytes(layerType, data)
	if err := raw.Push(t.Context(), layer, bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	d, err := oras.PackManifest(t.Context(), raw, oras.PackManifestVersion1_1, kind, oras.PackManifestOptions{Subject: subject, Layers: []v1.Descriptor{layer}})
	if err != nil {
		t.Fatal(err)
	}
	return d.Digest.String()
}

type entry struct {
	head tar.Header
	data string
}

func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	w := tar.NewWriter(zip)
	for _, e := range entries {
		e.head.Size, e.head.Mode = int64(len(e.data)), 0o644
		if err := w.WriteHeader(&e.head); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, e.data); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A package with entries that are not regular files, or beyond its limits, is refused completely.
func TestHostilePackages(t *testing.T) {
	host := serve(t, true)
	raw := rawRepository(t, host)
	file := func(name, data string) entry {
		return entry{tar.Header{Typeflag: tar.TypeReg, Name: name}, data}
	}
	many := make([]entry, 10_001)
	for i := range many {
		many[i] = file(fmt.Sprintf("f%d.yaml", i), "")
	}
	zeros := strings.Repeat("\x00", 10<<20)
	var large []entry
	for i := range 14 {
		large = append(large, file(fmt.Sprintf("f%d.yaml", i), zeros))
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"a path upwards":      {archive(t, file("../a.yaml", "x")), "is not a path within the folder"},
		"an absolute path":    {archive(t, file("/etc/a.yaml", "x")), "is not a path within the folder"},
		"a path through":      {archive(t, file("a/../../b.yaml", "x")), "is not a path within the folder"},
		"a symlink":           {archive(t, entry{tar.Header{Typeflag: tar.TypeSymlink, Name: "a.yaml", Linkname: "/etc/passwd"}, ""}), "not a regular file"},
		"a hard link":         {archive(t, entry{tar.Header{Typeflag: tar.TypeLink, Name: "a.yaml", Linkname: "/etc/passwd"}, ""}), "not a regular file"},
		"a device":            {archive(t, entry{tar.Header{Typeflag: tar.TypeChar, Name: "a.yaml"}, ""}), "not a regular file"},
		"a folder":            {archive(t, entry{tar.Header{Typeflag: tar.TypeDir, Name: "a/"}, ""}), "not a regular file"},
		"a file twice":        {archive(t, file("a.yaml", "x"), file("a.yaml", "y")), "occurs twice"},
		"a file of git":       {archive(t, file("a.yaml", "x"), file("tools/.git/config", "x")), `"tools/.git/config" has an element that begins with a dot`},
		"names by case":       {archive(t, file("a.yaml", "x"), file("A.yaml", "y")), `"a.yaml" and "A.yaml" are the same name`},
		"a file and a folder": {archive(t, file("a", "x"), file("a/b.yaml", "y")), `"a" is both a file and a folder`},
		"all that is wrong":   {archive(t, file(".a", "x"), entry{tar.Header{Typeflag: tar.TypeSymlink, Name: "l", Linkname: "x"}, ""}, file("b.", "y")), "\"l\" is not a regular file\n\".a\" has an element that begins with a dot\n\"b.\" has"},
		"too many files":      {archive(t, many...), "more than 10000 files"},
		"a file too large":    {archive(t, file("a.yaml", zeros+"x")), "more than 10000 files of 10485760 bytes"},
		"too much of it all":  {archive(t, large...), "bytes in all"},
		"no archive":          {[]byte("x"), "the archive"},
		"an archive cut off":  {archive(t, file("a.yaml", strings.Repeat("x", 10_000)))[:60], "the archive"},
		"a tar that is empty": {archive(t), ""},
	} {
		digest := putRaw(t, raw, oci.PackageType, oci.PackageLayer, c.data, nil)
		files, err := open(t, "oci://"+host+"/tools@"+digest).Pull(t.Context(), digest)
		bad := new(source.RevisionError)
		if c.want == "" {
			if err != nil || len(files) != 0 {
				t.Errorf("%s: got %v, %v", name, files, err)
			}
		} else if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// An artifact of another type is not a package.
	digest := putRaw(t, raw, "application/vnd.example", oci.PackageLayer, archive(t), nil)
	if _, err := open(t, "oci://"+host+"/tools@"+digest).Pull(t.Context(), digest); err == nil || !strings.Contains(err.Error(), "expected an artifact of type") {
		t.Errorf("got %v", err)
	}
}

// Content from a registry that does not match its digest is refused.
func TestRegistryThatLies(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	honest := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	lie := ""
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if lie != "" && r.Method == http.MethodGet && strings.Contains(r.URL.Path, lie) {
			res := httptest.NewRecorder()
			honest.ServeHTTP(res, r)
			body := bytes.ToUpper(res.Body.Bytes())
			maps.Copy(w.Header(), res.Header())
			w.WriteHeader(res.Code)
			_, _ = w.Write(body)
			return
		}
		honest.ServeHTTP(w, r)
	}))
	defer srv.Close()
	r := open(t, "oci://"+strings.TrimPrefix(srv.URL, "http://")+"/tools:v1")
	digest, err := r.Push(t.Context(), tool("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, lie = range []string{"/manifests/", "/blobs/"} {
		if _, err := r.Pull(t.Context(), digest); err == nil {
			t.Errorf("what %s says is believed", lie)
		}
	}
}

func TestOriginFollowsASignedTag(t *testing.T) {
	host := serve(t, true)
	r := open(t, "oci://"+host+"/tools:prod")
	private, public := ed(t)
	signer, err := oci.ReadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	keyFile := filepath.Join(t.TempDir(), "keys.pem")
	if err := os.WriteFile(keyFile, public, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := oci.NewOrigin(r, ""); err == nil || !strings.Contains(err.Error(), "is a tag") {
		t.Errorf("a tag without signatures: %v", err)
	}
	push := func(name string) string {
		t.Helper()
		digest, err := r.Push(t.Context(), tool(name))
		if err != nil {
			t.Fatal(err)
		}
		return digest
	}
	first := push("a")
	if err := r.Sign(t.Context(), first, signer); err != nil {
		t.Fatal(err)
	}
	origin, err := oci.NewOrigin(open(t, "oci://"+host+"/tools:prod"), keyFile)
	if err != nil {
		t.Fatal(err)
	}
	remote := source.NewRemote(origin, source.RemoteOptions{})
	set, err := remote.Load(t.Context())
	if err != nil || len(set.Objects) != 1 || set.Objects[0].Head().Source.String() != "tools/a.yaml:1:1" {
		t.Fatalf("got %v, %v", set, err)
	}
	second := push("b")
	if _, err := remote.Load(t.Context()); err == nil || err.Error() != second+": the package is not signed by one of the keys" {
		t.Errorf("got %v", err)
	}
	if s := remote.Status(); s.Revision != first || s.Failed == nil || s.Failed.Revision != second {
		t.Errorf("got %+v", s)
	}
	pinned, err := oci.NewOrigin(open(t, r.At(second)), "")
	if err != nil {
		t.Fatal(err)
	}
	if set, err := source.NewRemote(pinned, source.RemoteOptions{}).Load(t.Context()); err != nil || len(set.Objects) != 1 {
		t.Errorf("got %v, %v", set, err)
	}
}

func TestReadKeys(t *testing.T) {
	private, public := ed(t)
	other, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaPrivate, rsaPublic := keyPair(t, other, other.Public())
	for name, text := range map[string][]byte{"nothing": nil, "text": []byte("x"), "a private key": private, "RSA": rsaPublic} {
		if _, err := oci.ReadKeys(text); err == nil || !strings.Contains(err.Error(), "expected Ed25519 or ECDSA public keys") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for name, text := range map[string][]byte{"nothing": nil, "a public key": public, "RSA": rsaPrivate, "encrypted": pem.EncodeToMemory(&pem.Block{Type: "ENCRYPTED PRIVATE KEY", Bytes: []byte("x")})} {
		if _, err := oci.ReadSigner(text); err == nil || !strings.Contains(err.Error(), "expected an Ed25519 or ECDSA private key") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
