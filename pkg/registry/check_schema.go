package registry

import (
	"errors"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/validate"
)

// schemaFaults compiles a schema of a manifest and returns its faults at their
// place in the manifest.
func schemaFaults(h *v1.Header, path string, s *validate.Schema) []v1.Fault {
	err := s.Compile()
	if err == nil {
		return nil
	}
	var invalid *v1.ValidationError
	if errors.As(err, &invalid) {
		return under(h, path, invalid.Faults)
	}
	return []v1.Fault{{Path: path, Expected: "a JSON Schema", Got: "something else", Message: err.Error()}}
}
