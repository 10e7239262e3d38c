package openapi

import (
	"fmt"
	"io"

	"toolctl.dev/toolctl/pkg/manifest"
)

// WriteStream writes the manifests as one stream of YAML documents.
func (s *Set) WriteStream(w io.Writer) error {
	for i, t := range s.Tools {
		text, err := manifest.MarshalYAML(t.Manifest)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Manifest.Metadata.Name, err)
		}
		if i > 0 {
			text = append([]byte("---\n"), text...)
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}
