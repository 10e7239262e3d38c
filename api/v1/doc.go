// Package v1 contains the manifest kinds of toolctl.dev/v1, a call and its result,
// and the typed errors. It imports only the standard library, so that every
// other package can use these types.
//
// # Manifests
//
// A manifest is a Kubernetes-style object: apiVersion, kind, metadata and spec.
// Fields of spec are written in snake_case. There are six kinds: [Tool],
// [Prompt], [MCPServer], [ToolPolicy], [Toolset] and [Scenario]. The smallest tool:
//
//	apiVersion: toolctl.dev/v1
//	kind: Tool
//	metadata:
//	  name: get-weather
//	spec:
//	  description: Current weather for a place
//	  input_schema:
//	    type: object
//	    properties: {location: {type: string}}
//	    required: [location]
//	  mock_result: {conditions: sunny}
//
// An object is known by kind, namespace and name. The namespace is "default"
// when metadata.namespace is absent.
//
// # Rules of a field
//
// The doc comment of a field says what it means, its unit, its default and an
// example. The struct tag `check` holds the rules that a machine can check, as a
// comma-separated list. [Object.Validate], the JSON Schemas in schemas/ and `toolctl explain`
// all read these two places.
//
//   - required, min=N, max=N and oneof=a|b|c
//   - pattern: exact names, or prefixes with one trailing "*"; pattern=principal, pattern=server and
//     pattern=prompt say so of principals, MCP servers and prompts
//   - url: an http or https URL, or one that begins with ${VAR}
//   - env: texts in which ${VAR} is read from the environment, so that a bare $VAR is a warning
//   - path: a path that may not leave the folder of the manifests
//   - null: null is a value of its own, and not an absent one
//   - single: a list of one may be written as its one value
//
// # Errors
//
// Errors that a caller may act on are types, found with [errors.As]:
// [ValidationError], [ExecutionError], [MCPError], [PolicyError] and
// [NotFoundError]. None of them holds a secret.
package v1
