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

// Secrets warns of the secrets that are written out in an object. A message says
// neither the secret nor a part of it.
func Secrets(o v1.Object) []v1.Violation {
	raw, err := json.Marshal(o)
	if err != nil || !redact.MayHoldSecret(string(raw)) {
		return nil
	}
	var doc map[string]any
	if json.Unmarshal(raw, &doc) != nil {
		return nil
	}
	return literals(nil, o.Head(), "/spec", doc["spec"], "")
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
			return append(found, v1.Violation{Path: path, Expected: "${" + variable + "}", Got: kind, Severity: v1.SeverityWarning, Source: h.Field(path),
				Message: fmt.Sprintf("%s is written out: put it into an environment variable and write ${%s}, and revoke it if the manifest was shared", kind, variable)})
		}
	}
	return found
}
