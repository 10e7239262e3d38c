package action

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/parallel"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

// Violations returns every violation of objects that can be found without a call, with warnings, in the order
// of the objects. The objects may refer to those in beside; an object that is in both lists counts once. It
// uses Env, AllowEnv, Permit, Executors and Rules of the options.
func Violations(ctx context.Context, objects, beside []v1.Object, o gateway.Options) (_ []v1.Violation, err error) {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	idle := mcp.NewUpstreams(nil, mcp.Options{}) // a check calls no server
	defer idle.Close()
	here := make(map[v1.Key]bool, len(objects))
	for _, obj := range objects {
		here[obj.Head().Key()] = true
	}
	all := slices.Clone(objects)
	for _, obj := range beside {
		if !here[obj.Head().Key()] {
			all = append(all, obj)
		}
	}
	reg, err := registry.New(all, registry.Options{
		Executors: append(executors.All(executors.Options{Env: o.Env, AllowEnv: o.AllowEnv, Upstream: idle}), o.Executors...), Rules: o.Rules,
	})
	if err != nil {
		return nil, err
	}
	found := reg.Check(ctx)
	for _, obj := range objects {
		found = append(found, o.Permit.Check(obj)...)
		if s, ok := obj.(*v1.MCPServer); ok && !s.Broken() {
			unreadable := mcp.Unset(s, o.Env, o.AllowEnv)
			found = append(found, slices.DeleteFunc(unreadable, func(v v1.Violation) bool { return !v.Forbidden })...)
		}
	}
	return found, reg.Close()
}

// inspectTexts warns of hidden characters and instructions in texts that models read, and of literal secrets.
func inspectTexts(objects []v1.Object) []v1.Violation {
	found := make([][]v1.Violation, len(objects))
	parallel.Each(len(objects), func(i int) {
		found[i] = append(inspect.Secrets(objects[i]), inspect.Object(objects[i])...)
		for j := range found[i] {
			found[i][j].Source = objects[i].Head().Field(found[i][j].Path)
		}
	})
	return slices.Concat(found...)
}

// Placeholders returns stand-ins for the objects of a store, so that a check can resolve references to them:
// they have the names and labels, and no content to check. Policies, toolsets and scenarios are left out, because nothing
// refers to them.
func Placeholders(records []store.Record) []v1.Object {
	var known []v1.Object
	for _, r := range records {
		stand := v1.NewObject(r.Key().Kind)
		*stand.Head() = v1.Header{APIVersion: v1.APIVersion, Kind: r.Key().Kind, Metadata: r.Object.Head().Metadata}
		switch stand := stand.(type) {
		case *v1.Tool:
			stand.Spec = v1.ToolSpec{Description: "applied", InputSchema: json.RawMessage(`{"type":"object"}`), MockResult: json.RawMessage("null")}
		case *v1.Prompt:
			stand.Spec.Template = "applied"
		case *v1.MCPServer:
			stand.Spec.Command = "applied"
		default:
			continue
		}
		known = append(known, stand)
	}
	return known
}

// intoNamespace sets the namespace of objects without one, as kubectl does with -n. An object with another namespace
// is a violation. Without a namespace, nothing changes.
func intoNamespace(objects []v1.Object, namespace string) (violations []v1.Violation) {
	if namespace == "" {
		return nil
	}
	for _, o := range objects {
		h := o.Head()
		switch h.Metadata.Namespace {
		case namespace:
		case "":
			h.Metadata.Namespace = namespace
		default:
			violations = append(violations, v1.Violation{
				Path: "/metadata/namespace", Source: h.Field("/metadata/namespace"), Expected: namespace, Got: h.Metadata.Namespace,
				Message: fmt.Sprintf("%s is in namespace %q, and -n names %q: leave one of them out", strings.ToLower(h.Kind)+"/"+h.Metadata.Name, h.Metadata.Namespace, namespace),
			})
		}
	}
	return violations
}

// checkUndo checks the manifests of an undo together with the objects that stay. The error for a set that could
// not be served is a [v1.ValidationError]; options are as for [Violations].
func checkUndo(ctx context.Context, st store.Store, u *rollout.Undo, o gateway.Options) error {
	list, err := st.List(ctx, store.ListOptions{})
	if err != nil {
		return err
	}
	changed := make(map[v1.Key]bool, len(u.Changes))
	for _, c := range u.Changes {
		changed[c.Key] = true
	}
	stay := slices.DeleteFunc(list.Records, func(r store.Record) bool { return changed[r.Key()] })
	found, err := Violations(ctx, u.Objects, append(Placeholders(stay), o.Objects...), o)
	if err != nil {
		return err
	}
	if wrong := slices.DeleteFunc(found, func(v v1.Violation) bool { return v.IsWarning() || v.Forbidden }); len(wrong) > 0 {
		return v1.NewValidationError(v1.ManifestInvalid, "", wrong)
	}
	return ctx.Err()
}
