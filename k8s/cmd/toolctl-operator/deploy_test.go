package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/k8s/internal/clustertest"
)

const deploy = top + "/deploy"

// foreign are the kinds of others, whose types are not Kubernetes' own.
var foreign = []string{"PrometheusRule", "ServiceMonitor", "Issuer", "Certificate"}

// definitions is the number of the kinds, with the PromptConfig of PromptKit.
var definitions = len(v1.KindInfos()) + 1

// decode reads what was rendered, strictly: an unknown field of Kubernetes' types fails.
func decode(t *testing.T, text string) []runtime.Object {
	t.Helper()
	sch := runtime.NewScheme()
	if err := scheme.AddToScheme(sch); err != nil {
		t.Fatal(err)
	}
	if err := apiext.AddToScheme(sch); err != nil {
		t.Fatal(err)
	}
	codec := serializer.NewCodecFactory(sch, serializer.EnableStrict).UniversalDeserializer()
	var all []runtime.Object
	for _, doc := range regexp.MustCompile(`(?m)^---.*$`).Split(text, -1) {
		var u unstructured.Unstructured
		if err := yaml.Unmarshal([]byte(doc), &u.Object); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
		if len(u.Object) == 0 {
			continue
		}
		if slices.Contains(foreign, u.GetKind()) {
			all = append(all, &u)
			continue
		}
		o, _, err := codec.Decode([]byte(doc), nil, nil)
		if err != nil {
			t.Errorf("%v\n%s", err, doc)
			continue
		}
		all = append(all, o)
	}
	return all
}

// kindsOf counts objects.
func kindsOf(all []runtime.Object) map[string]int {
	counts := map[string]int{}
	for _, o := range all {
		counts[o.GetObjectKind().GroupVersionKind().Kind]++
	}
	return counts
}

// consistent checks what objects say of each other.
func consistent(t *testing.T, all []runtime.Object) {
	t.Helper()
	pods := map[string]corev1.PodTemplateSpec{}
	for _, o := range all {
		if d, ok := o.(*appsv1.Deployment); ok {
			pods[d.Name] = d.Spec.Template
			pod(t, d)
		}
	}
	governs := func(what string, s labels.Selector) {
		t.Helper()
		n := 0
		for _, p := range pods {
			if s.Matches(labels.Set(p.Labels)) {
				n++
			}
		}
		if n != 1 {
			t.Errorf("%s selects %d deployments, expected 1", what, n)
		}
	}
	selector := func(s *metav1.LabelSelector) labels.Selector {
		out, err := metav1.LabelSelectorAsSelector(s)
		if err != nil {
			t.Error(err)
			return labels.Nothing()
		}
		return out
	}
	for _, o := range all {
		switch o := o.(type) {
		case *corev1.Service:
			governs("Service "+o.Name, labels.SelectorFromSet(o.Spec.Selector))
			for _, p := range o.Spec.Ports {
				if !slices.ContainsFunc(ports(pods), func(c corev1.ContainerPort) bool { return c.Name == p.TargetPort.StrVal }) {
					t.Errorf("Service %s: no container has a port %s", o.Name, p.TargetPort.StrVal)
				}
			}
		case *policyv1.PodDisruptionBudget:
			governs("PodDisruptionBudget "+o.Name, selector(o.Spec.Selector))
		case *networkingv1.NetworkPolicy:
			governs("NetworkPolicy "+o.Name, selector(&o.Spec.PodSelector))
		case *autoscalingv2.HorizontalPodAutoscaler:
			if _, ok := pods[o.Spec.ScaleTargetRef.Name]; !ok {
				t.Errorf("HorizontalPodAutoscaler %s scales %s, which is not there", o.Name, o.Spec.ScaleTargetRef.Name)
			}
		}
	}
}

func ports(pods map[string]corev1.PodTemplateSpec) []corev1.ContainerPort {
	var all []corev1.ContainerPort
	for _, p := range pods {
		for _, c := range p.Spec.Containers {
			all = append(all, c.Ports...)
		}
	}
	return all
}

