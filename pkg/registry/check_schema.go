package registry

import (
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/validate"
)

// schemaViolations compiles a schema of a manifest and returns its violations at their
// place in the manifest.
func schemaViolations(h *v1.Header, path string, s *validate.Schema) []v1.Violation {
	err := s.Compile()
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*v1.ValidationError](err); ok {
		return under(h, path, invalid.Violations)
	}
	return []v1.Violation{{Path: path, Expected: "a JSON Schema", Got: "something else", Message: err.Error()}}
}
