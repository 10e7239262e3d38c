package mcpconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/promptpack"
	"toolctl.dev/toolctl/pkg/manifest"
)

// staysOut returns a note, with its place, for each part of an Arena that is not imported.
func staysOut(name string, data []byte, root map[string]json.RawMessage) (notes []string) {
	kind := ""
	if json.Unmarshal(root["kind"], &kind) != nil || kind != "Arena" {
		return nil
	}
	_, place, _ := manifest.ToJSONPlaced(name, data) // nil for JSON with comments
	note := func(field, pointer, called string) {
		at := name
		if place != nil {
			at = place(pointer).String()
		}
		notes = append(notes, fmt.Sprintf("%s: %s stays out: %s", at, strings.TrimSpace(v1.FieldPath(pointer)+" "+called), promptpack.Outside[field]))
	}
	for _, field := range slices.Sorted(maps.Keys(promptpack.Outside)) {
		raw, pointer := lookup(root, "spec."+field), v1.Pointer("/spec", field)
		if raw == nil || v1.JSONKind(raw) == "null" {
			continue
		}
		var each []struct {
			Name string `json:"name"`
		}
		if json.Unmarshal(raw, &each) != nil {
			note(field, pointer, "")
		}
		for i, one := range each {
			note(field, fmt.Sprintf("%s/%d", pointer, i), one.Name)
		}
	}
	return notes
}
