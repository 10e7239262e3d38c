// Package crds holds the CustomResourceDefinitions of toolctl's kinds. They are generated from
// the JSON Schemas of manifests, so that kubectl explains and refuses what toolctl does:
//
//	kubectl apply -f k8s/crds/
//
// After a change of api/v1 run go generate ./schemas, and then go generate ./crds in k8s/.
package crds

import "embed"

//go:generate go run -mod=mod ../internal/crdgen .

// Files are the definitions, one a file.
//
//go:embed *.yaml
var Files embed.FS
