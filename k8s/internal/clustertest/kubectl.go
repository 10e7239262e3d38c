package clustertest

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/component-base/cli"
	"k8s.io/kubectl/pkg/cmd"
	ctrl "sigs.k8s.io/controller-runtime"
)

// asKubectl is the variable by which a test's program is kubectl.
const asKubectl = "CLUSTERTEST_KUBECTL"

// Main runs the tests of a package, or, in a process that [Cluster.Kubectl] started, kubectl.
func Main(m *testing.M) {
	if os.Getenv(asKubectl) == "" {
		ctrl.SetLogger(logr.Discard())
		os.Exit(m.Run())
	}
	os.Args[0] = "kubectl"
	os.Exit(cli.Run(cmd.NewDefaultKubectlCommand()))
}

// Kubectl runs kubectl and returns what it printed, and whether it succeeded.
func (c *Cluster) Kubectl(t testing.TB, args ...string) (stdout, stderr string, ok bool) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	k := exec.CommandContext(t.Context(), self, args...)
	k.Env = append(os.Environ(), asKubectl+"=1", "KUBECONFIG="+c.Kubeconfig, "HOME="+t.TempDir())
	var out, errs bytes.Buffer
	k.Stdout, k.Stderr = &out, &errs
	err = k.Run()
	if err != nil && k.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String(), errs.String(), err == nil
}

// MustKubectl runs kubectl, which has to succeed, and returns what it printed.
func (c *Cluster) MustKubectl(t testing.TB, args ...string) string {
	t.Helper()
	out, errs, ok := c.Kubectl(t, args...)
	if !ok {
		t.Fatalf("kubectl %s: %s%s", strings.Join(args, " "), out, errs)
	}
	return out
}