// pod checks that a pod runs without rights and that its parts fit together.
func pod(t *testing.T, d *appsv1.Deployment) {
	t.Helper()
	spec := d.Spec.Template.Spec
	s, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil || !s.Matches(labels.Set(d.Spec.Template.Labels)) {
		t.Errorf("%s does not select its own pods (%v)", d.Name, err)
	}
	grace := int64(30) // Kubernetes' default
	if spec.TerminationGracePeriodSeconds != nil {
		grace = *spec.TerminationGracePeriodSeconds
	}
	for _, c := range spec.Containers {
		if least := stops(t, c.Args) + 3*time.Second; c.Name == "toolctl" && time.Duration(grace)*time.Second < least {
			t.Errorf("%s is killed after %d s, and needs %s to stop", d.Name, grace, least)
		}
	}
	if sc := spec.SecurityContext; sc == nil || sc.RunAsNonRoot == nil || !*sc.RunAsNonRoot || sc.SeccompProfile == nil {
		t.Errorf("%s may run as root", d.Name)
	}
	for _, c := range spec.Containers {
		if sc := c.SecurityContext; sc == nil || !*sc.ReadOnlyRootFilesystem || *sc.AllowPrivilegeEscalation || !slices.Equal(sc.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("%s: %s has rights that it does not need", d.Name, c.Name)
		}
		for _, m := range c.VolumeMounts {
			if !slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name }) {
				t.Errorf("%s: no volume %s", d.Name, m.Name)
			}
		}
		for _, p := range []*corev1.Probe{c.LivenessProbe, c.ReadinessProbe} {
			if p == nil || !slices.ContainsFunc(c.Ports, func(have corev1.ContainerPort) bool { return have.Name == p.HTTPGet.Port.StrVal }) {
				t.Errorf("%s: a probe has no port", d.Name)
			}
		}
		if c.Name == "toolctl-operator" {
			if _, err := parse(c.Args, func(name string) string { return map[string]string{"TOOLCTL_STORE": "memory:"}[name] }, &bytes.Buffer{}); err != nil {
				t.Errorf("%s: %v", d.Name, err)
			}
		}
	}
}

// stops is how long a gateway takes to stop at most, by its flags and their defaults: the delay, the
// drain, and 2 s.
func stops(t *testing.T, args []string) time.Duration {
	t.Helper()
	line := strings.ReplaceAll(" "+strings.Join(args, " "), "=", " ")
	delay, drain := 0*time.Second, 10*time.Second
	if strings.Contains(line, "--replica-key-file") {
		delay = 5 * time.Second
	}
	for flag, to := range map[string]*time.Duration{"--shutdown-delay": &delay, "--drain-timeout": &drain} {
		if m := regexp.MustCompile(flag + ` (\S+)`).FindStringSubmatch(line); m != nil {
			d, err := time.ParseDuration(m[1])
			if err != nil {
				t.Error(err)
			}
			*to = d
		}
	}
	return delay + drain + 2*time.Second
}

func want(t *testing.T, all []runtime.Object, kinds ...string) {
	t.Helper()
	have := kindsOf(all)
	for _, k := range kinds {
		if have[k] == 0 {
			t.Errorf("there is no %s in %v", k, have)
		}
	}
}

