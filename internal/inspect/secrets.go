package inspect

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
)

// Secrets warns of literal secrets in an object. No message contains a secret or a part of it.
func Secrets(o v1.Object) []v1.Violation {
	found := named(o)
	raw, err := json.Marshal(o)
	if err != nil || !redact.MayHoldSecret(string(raw)) {
		return found
	}
	var doc struct {
		Metadata struct{ Annotations any }
		Spec     any
	}
	if json.Unmarshal(raw, &doc) != nil {
		return found
	}
	found = literals(found, o.Head(), "/metadata/annotations", doc.Metadata.Annotations, "")
	return literals(found, o.Head(), "/spec", doc.Spec, "")
}

// named warns of values that are secrets according to their names alone, in fields that send values by
// name.
func named(o v1.Object) (found []v1.Violation) {
	look := func(path string, values map[string]string) {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if kind, _ := redact.WrittenOut(values[name], name); kind != "" {
				continue // the check of values reports it
			}
			if variable, ok := redact.Named(name, values[name]); ok {
				found = append(found, writtenOut(o.Head(), v1.Pointer(path, name), "what looks like a secret", variable))
			}
		}
	}
	switch o := o.(type) {
	case *v1.MCPServer:
		look("/spec/env", o.Spec.Env)
		look("/spec/headers", o.Spec.Headers)
	case *v1.Tool:
		if e := o.Spec.Exec; e != nil {
			look("/spec/exec/env", e.Env)
		}
		if h := o.Spec.HTTP; h != nil {
			look("/spec/http/headers", h.Headers)
			if r := h.Request; r != nil {
				look("/spec/http/request/static_headers", r.StaticHeaders)
				look("/spec/http/request/static_query", r.StaticQuery)
			}
		}
	}
	return found
}

func writtenOut(h *v1.Header, path, kind, variable string) v1.Violation {
	return v1.Violation{Path: path, Expected: "${" + variable + "}", Got: kind, Severity: v1.SeverityWarning, Source: h.Field(path),
		Message: fmt.Sprintf("%s is in the manifest: put it into an environment variable and write ${%s}, and revoke it if the manifest was shared", kind, variable)}
}

func literals(found []v1.Violation, h *v1.Header, path string, v any, key string) []v1.Violation {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			found = literals(found, h, v1.Pointer(path, name), v[name], name)
		}
	case []any:
		for i, item := range v {
			found = literals(found, h, v1.Pointer(path, strconv.Itoa(i)), item, key)
		}
	case string:
		if kind, variable := redact.WrittenOut(v, key); kind != "" {
			return append(found, writtenOut(h, path, kind, variable))
		}
	}
	return found
}
