package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/k8s/internal/clustertest"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

// What toolctl reads from manifests/ is in the store once kubectl applied it, and means the same.
func TestManifests(t *testing.T) {
	w := newWorld(t, clustertest.Options{})
	w.operate(t, "--allow-exec=*", "--allow-command=*", "--allow-private-network=*")
	scenarios, err := filepath.Glob(manifests + "/scenarios/*.yaml")
	if err != nil || len(scenarios) == 0 {
		t.Fatal(scenarios, err)
	}
	files, err := filepath.Glob(manifests + "/*.yaml") // as kubectl reads a folder
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"-f", manifests}
	for _, f := range scenarios {
		args = append(args, "-f", f)
	}
	out := w.MustKubectl(t, append([]string{"apply"}, args...)...)
	set, err := manifest.Load(t.Context(), append(scenarios, files...), manifest.Options{})
	if err != nil || set.Failed() {
		t.Fatal(err, set)
	}
	checked := 0
	for _, o := range set.Objects {
		h := o.Head()
		kind, name := strings.ToLower(h.Kind), h.Namespace()+"/"+h.Metadata.Name
		if h.FromPromptKit() {
			kind = "promptconfig"
		}
		if !strings.Contains(out, kind) {
			t.Errorf("kubectl applied no %s: %s", kind, out)
		}
		if len(h.Files) > 0 && h.Kind == v1.KindScenario { // a cassette may still be recorded
			w.await(t, kind, name, "Applied")
			continue
		}
		if len(h.Files) > 0 {
			if text := w.await(t, kind, name, "Invalid"); !strings.Contains(text, "put the file into a ConfigMap and name that in the annotation toolctl.dev/files") {
				t.Errorf("%s %s: %s", kind, h.Metadata.Name, text)
			}
			continue
		}
		w.await(t, kind, name, "Applied")
		r, err := w.store.Get(t.Context(), h.Key())
		if err != nil {
			t.Error(err)
			continue
		}
		if r.Set != "kubernetes" {
			t.Errorf("%s is of set %q", h.Key(), r.Set)
		}
		// The annotations of PromptKit's manifests, and all else of them, are PromptKit's.
		if a, b := meaning(t, o), meaning(t, r.Object); a != b && !h.FromPromptKit() {
			t.Errorf("%s: another object than that of the file:\n%s\n%s", h.Key(), a, b)
		}
		checked++
	}
	if checked < 25 {
		t.Errorf("only %d objects were compared", checked)
	}
	if denied := w.Denied(); len(denied) > 0 {
		t.Errorf("deploy/kubernetes/operator/rbac.yaml lacks %v", denied)
	}

	t.Run("events", func(t *testing.T) {
		clustertest.Eventually(t, "events", func(context.Context) error {
			events := w.MustKubectl(t, "get", "events.events.k8s.io", "-A", "-o", `jsonpath={range .items[*]}{.regarding.kind}/{.regarding.name} {.type} {.reason} {.note}{"\n"}{end}`)
			for _, want := range []string{"Tool/get-weather Normal Applied", "Warning Invalid"} {
				if !strings.Contains(events, want) {
					return fmt.Errorf("no %q in %s", want, events)
				}
			}
			return nil
		})
	})
	t.Run("wait", func(t *testing.T) {
		w.MustKubectl(t, "wait", "--for=condition=Ready", "tool/get-weather", "--timeout=10s")
	})
	t.Run("delete", func(t *testing.T) {
		w.MustKubectl(t, append([]string{"delete"}, args...)...)
		if left := w.MustKubectl(t, "get", "toolctl", "-A", "-o", "name"); left != "" {
			t.Errorf("the cluster still has %s", left)
		}
		list, err := w.store.List(t.Context(), store.ListOptions{})
		if err != nil || len(list.Records) > 0 {
			t.Errorf("the store still has %d objects (%v)", len(list.Records), err)
		}
	})
}

