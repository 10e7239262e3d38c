package operator

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
)

// A reading is what a custom resource is as a manifest.
type reading struct {
	object v1.Object // nil when it cannot be read at all
	// violations are what 'toolctl validate' says of it.
	violations []v1.Violation
	// missing are the files that it names and that it does not have.
	missing []string
}

// invalid reports whether a violation is not a warning.
func (r *reading) invalid() bool {
	return r.object == nil || slices.ContainsFunc(r.violations, func(v v1.Violation) bool { return !v.IsWarning() })
}

// isMissing reports whether a violation is about a file that no ConfigMap has.
func (r *reading) isMissing(v v1.Violation) bool {
	return slices.ContainsFunc(r.missing, func(name string) bool { return v.Got == strconv.Quote(name) })
}

// read reads a custom resource as a manifest, with the files that it names, and checks it
// alone: an MCPServer that it names is taken to be there.
func (p Permissions) read(ctx context.Context, u *unstructured.Unstructured, files map[string][]byte) (*reading, error) {
	raw, err := manifestOf(u).MarshalJSON()
	if err != nil {
		return nil, err
	}
	folder := &folder{manifest: raw, files: files}
	set, err := manifest.LoadFS(ctx, folder, manifest.Options{})
	if err != nil {
		return nil, err
	}
	place := v1.Source{File: placeOf(u)}
	r := &reading{violations: set.Violations, missing: folder.missing}
	if len(set.Objects) == 1 {
		r.object = set.Objects[0]
		h := r.object.Head()
		h.Source, h.Fields = place, nil
		more, err := p.check(ctx, r.object)
		if err != nil {
			return nil, err
		}
		r.violations = append(r.violations, more...)
	}
	for i := range r.violations {
		r.violations[i].Source = place
	}
	return r, nil
}

// check returns what validate says of an object beside what its reader said.
func (p Permissions) check(ctx context.Context, o v1.Object) ([]v1.Violation, error) {
	var beside []v1.Object
	if t, ok := o.(*v1.Tool); ok && t.Spec.MCP != nil && v1.IsName(t.Spec.MCP.Server) {
		server := &v1.MCPServer{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindMCPServer, Metadata: v1.Metadata{Name: t.Spec.MCP.Server, Namespace: t.Namespace()}}}
		server.Spec.Command = "applied"
		beside = append(beside, server)
	}
	violations, err := action.Violations(ctx, []v1.Object{o}, beside, gateway.Options{AllowEnv: p.Env, Permit: &p.Rules})
	if err != nil {
		return nil, err
	}
	// Which tools there are for a prompt is not known here.
	violations = slices.DeleteFunc(violations, func(v v1.Violation) bool { return v.IsWarning() && strings.HasPrefix(v.Path, "/spec/tools/") })
	violations = append(violations, outside(o)...)
	return append(violations, slices.Concat(inspect.Secrets(o), inspect.Object(o))...), ctx.Err()
}

// outside refuses paths of files that are opened where calls are made, when they are relative:
// there is no folder that they could be relative to.
func outside(o v1.Object) []v1.Violation {
	var all []v1.Violation
	refuse := func(pointer, name string) {
		if name == "" || path.Clean(name) == "." || path.IsAbs(name) || filepath.IsAbs(name) || strings.HasPrefix(name, "${") {
			return
		}
		all = append(all, v1.Violation{
			Path: pointer, Expected: "an absolute path", Got: strconv.Quote(name),
			Message: fmt.Sprintf("%q is relative, and a custom resource has no folder: mount the file where the gateway runs and name it by its absolute path", name),
		})
	}
	tls := func(pointer string, t *v1.TLS) {
		if t != nil {
			refuse(pointer+"/ca_file", t.CAFile)
			refuse(pointer+"/cert_file", t.CertFile)
			refuse(pointer+"/key_file", t.KeyFile)
		}
	}
	command := func(pointer, name string) {
		if strings.Contains(name, "/") { // else it is found by PATH
			refuse(pointer, name)
		}
	}
	switch o := o.(type) {
	case *v1.Tool:
		if o.Spec.HTTP != nil {
			tls("/spec/http/tls", o.Spec.HTTP.TLS)
		}
		if e := o.Spec.Exec; e != nil {
			command("/spec/exec/command", e.Command)
			refuse("/spec/exec/working_dir", e.WorkingDir)
			for i, p := range e.Writable {
				refuse("/spec/exec/writable/"+strconv.Itoa(i), p)
			}
		}
	case *v1.MCPServer:
		command("/spec/command", o.Spec.Command)
		refuse("/spec/working_dir", o.Spec.WorkingDir)
		tls("/spec/tls", o.Spec.TLS)
	}
	return all
}

// manifestOf is the part of a custom resource that its author wrote.
func manifestOf(u *unstructured.Unstructured) *unstructured.Unstructured {
	metadata := map[string]any{"name": u.GetName(), "namespace": u.GetNamespace()}
	if labels := u.GetLabels(); len(labels) > 0 {
		metadata["labels"] = texts(labels)
	}
	annotations := u.GetAnnotations()
	delete(annotations, corev1.LastAppliedConfigAnnotation) // kubectl's own
	if len(annotations) > 0 {
		metadata["annotations"] = texts(annotations)
	}
	doc := map[string]any{"apiVersion": u.GetAPIVersion(), "kind": u.GetKind(), "metadata": metadata}
	if spec, ok := u.Object["spec"]; ok {
		doc["spec"] = spec
	}
	return &unstructured.Unstructured{Object: doc}
}

func texts(m map[string]string) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
}

// placeOf names a custom resource where a file would stand in a message. It has no slash, so that
// what is relative to the manifest is relative to the folder of the gateway.
func placeOf(u *unstructured.Unstructured) string {
	return fmt.Sprintf("kubernetes:%s.%s.%s", strings.ToLower(u.GetKind()), u.GetNamespace(), u.GetName())
}
