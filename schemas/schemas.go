// Package schemas holds the JSON Schemas of the manifest kinds and explains
// their fields. Both are generated from the doc comments and tags of api/v1, so
// editors, `toolctl explain` and the reference in docs/reference say the same.
// After a change of api/v1 run
//
//	go generate ./schemas
//
// An editor with yaml-language-server reads a manifest by the schema of its
// kind, or a whole folder by all.json, with this line at the top of the file:
//
//	# yaml-language-server: $schema=https://toolctl.dev/schemas/all.json
//
// They refuse what the program refuses, as far as one manifest shows it. The schema of a
// kind describes toolctl.dev/v1; all.json takes PromptKit's Tool, PromptConfig and
// Scenario too, in which unknown fields are allowed.
package schemas

import (
	"embed"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

//go:generate go run ./gen

//go:embed *.json
var files embed.FS

// For returns the JSON Schema (draft-07) of a kind, as the file in this folder
// holds it. The kind is written as [Explain] takes it; "all" is the schema of
// every kind and of a List of objects. Extensions are fields that executors and rules
// written in Go add to it; registry.Extensions returns them. It reports false for an unknown
// kind.
func For(kind string, extensions ...v1.Extension) ([]byte, bool) {
	name, ok := "all", strings.EqualFold(kind, "all")
	if !ok {
		kind, ok = v1.ParseKind(kind)
		name = strings.ToLower(kind)
	}
	if !ok {
		return nil, false
	}
	data, err := files.ReadFile(name + ".json")
	if err == nil && len(extensions) > 0 {
		data, err = extended(data, extensions)
	}
	return data, err == nil
}
