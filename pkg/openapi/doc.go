// Package openapi makes Tool manifests from an OpenAPI 3.0 or 3.1 document.
//
//	doc, err := openapi.Load(ctx, "petstore.yaml", openapi.LoadOptions{})
//	set, err := doc.Import(ctx, openapi.Options{})
//	report, err := set.WriteFolder(ctx, "tools", openapi.FolderOptions{})
//
// # Mapping
//
// Each operation is one tool. Its name is the operationId in kebab case, or
// method and path. Parameters and the properties of a JSON body are the
// properties of one input schema; a body that is no plain object is the one
// property "body". The JSON schema of a 2xx answer is the output schema. Schemas
// become JSON Schema 2020-12; a component that is referred to stands in $defs.
//
// Credentials are named by environment variables after the title of the API and
// never written. Text of the document can name neither a variable nor a template
// action: it is escaped.
//
// What cannot be said in a Tool manifest is reported: as a warning when the tool
// works without it, else the operation is skipped with the reason.
//
// # Importing again
//
// [Set.WriteFolder] keeps what it wrote last in the file [LockFile] beside the
// manifests. The next import merges three ways, field by field: what only the
// document changed is taken, what only the file changed is kept, and what both
// changed differently is kept and reported as a conflict.
//
// # Bounds
//
// Documents are untrusted. Their size, depth, number of values and references are
// bounded; references leave neither the document's folder nor, for a document
// from the network, the document; nothing but the address that was asked for is
// fetched.
package openapi
