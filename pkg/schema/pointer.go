// Package schema reads JSON Schemas and the documents that contain them, as values decoded from JSON: which
// keywords hold schemas, what a JSON Pointer or a reference names, and what several schemas say together.
// It validates nothing and fetches nothing; see pkg/validate for validation.
//
// Schemas come from anyone, so every walk that follows references is bounded.
package schema

import (
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

// At returns the value that a JSON Pointer names in a document (RFC 6901, section 4). If there is none, ok is
// false, missing is the first token that names nothing, and value is the part of the document that lacks it.
func At(doc any, pointer string) (value any, missing string, ok bool) {
	return AtPath(doc, v1.Tokens(pointer))
}

// AtPath is [At] with the tokens of the pointer.
func AtPath(doc any, path []string) (value any, missing string, ok bool) {
	for _, token := range path {
		var next any
		if parent := ObjectOf(doc); parent != nil {
			next, ok = parent.Get(token)
		} else if list, isList := doc.([]any); isList {
			i, err := strconv.Atoi(token)
			if ok = err == nil && i >= 0 && i < len(list); ok {
				next = list[i]
			}
		} else {
			ok = false
		}
		if !ok {
			return doc, token, false
		}
		doc = next
	}
	return doc, "", true
}
