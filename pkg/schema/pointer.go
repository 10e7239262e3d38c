// Package schema reads JSON Schemas and the documents that they are in as values decoded from JSON:
// maps, slices, strings, booleans, numbers and nil. It validates nothing; see pkg/validate for that.
package schema

import (
	"net/url"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// At returns the value that a JSON Pointer names in a document (RFC 6901, section 4). Where there is none,
// ok is false, missing is the first token that names nothing, and value is what does not have it.
func At(doc any, pointer string) (value any, missing string, ok bool) {
	for _, token := range v1.Tokens(pointer) {
		var next any
		switch parent := doc.(type) {
		case map[string]any:
			next, ok = parent[token]
		case []any:
			i, err := strconv.Atoi(token)
			if ok = err == nil && i >= 0 && i < len(parent); ok {
				next = parent[i]
			}
		default:
			ok = false
		}
		if !ok {
			return doc, token, false
		}
		doc = next
	}
	return doc, "", true
}

// Resolve returns the part of a document that a reference within it names: "#" with a JSON Pointer, which may
// be percent-encoded (RFC 6901, section 6). It follows no other reference, and fetches nothing.
func Resolve(root any, ref string) (part any, ok bool) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local || fragment != "" && fragment[0] != '/' {
		return nil, false
	}
	if pointer, err := url.PathUnescape(fragment); err == nil {
		fragment = pointer
	}
	part, _, ok = At(root, fragment)
	return part, ok
}
