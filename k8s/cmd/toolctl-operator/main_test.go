package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/k8s/internal/clustertest"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/backends"
)

const (
	top       = "../../.."
	manifests = top + "/manifests"
)

// asOperator is the variable by which the test's program is the operator.
const asOperator = "TEST_AS_OPERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(asOperator) != "" {
		main()
		return
	}
	clustertest.Main(m)
}

// world is a cluster with the kinds, and a store.
type world struct {
	*clustertest.Cluster
	dsn   string
	store store.Store

	kubeconfig string // of the operator
	client     client.Client
}

func newWorld(t testing.TB, opts clustertest.Options) *world {
	t.Helper()
	w := &world{Cluster: clustertest.Start(t, opts), dsn: filepath.Join(t.TempDir(), "state.db")}
	w.MustKubectl(t, "apply", "-f", top+"/k8s/crds")
	w.MustKubectl(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	st, err := backends.All().Open(t.Context(), w.dsn, store.Options{Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { st.Close() })
	w.store = st
	if w.client, err = client.New(w.Admin, client.Options{}); err != nil {
		t.Fatal(err)
	}
	w.kubeconfig = w.KubeconfigOf(t, "operator", rulesOf(t)...)
	return w
}

// rulesOf reads what the operator may do from deploy/.
func rulesOf(t testing.TB) []rbac.PolicyRule {
	t.Helper()
	data, err := os.ReadFile(top + "/deploy/kubernetes/operator/rbac.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules []rbac.PolicyRule
	for doc := range strings.SplitSeq(string(data), "\n---\n") {
		var role rbac.ClusterRole
		if err := yaml.Unmarshal([]byte(doc), &role); err != nil {
			t.Fatal(err)
		}
		if role.Name == "toolctl-operator" && strings.HasSuffix(role.Kind, "Role") {
			rules = append(rules, role.Rules...)
		}
	}
	if len(rules) < 2 {
		t.Fatal("no rules found")
	}
	return rules
}

// process is a running operator.
type process struct {
	cmd *exec.Cmd
	log *buffer
}

// buffer is a log that is read while it is written.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// operate starts the operator as a process, which ends with the test.
func (w *world) operate(t testing.TB, flags ...string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(self, append([]string{"--health-probe-bind-address=0"}, flags...)...), log: &buffer{}}
	p.cmd.Env = append(os.Environ(), asOperator+"=1", "KUBECONFIG="+w.kubeconfig, "TOOLCTL_STORE="+w.dsn)
	p.cmd.Stderr, p.cmd.Stdout = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("operator: %s", tail(p.log.String()))
		}
	})
	return p
}

func tail(s string) string {
	if len(s) > 20_000 {
		s = "… " + s[len(s)-20_000:]
	}
	return s
}

// stop ends an operator as Kubernetes does.
func (p *process) stop(t testing.TB) {
	t.Helper()
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("operator: %v", err)
	}
}

// get returns a custom resource, by its name or NAMESPACE/NAME.
func (w *world) get(ctx context.Context, kind, name string) (*unstructured.Unstructured, error) {
	u := &unstructured.Unstructured{}
	if real, ok := v1.ParseKind(kind); ok {
		u.SetAPIVersion(v1.APIVersion)
		u.SetKind(real)
	} else {
		u.SetAPIVersion(v1.PromptKitGroup + "/v1alpha1")
		u.SetKind("PromptConfig")
	}
	namespace, local, ok := strings.Cut(name, "/")
	if !ok {
		namespace, local = "default", name
	}
	return u, w.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: local}, u)
}

// ready is the condition Ready of a custom resource, and whether it is about the object as it is.
func ready(u *unstructured.Unstructured) (status, reason, message string, current bool) {
	all, _, _ := unstructured.NestedSlice(u.Object, "status", "conditions")
	for _, c := range all {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" {
			return fmt.Sprint(c["status"]), fmt.Sprint(c["reason"]), fmt.Sprint(c["message"]), c["observedGeneration"] == u.GetGeneration()
		}
	}
	return "", "", "", false
}

// await waits until a custom resource has a reason that is about the object as it is, and
// returns the message.
func (w *world) await(t testing.TB, kind, name, reason string) string {
	t.Helper()
	var text string
	clustertest.Eventually(t, kind+"/"+name+" is "+reason, func(ctx context.Context) error {
		u, err := w.get(ctx, kind, name)
		if err != nil {
			return err
		}
		status, got, message, current := ready(u)
		if !current || got != reason || (status == "True") != (reason == "Applied") {
			return fmt.Errorf("%s %s: %s (current: %t)", status, got, message, current)
		}
		text = message
		return nil
	})
	return text
}

// apply applies manifests by kubectl.
func (w *world) apply(t testing.TB, text string) {
	t.Helper()
	w.MustKubectl(t, "apply", "-f", written(t, text))
}

// written is a file with a text.
func written(t testing.TB, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "all.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// stored returns an object of the store.
func (w *world) stored(t testing.TB, kind, name string) (store.Record, bool) {
	t.Helper()
	r, err := w.store.Get(t.Context(), v1.Key{Kind: kind, Namespace: "default", Name: name})
	return r, err == nil
}

func specOf(t testing.TB, o v1.Object) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// meaning is the labels and the spec of an object, with numbers by their value: Kubernetes
// stores 11.0 as 11.
func meaning(t testing.TB, o v1.Object) string {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(specOf(t, o)), &doc); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal([]any{doc["spec"], o.Head().Metadata.Labels, o.Head().Metadata.Annotations})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

const weather = `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-weather, labels: {team: demo}}
spec:
  description: Current weather
  input_schema: {type: object, properties: {location: {type: string}}, required: [location]}
  mock_result: {conditions: sunny}
`
