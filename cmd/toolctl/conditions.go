package main

import (
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

// statedObject is an object that is printed with its status.
type statedObject struct {
	v1.Object
	status v1.Status
}

// MarshalJSON appends the status to the fields of the manifest.
func (o statedObject) MarshalJSON() ([]byte, error) {
	text, err := jsontext.Marshal(o.Object)
	if err != nil {
		return nil, err
	}
	status, err := jsontext.Marshal(o.status)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-1], `,"status":`...)
	return append(append(text, status...), '}'), nil
}

// showsStatus reports whether list shows the status of objects in a format. It prints manifests of files as
// they are written.
func showsStatus(format string, files bool) bool {
	name, template, _ := strings.Cut(format, "=")
	return !files && (name == "json" || name == "yaml") || strings.Contains(template, "status")
}