// The files of an object come from a ConfigMap, and follow it.
func TestConfigMaps(t *testing.T) {
	w := newWorld(t, clustertest.Options{})
	w.operate(t)
	w.MustKubectl(t, "apply", "-f", manifests+"/file-mock.yaml", "-f", manifests+"/multimodal.yaml")
	set, err := manifest.Load(t.Context(), []string{manifests + "/file-mock.yaml", manifests + "/multimodal.yaml"}, manifest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var named []v1.Object
	for _, o := range set.Objects {
		if len(o.Head().Files) > 0 {
			named = append(named, o)
		}
	}
	if len(named) < 3 {
		t.Fatalf("only %d objects name files", len(named))
	}
	for _, o := range named {
		w.await(t, "tool", o.Head().Metadata.Name, "Invalid")
		w.MustKubectl(t, "annotate", "tool", o.Head().Metadata.Name, "toolctl.dev/files=results=files")
	}
	first := named[0].Head().Metadata.Name
	clustertest.Eventually(t, "the missing ConfigMap is told", func(context.Context) error {
		text := w.MustKubectl(t, "get", "tool", first, "-o", "jsonpath={.status.violations[*].message}")
		if !strings.Contains(text, `there is no ConfigMap "files" in namespace "default"`) {
			return errors.New(text)
		}
		return nil
	})
	w.MustKubectl(t, "create", "configmap", "files", "--from-file="+manifests+"/results")
	for _, o := range named {
		name := o.Head().Metadata.Name
		w.await(t, "tool", name, "Applied")
		r, _ := w.stored(t, v1.KindTool, name)
		for path, data := range o.Head().Files {
			if string(r.Object.Head().Files[path]) != string(data) {
				t.Errorf("%s: %s has %d bytes in the store, expected %d", name, path, len(r.Object.Head().Files[path]), len(data))
			}
		}
	}
	i := slices.IndexFunc(named, func(o v1.Object) bool { return o.Head().Files["results/stations.yaml"] != nil })
	name := named[i].Head().Metadata.Name
	w.MustKubectl(t, "patch", "configmap", "files", "--type=merge", "-p", `{"data":{"stations.yaml":"[{\"id\": \"x-1\"}]"}}`)
	clustertest.Eventually(t, "the store has the new file", func(context.Context) error {
		r, _ := w.stored(t, v1.KindTool, name)
		if got := string(r.Object.Head().Files["results/stations.yaml"]); !strings.Contains(got, "x-1") {
			return errors.New(got)
		}
		return nil
	})
}

// The store keeps what was valid last, and what belongs to others.
func TestLifeOfAnObject(t *testing.T) {
	w := newWorld(t, clustertest.Options{})
	w.operate(t, "--allow-exec=platform", "--allow-env=CITIES_*")
	w.apply(t, weather)
	w.await(t, "tool", "get-weather", "Applied")
	before, _ := w.stored(t, v1.KindTool, "get-weather")

	t.Run("invalid", func(t *testing.T) {
		w.apply(t, strings.Replace(weather, "mock_result: {conditions: sunny}", "mock_template: '{{.location'", 1))
		text := w.await(t, "tool", "get-weather", "Invalid")
		if !strings.Contains(text, "spec.mock_template: ") {
			t.Errorf("the message names no field: %s", text)
		}
		if now, _ := w.stored(t, v1.KindTool, "get-weather"); now.ResourceVersion != before.ResourceVersion {
			t.Error("the store has changed")
		}
		if got := w.MustKubectl(t, "get", "tool", "get-weather", "-o", "jsonpath={.status.violations[0].path}"); got != "/spec/mock_template" {
			t.Errorf("the first violation is of %q", got)
		}
		w.apply(t, strings.Replace(weather, "sunny", "rain", 1))
		w.await(t, "tool", "get-weather", "Applied")
		if now, _ := w.stored(t, v1.KindTool, "get-weather"); !strings.Contains(specOf(t, now.Object), "rain") {
			t.Error("the store has not changed")
		}
	})
	t.Run("labels", func(t *testing.T) {
		w.MustKubectl(t, "label", "tool", "get-weather", "tier=gold")
		clustertest.Eventually(t, "the store has the label", func(context.Context) error {
			r, _ := w.stored(t, v1.KindTool, "get-weather")
			if r.Object.Head().Metadata.Labels["tier"] != "gold" {
				return fmt.Errorf("%v", r.Object.Head().Metadata.Labels)
			}
			return nil
		})
	})
	t.Run("relative path", func(t *testing.T) {
		w.apply(t, strings.Replace(strings.Replace(weather, "mock_result: {conditions: sunny}", "http: {url: 'https://example.com', tls: {ca_file: tls/ca.pem}}", 1), "get-weather", "with-ca", 1))
		if text := w.await(t, "tool", "with-ca", "Invalid"); !strings.Contains(text, "spec.http.tls.ca_file") || !strings.Contains(text, "absolute path") {
			t.Error(text)
		}
	})
	t.Run("not permitted", func(t *testing.T) {
		runs := strings.Replace(strings.Replace(weather, "mock_result: {conditions: sunny}", "exec: {command: date, output: text}", 1), "get-weather", "runs", 1)
		w.apply(t, runs)
		if text := w.await(t, "tool", "runs", "NotPermitted"); text != `spec.exec: namespace "default" may not run programs: allow it with --allow-exec=default` {
			t.Error(text)
		}
		if _, ok := w.stored(t, v1.KindTool, "runs"); ok {
			t.Error("the store has it")
		}
		w.apply(t, strings.Replace(runs, "name: runs", "name: runs, namespace: platform", 1))
		w.await(t, "tool", "platform/runs", "Applied")
		for variable, want := range map[string]string{
			"${TOOLCTL_STORE}": "belongs to toolctl", "${HOME}": "--allow-env does not list it", "${CITIES_TOKEN}": "",
		} {
			w.apply(t, strings.Replace(strings.Replace(weather, "mock_result: {conditions: sunny}", "http: {url: 'https://example.com', headers: {X: '"+variable+"'}}", 1), "get-weather", "reads", 1))
			reason := "Applied"
			if want != "" {
				reason = "NotPermitted"
			}
			if text := w.await(t, "tool", "reads", reason); !strings.Contains(text, want) {
				t.Errorf("%s: %s", variable, text)
			}
		}
	})
	t.Run("server comes later", func(t *testing.T) {
		w.apply(t, "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: read}\nspec: {description: Read a file, input_schema: {type: object}, mcp: {server: files, tool: read}}\n")
		if text := w.await(t, "tool", "read", "Invalid"); !strings.Contains(text, `no MCPServer "files" in namespace "default"`) {
			t.Error(text)
		}
		w.apply(t, "apiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: files}\nspec: {url: 'https://example.com/mcp'}\n")
		w.await(t, "tool", "read", "Applied")
	})
	t.Run("another set", func(t *testing.T) {
		objects, violations := manifest.Decode("tool.yaml", []byte(strings.Replace(weather, "get-weather", "theirs", 1)), manifest.Options{})
		if len(violations) > 0 {
			t.Fatal(violations)
		}
		if _, err := w.store.Apply(t.Context(), objects, store.ApplyOptions{Set: "team"}); err != nil {
			t.Fatal(err)
		}
		w.apply(t, strings.Replace(strings.Replace(weather, "get-weather", "theirs", 1), "sunny", "rain", 1))
		if text := w.await(t, "tool", "theirs", "OwnedByAnotherSet"); !strings.Contains(text, `"team"`) {
			t.Error(text)
		}
		w.MustKubectl(t, "delete", "tool", "theirs")
		if r, ok := w.stored(t, v1.KindTool, "theirs"); !ok || r.Set != "team" || strings.Contains(specOf(t, r.Object), "rain") {
			t.Errorf("the object of the other set is %v", r)
		}
	})
	t.Run("delete", func(t *testing.T) {
		w.MustKubectl(t, "delete", "tool", "get-weather")
		if _, ok := w.stored(t, v1.KindTool, "get-weather"); ok {
			t.Error("the store still has it")
		}
	})
	if denied := w.Denied(); len(denied) > 0 {
		t.Errorf("rbac.yaml lacks %v", denied)
	}
}

// What the cluster lost while no operator ran is removed by the next one; until then the
// finalizer keeps what is deleted.
func TestWithoutAnOperator(t *testing.T) {
	w := newWorld(t, clustertest.Options{})
	p := w.operate(t)
	w.apply(t, weather+"---\n"+strings.Replace(weather, "get-weather", "kept", 1)+"---\n"+strings.Replace(weather, "get-weather", "stays", 1))
	for _, name := range []string{"get-weather", "kept", "stays"} {
		w.await(t, "tool", name, "Applied")
	}
	p.stop(t)
	w.MustKubectl(t, "delete", "tool", "kept", "get-weather", "--wait=false")
	w.MustKubectl(t, "patch", "tool", "get-weather", "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	if got := w.MustKubectl(t, "get", "tools", "-o", "name"); strings.Contains(got, "get-weather") || !strings.Contains(got, "kept") {
		t.Errorf("the cluster has %s", got)
	}
	w.operate(t)
	clustertest.Eventually(t, "the store has one tool", func(ctx context.Context) error {
		list, err := w.store.List(ctx, store.ListOptions{})
		if err != nil || len(list.Records) != 1 {
			return fmt.Errorf("%d objects (%v)", len(list.Records), err)
		}
		return nil
	})
	clustertest.Eventually(t, "the cluster has one tool", func(context.Context) error {
		if got := w.MustKubectl(t, "get", "tools", "-o", "name"); got != "tool.toolctl.dev/stays\n" {
			return errors.New(got)
		}
		return nil
	})
}

// Of two operators one works; when it ends the other goes on.
func TestLeader(t *testing.T) {
	w := newWorld(t, clustertest.Options{})
	flags := []string{"--leader-elect", "--leader-elect-namespace=default"}
	first := w.operate(t, flags...)
	w.apply(t, weather)
	w.await(t, "tool", "get-weather", "Applied")
	w.operate(t, flags...)
	w.apply(t, strings.Replace(weather, "sunny", "rain", 1))
	w.await(t, "tool", "get-weather", "Applied")
	first.stop(t)
	w.apply(t, strings.Replace(weather, "sunny", "snow", 1))
	w.await(t, "tool", "get-weather", "Applied")
	if r, _ := w.stored(t, v1.KindTool, "get-weather"); !strings.Contains(specOf(t, r.Object), "snow") {
		t.Error("the second operator has applied nothing")
	}
	if denied := w.Denied(); len(denied) > 0 {
		t.Errorf("rbac.yaml lacks %v", denied)
	}
}
