package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"toolctl.dev/toolctl/k8s/internal/clustertest"
	"toolctl.dev/toolctl/pkg/manifest"
)

// certificate writes tls.crt and tls.key for a host and returns the certificate as PEM.
func certificate(t testing.TB, dir, host string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: host}, DNSNames: []string{host},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for name, data := range map[string][]byte{"tls.crt": cert, "tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert
}

// webhookOf is the webhook of deploy/, with the certificate that cert-manager would put there.
func webhookOf(t testing.TB, dir string) *clustertest.Webhook {
	t.Helper()
	text, err := os.ReadFile(deploy + "/kubernetes/webhook/webhook.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, doc, ok := strings.Cut(string(text), "\n---\n")
	if !ok {
		t.Fatal("no second document")
	}
	config := &admissionregistration.ValidatingWebhookConfiguration{}
	if err := yaml.UnmarshalStrict([]byte(doc), config); err != nil {
		t.Fatal(err)
	}
	s := config.Webhooks[0].ClientConfig.Service
	config.Webhooks[0].ClientConfig.CABundle = certificate(t, dir, s.Name+"."+s.Namespace+".svc")
	port := int32(443)
	s.Port = &port
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return &clustertest.Webhook{Config: config, Address: l.Addr().String()}
}

// What validate refuses kubectl apply does not take, with the same words and fields.
func TestWebhook(t *testing.T) {
	certs := t.TempDir()
	hook := webhookOf(t, certs)
	w := newWorld(t, clustertest.Options{Webhook: hook})
	_, port, _ := net.SplitHostPort(hook.Address)
	w.operate(t, "--webhook-cert-path="+certs, "--webhook-port="+port, "--allow-exec=*", "--allow-command=*", "--allow-private-network=*")
	clustertest.Eventually(t, "the webhook listens", func(context.Context) error {
		c, err := net.Dial("tcp", hook.Address)
		if err == nil {
			c.Close()
		}
		return err
	})

	bad := strings.NewReplacer("{conditions: sunny}", "{conditions: sunny}\n  output_schema: {type: object, properties: {conditions: {type: number}}}\n  redact: [/a~x]",
		"location: {type: string}", "location: {type: strng}").Replace(weather)
	objects, violations := manifest.Decode("tool.yaml", []byte(bad), manifest.Options{})
	if len(objects) != 1 {
		t.Fatal(violations)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(bad), &u.Object); err != nil {
		t.Fatal(err)
	}
	u.SetNamespace("default")
	err := w.client.Create(t.Context(), u)
	var status apierrors.APIStatus
	if !errors.As(err, &status) || !apierrors.IsInvalid(err) {
		t.Fatalf("got %v, expected that it is invalid", err)
	}
	var fields []string
	for _, c := range status.Status().Details.Causes {
		fields = append(fields, c.Field)
		if c.Message == "" {
			t.Errorf("a cause of %s says nothing", c.Field)
		}
	}
	for _, want := range []string{"spec.input_schema.properties.location.type", "spec.mock_result.conditions"} {
		if !strings.Contains(strings.Join(fields, " "), want) {
			t.Errorf("no violation of %s in %v: %v", want, fields, err)
		}
	}

	// Manifests apply as they are; a file that no ConfigMap has is a warning, and so is a secret.
	out, warnings, ok := w.Kubectl(t, "apply", "-f", manifests)
	if !ok {
		t.Fatalf("%s%s", out, warnings)
	}
	if n := strings.Count(warnings, "toolctl.dev/files: FOLDER=CONFIGMAP"); n < 3 {
		t.Errorf("%d warnings of files: %s", n, warnings)
	}
	leaks := strings.Replace(weather, "mock_result: {conditions: sunny}", "http: {url: 'https://example.com', headers: {X: '${TOOLCTL_STORE}'}}", 1)
	if _, said, ok := w.Kubectl(t, "apply", "-f", written(t, leaks)); ok || !strings.Contains(said, `spec.http.headers.X: environment variable "TOOLCTL_STORE" belongs to toolctl`) {
		t.Errorf("got %s", said)
	}
	w.apply(t, weather)
	w.await(t, "tool", "get-weather", "Applied")
	w.MustKubectl(t, "delete", "tool", "get-weather")
	if denied := w.Denied(); len(denied) > 0 {
		t.Errorf("rbac.yaml lacks %v", denied)
	}
}
