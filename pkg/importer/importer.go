// Package importer is the frame of the importers, which make manifests of foreign documents. An importer fills a
// [Result]: the manifests, and what they do not express. [Result.Write] writes the manifests into a folder.
//
// # Importing again
//
// If an importer names the origins of its manifests, the folder gets the file [LockFile], which holds the manifests as
// they were generated last. The next import merges three ways, field by field: changes made only in the document are
// applied, changes made only in the file are kept, and a field that both changed differently keeps the file's value and
// is reported as a conflict. The manifests of other importers are only written into new files, unless the user forces it.
package importer

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// A Result is what an importer made of a document, and what [Result.Write] changed in a folder.
type Result struct {
	// Source, Title and Version are those of the document.
	Source  string `json:"source"`
	Title   string `json:"title"`
	Version string `json:"version"`
	// Changes are those of the folder, sorted by file if it has a lock file.
	Changes []Change `json:"changes"`
	// Skipped are the operations that could not be imported, in the order of the document.
	Skipped []Skip `json:"skipped"`
	// Warnings describe the parts of the document that could not be kept.
	Warnings []v1.Violation `json:"warnings"`
	// Env are the environment variables that the tools read, sorted.
	Env []EnvUse `json:"env"`
	// DryRun means that Changes were not made.
	DryRun bool `json:"dry_run,omitempty"`

	// Manifests are in the order in which they are written.
	Manifests []Manifest `json:"-"`
	// Private are the hosts, with ports, that the tools cannot reach without permission, because they are on this machine
	// or in a private network. They are sorted.
	Private []string `json:"-"`
	// Origins has the origins of the whole document, including those without a manifest. If it is nil, the folder gets no
	// lock file.
	Origins map[string]bool `json:"-"`
	// Annotations are those in which the importer describes the import. They never conflict.
	Annotations []string `json:"-"`
	// Options are saved in the lock file: see [LastOptions].
	Options any `json:"-"`
	// Reused are the options of the last import that this import uses again, as flags.
	Reused []string `json:"-"`
}

// A Manifest is made of one part of a document.
type Manifest struct {
	// Origin identifies the part. Example: GET /pets/{petId}.
	Origin string
	Object v1.Object
}

// A Skip is an operation that was not imported.
type Skip struct {
	// Operation is method and path. Example: POST /upload.
	Operation string `json:"operation"`
	// Reason is one sentence.
	Reason string `json:"reason"`
}

// EnvUse is an environment variable and the hosts to which its value is sent.
type EnvUse struct {
	// Variable is the name of the variable. Example: PETSTORE_API_KEY.
	Variable string `json:"variable"`
	// Hosts are the hosts that receive the value, sorted.
	Hosts []string `json:"hosts"`
}

// Warn adds warnings.
func (r *Result) Warn(messages ...string) {
	for _, m := range messages {
		r.Warnings = append(r.Warnings, v1.Violation{Message: m, Severity: v1.SeverityWarning})
	}
}

// MaxName is the maximum length of generated names: that of a DNS-1123 label (RFC 1123), which is also short enough for
// the wire.
const MaxName = 63

// UniqueName makes a name unique with eight hexadecimal digits that depend only on the origin of the manifest.
func UniqueName(name, origin string) string {
	sum := sha256.Sum256([]byte(origin))
	cut := strings.TrimRight(name[:min(len(name), MaxName-9)], "-_.")
	return cut + "-" + hex.EncodeToString(sum[:4])
}
