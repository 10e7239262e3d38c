// Package openapi makes Tool manifests from an OpenAPI 3.0 or 3.1 document.
//
//	doc, err := openapi.Load(ctx, "petstore.yaml", openapi.LoadOptions{})
//	set, err := doc.Import(ctx, openapi.Options{})
//	err = set.Write(ctx, "tools", importer.WriteOptions{})
//
// # Mapping
//
// Each operation becomes one tool. Its name is the operationId in kebab case, or method and path.
// Parameters and the properties of a JSON body become the properties of one input schema; any body
// other than a plain object becomes the single property "body". The JSON schema of a 2xx response
// becomes the output schema. Schemas are converted to JSON Schema 2020-12, with referenced
// components under $defs.
//
// Credentials are read from environment variables, whose names start with the title of the API, and
// are never written. Text from the document is escaped, so it can name neither a variable nor a
// template action.
//
// Everything that a Tool manifest cannot express is reported: as a warning if the tool works
// without it, else as the reason for skipping the operation.
//
// # Bounds
//
// Documents are untrusted. Their size, depth, number of values and references are bounded.
// References must stay in the document's folder, and for a document from the network in the
// document itself. Nothing except the given address is fetched.
package openapi
