package v1

import (
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"strconv"
	"strings"
)

// FileResource is a file next to a manifest that MCP clients can read as a resource (MCP specification,
// server/resources), such as the text that explains a tool.
type FileResource struct {
	// File is the file, relative to the manifest; it must be inside the given folder. Required. Example: docs/units.md.
	File string `json:"file" check:"required"`
	// URI is the address that clients read it by. Default: file:///NAMESPACE/NAME/FILE, with
	// the namespace and name of the manifest. Example: docs://weather/units.
	URI string `json:"uri,omitempty"`
	// Name is a short name. Default: the file's name without its folder. Example: units.
	Name string `json:"name,omitempty"`
	// Title is a name for people. Example: Units of measurement.
	Title string `json:"title,omitempty"`
	// Description describes the content of the file.
	Description string `json:"description,omitempty"`
	// MIMEType is the media type, which decides whether clients get a text or a blob.
	// Default: by the file's name, else by its content. Example: text/markdown.
	MIMEType string `json:"mime_type,omitempty"`
	// Annotations are the MCP annotations of the resource. Example: {audience: [assistant], priority: 0.8}.
	Annotations json.RawMessage `json:"annotations,omitempty"`
}

// MaxFileResources is the maximum number of resources of one manifest.
const MaxFileResources = 100

// Address returns the URI of a resource of the manifest with this header.
func (r *FileResource) Address(h *Header) string {
	if r.URI != "" {
		return r.URI
	}
	u := url.URL{Scheme: "file", Path: path.Join("/", h.Namespace(), h.Metadata.Name, path.Join("/", r.File))}
	return "file://" + u.EscapedPath()
}

// resourceViolations returns the violations in the resources of a manifest.
func resourceViolations(h *Header, at string, all []FileResource) []Violation {
	var fs []Violation
	if len(all) > MaxFileResources {
		fs = append(fs, Violation{Path: at, Expected: fmt.Sprintf("at most %d", MaxFileResources), Got: strconv.Itoa(len(all)), Message: fmt.Sprintf("%d resources: expected at most %d", len(all), MaxFileResources)})
	}
	seen := map[string]bool{}
	for i := range all {
		r := &all[i]
		p := Pointer(at, strconv.Itoa(i))
		if u, err := url.Parse(r.URI); r.URI != "" && (err != nil || !u.IsAbs() || strings.ContainsAny(r.URI, " \t\n")) {
			fs = append(fs, Violation{Path: p + "/uri", Expected: "an absolute URI", Got: quote(r.URI), Message: fmt.Sprintf("%q is not an absolute URI (RFC 3986): expected one such as docs://weather/units", clip(r.URI))})
		}
		if typ, sub, ok := strings.Cut(r.MIMEType, "/"); r.MIMEType != "" && (!ok || typ == "" || sub == "" || strings.ContainsAny(r.MIMEType, " \t\n,")) {
			fs = append(fs, Violation{Path: p + "/mime_type", Expected: "a media type", Got: quote(r.MIMEType), Message: fmt.Sprintf("%q is not a media type: expected one such as text/markdown", clip(r.MIMEType))})
		}
		if len(r.Annotations) > 0 && JSONKind(r.Annotations) != "object" {
			fs = append(fs, Violation{Path: p + "/annotations", Expected: "an object", Got: JSONKind(r.Annotations), Message: "annotations must be an object, got " + JSONKind(r.Annotations)})
		}
		if r.File == "" {
			continue
		}
		if a := r.Address(h); seen[a] {
			fs = append(fs, Violation{Path: p, Expected: "an address of its own", Got: quote(a), Message: fmt.Sprintf("the resource %s is declared twice: give one a uri", clip(a))})
		} else {
			seen[a] = true
		}
	}
	return fs
}