func TestKustomize(t *testing.T) {
	c := &clustertest.Cluster{Kubeconfig: os.DevNull} // kubectl kustomize asks none
	gateway := decode(t, c.MustKubectl(t, "kustomize", deploy+"/kubernetes/gateway"))
	want(t, gateway, "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "ServiceMonitor", "ServiceAccount")
	consistent(t, gateway)
	operator := decode(t, c.MustKubectl(t, "kustomize", deploy+"/kubernetes/operator"))
	want(t, operator, "NetworkPolicy", "Deployment", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount")
	if n := kindsOf(operator)["CustomResourceDefinition"]; n != definitions {
		t.Errorf("the operator comes with %d kinds, expected %d", n, definitions)
	}
	consistent(t, operator)
	webhook := decode(t, c.MustKubectl(t, "kustomize", deploy+"/kubernetes/webhook"))
	want(t, webhook, "ValidatingWebhookConfiguration", "Certificate", "Issuer", "Deployment")
	consistent(t, webhook)
}

func TestHelm(t *testing.T) {
	chart, err := loader.Load(deploy + "/helm/toolctl")
	if err != nil {
		t.Fatal(err)
	}
	render := func(values map[string]any) []runtime.Object {
		t.Helper()
		v, err := chartutil.ToRenderValues(chart, values, chartutil.ReleaseOptions{Name: "prod", Namespace: "tools", Revision: 1, IsInstall: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		files, err := (engine.Engine{Strict: true}).Render(chart, v)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for name, file := range files {
			if filepath.Ext(name) == ".yaml" {
				fmt.Fprintf(&text, "---\n%s\n", file)
			}
		}
		all := decode(t, text.String())
		consistent(t, all)
		return all
	}
	all := render(nil)
	want(t, all, "Deployment", "Service", "HorizontalPodAutoscaler", "PodDisruptionBudget", "NetworkPolicy", "ServiceAccount")
	if n := kindsOf(all); n["ServiceMonitor"]+n["PrometheusRule"]+n["ConfigMap"] != 0 || n["Deployment"] != 1 {
		t.Errorf("the defaults have %v", n)
	}
	on := map[string]any{"enabled": true}
	all = render(map[string]any{
		"permissions":    map[string]any{"exec": "platform", "env": "CRM_*"},
		"serviceMonitor": on, "prometheusRule": on, "grafanaDashboard": on, "operator": on, "autoscaling": map[string]any{"enabled": false}, "replicaCount": 3,
		"extraArgs":     []any{"--oauth-issuer=https://login.example.com"},
		"env":           []any{map[string]any{"name": "CITIES_TOKEN", "value": "x"}},
		"envFrom":       []any{map[string]any{"secretRef": map[string]any{"name": "tokens"}}},
		"nodeSelector":  map[string]any{"disk": "ssd"},
		"tolerations":   []any{map[string]any{"key": "a", "operator": "Exists"}},
		"affinity":      map[string]any{"nodeAffinity": map[string]any{}},
		"podLabels":     map[string]any{"a": "b"},
		"networkPolicy": map[string]any{"egress": []any{map[string]any{"ports": []any{map[string]any{"port": 5432, "protocol": "TCP"}}}}},
	})
	want(t, all, "ServiceMonitor", "PrometheusRule", "ConfigMap", "ClusterRole", "RoleBinding")
	if n := kindsOf(all)["NetworkPolicy"]; n != 2 {
		t.Errorf("%d NetworkPolicies, expected that of the gateway and that of the operator", n)
	}
	for _, o := range all {
		if r, ok := o.(*rbac.ClusterRole); ok && (r.Labels["rbac.authorization.k8s.io/aggregate-to-edit"] != "" || r.Labels["rbac.authorization.k8s.io/aggregate-to-admin"] != "") {
			t.Errorf("%s is part of a role of the cluster", r.Name)
		}
		d, ok := o.(*appsv1.Deployment)
		for _, arg := range []string{"--allow-exec=platform", "--allow-env=CRM_*", "--store-max-connections=7"} {
			if ok && !slices.Contains(d.Spec.Template.Spec.Containers[0].Args, arg) {
				t.Errorf("%s has no %s", d.Name, arg)
			}
		}
		if h, ok := o.(*autoscalingv2.HorizontalPodAutoscaler); ok {
			t.Errorf("%s is not asked for", h.Name)
		}
	}
	more := render(map[string]any{
		"operator":    map[string]any{"enabled": true, "webhook": on},
		"autoscaling": map[string]any{"targetCallsActive": "50"},
	})
	want(t, more, "ValidatingWebhookConfiguration", "Certificate", "Issuer")
	for _, o := range more {
		if h, ok := o.(*autoscalingv2.HorizontalPodAutoscaler); ok && (len(h.Spec.Metrics) != 2 || h.Spec.Metrics[1].Pods.Metric.Name != "toolctl_calls_active") {
			t.Errorf("%+v", h.Spec.Metrics)
		}
	}
	crds := map[string]bool{}
	for _, c := range chart.CRDObjects() {
		data, err := os.ReadFile(top + "/k8s/crds/" + filepath.Base(c.Filename))
		if err != nil || !bytes.Equal(data, c.File.Data) {
			t.Errorf("%s is not what is generated: %v", c.Filename, err)
		}
		crds[c.Filename] = true
	}
	if len(crds) != definitions {
		t.Errorf("the chart installs %v, expected %d kinds", crds, definitions)
	}
	// One version, wherever it stands.
	version := chart.Metadata.AppVersion
	if !regexp.MustCompile(`^\d+\.\d+\.\d+$`).MatchString(version) {
		t.Errorf("appVersion %q", version)
	}
	for _, dir := range []string{"gateway", "operator"} {
		text, err := os.ReadFile(deploy + "/kubernetes/" + dir + "/kustomization.yaml")
		if err != nil || !strings.Contains(string(text), "newTag: "+version+"\n") {
			t.Errorf("%s: %v, expected the version %s of the chart", dir, err, version)
		}
	}
	for _, o := range all {
		switch o := o.(type) {
		case *unstructured.Unstructured:
			if groups, _, err := unstructured.NestedSlice(o.Object, "spec", "groups"); o.GetKind() == "PrometheusRule" && (err != nil || len(groups) != 1) {
				t.Errorf("the alerts: %v, %v", o, err)
			}
		case *corev1.ConfigMap:
			if !json.Valid([]byte(o.Data["toolctl.json"])) || o.Labels["grafana_dashboard"] != "1" {
				t.Errorf("the dashboard: %v", o)
			}
		}
		if d, ok := o.(*appsv1.Deployment); ok && d.Name == "prod" && (*d.Spec.Replicas != 3 || !slices.Contains(d.Spec.Template.Spec.Containers[0].Args, "--oauth-issuer=https://login.example.com")) {
			t.Errorf("%+v", d.Spec)
		}
	}
}

// The operator's rights are the same wherever they are written.
func TestRightsOfTheChart(t *testing.T) {
	chart, err := os.ReadFile(deploy + "/helm/toolctl/templates/operator.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rulesOf(t) {
		for _, name := range slices.Concat(r.Resources, r.Verbs, r.APIGroups) {
			if !bytes.Contains(chart, []byte(name)) {
				t.Errorf("the chart has no %q", name)
			}
		}
	}
}

// The flags that docs/kubernetes.md lists are those that there are.
func TestFlagsInTheManual(t *testing.T) {
	page, err := os.ReadFile(top + "/docs/kubernetes.md")
	if err != nil {
		t.Fatal(err)
	}
	var help bytes.Buffer
	if _, err := parse([]string{"-h"}, func(string) string { return "" }, &help); err != flag.ErrHelp {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^  -(\S+)`).FindAllStringSubmatch(help.String(), -1) {
		if m[1] != "v" && !bytes.Contains(page, []byte("--"+m[1])) {
			t.Errorf("docs/kubernetes.md does not tell of --%s", m[1])
		}
	}
}

func TestCompose(t *testing.T) {
	text, err := os.ReadFile(deploy + "/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Services map[string]struct {
			Command     any               `json:"command"`
			Environment map[string]string `json:"environment"`
			Secrets     []string          `json:"secrets"`
			ReadOnly    bool              `json:"read_only"`
			DependsOn   map[string]any    `json:"depends_on"`
			StopGrace   string            `json:"stop_grace_period"`
		} `json:"services"`
		Secrets map[string]any `json:"secrets"`
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"gateway-1", "gateway-2"} {
		s := file.Services[name]
		if !s.ReadOnly || s.DependsOn["postgres"] == nil || !strings.HasPrefix(s.Environment["TOOLCTL_STORE"], "postgres://") {
			t.Errorf("%s: %+v", name, s)
		}
		args := strings.Fields(strings.Trim(fmt.Sprint(s.Command), "[]"))
		if grace, err := time.ParseDuration(s.StopGrace); err != nil || grace < stops(t, args)+3*time.Second {
			t.Errorf("%s is killed after %s (%v), and needs %s to stop", name, s.StopGrace, err, stops(t, args))
		}
	}
	for name, s := range file.Services {
		for _, secret := range s.Secrets {
			if file.Secrets[secret] == nil {
				t.Errorf("%s: no secret %s", name, secret)
			}
		}
	}
}

// The unit is stopped in time, and has what systemd can keep from it.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile(deploy + "/systemd/toolctl.service")
	if err != nil {
		t.Fatal(err)
	}
	set := map[string]string{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		set[name] = value
	}
	if grace, err := time.ParseDuration(set["TimeoutStopSec"] + "s"); err != nil || grace < stops(t, strings.Fields(set["ExecStart"]))+3*time.Second {
		t.Errorf("TimeoutStopSec %s: %v", set["TimeoutStopSec"], err)
	}
	for _, name := range []string{"NoNewPrivileges", "PrivateDevices", "ProtectKernelTunables", "ProtectKernelModules", "ProtectKernelLogs", "ProtectControlGroups", "RestrictSUIDSGID", "LockPersonality"} {
		if set[name] != "yes" {
			t.Errorf("%s is %q", name, set[name])
		}
	}
	if !strings.Contains(set["RestrictAddressFamilies"], "AF_INET6") {
		t.Errorf("RestrictAddressFamilies is %q", set["RestrictAddressFamilies"])
	}
}

// What others make is named by the hash of what it was when it was looked at.
func TestPins(t *testing.T) {
	for file, form := range map[string]struct{ all, pinned string }{
		top + "/action.yml":                      {`(?m)uses: .*`, `@[0-9a-f]{40} # v\d`},
		deploy + "/container/Dockerfile":         {`(?m)^(?:ARG \w+_IMAGE=|FROM [^$b]).*`, `@sha256:[0-9a-f]{64}$`},
		deploy + "/gitlab/toolctl.gitlab-ci.yml": {`(?m)image: .*`, `@sha256:[0-9a-f]{64}$`},
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(form.all).FindAllString(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s names nothing of others", file)
		}
		for _, one := range found {
			if !regexp.MustCompile(form.pinned).MatchString(one) {
				t.Errorf("%s: %q has no hash", file, one)
			}
		}
	}
}
