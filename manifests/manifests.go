// Package manifests holds the examples of this folder that agents are shown.
package manifests

import "embed"

// FS has the manifests, without the environments of gitops/.
//
//go:embed *.yaml *.md results scenarios
var FS embed.FS
