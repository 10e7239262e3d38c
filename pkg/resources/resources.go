// Package resources finds the files that manifests declare as resources of MCP
// (MCP specification, server/resources) and gives them as clients read them: as a
// text, or as base64 when their media type or their bytes are none.
//
// The readers of manifests have read the files already, within the bounds and the
// folder that they keep to; nothing is opened here.
package resources

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Resource is one declared file.
type Resource struct {
	v1.FileResource
	// Owner is the manifest, a Tool or a Prompt.
	Owner v1.Key
	// URI is the address that clients read it by.
	URI string
	// Data is the file's content. It must not be changed.
	Data []byte
}

// Of returns the resources of the manifests without violations, with the defaults filled
// in, sorted by address. Of two with one address the first by the owner's kind,
// namespace and name is there.
func Of(objects []v1.Object) []Resource {
	var all []Resource
	for _, o := range objects {
		var declared []v1.FileResource
		switch o := o.(type) {
		case *v1.Tool:
			declared = o.Spec.Resources
		case *v1.Prompt:
			declared = o.Spec.Resources
		}
		h := o.Head()
		if h.Broken() {
			continue
		}
		for _, r := range declared {
			data, ok := h.Files[r.File]
			if !ok {
				continue // an object made in Go, or by a reader that reads no files
			}
			r.Name = cmp.Or(r.Name, path.Base(r.File))
			r.MIMEType = cmp.Or(r.MIMEType, mediaType(r.File, data))
			all = append(all, Resource{r, h.Key(), r.Address(h), data})
		}
	}
	slices.SortStableFunc(all, func(a, b Resource) int {
		return cmp.Or(strings.Compare(a.URI, b.URI), strings.Compare(a.Owner.Kind, b.Owner.Kind),
			strings.Compare(a.Owner.Namespace, b.Owner.Namespace), strings.Compare(a.Owner.Name, b.Owner.Name))
	})
	return slices.CompactFunc(all, func(a, b Resource) bool { return a.URI == b.URI })
}

// Contents returns what a client gets that reads the resource.
func (r *Resource) Contents() v1.Part {
	c := &v1.ResourceContents{URI: r.URI, MIMEType: r.MIMEType}
	if isText(r.MIMEType) && utf8.Valid(r.Data) {
		c.Text = string(r.Data)
	} else {
		c.Blob = base64.StdEncoding.EncodeToString(r.Data)
	}
	return v1.Part{Type: v1.PartResource, Resource: c}
}

// types are the media types of files that people put beside manifests. The tables of
// the machine differ from one to the next.
var types = map[string]string{
	".md": "text/markdown", ".markdown": "text/markdown", ".txt": "text/plain", ".csv": "text/csv", ".html": "text/html", ".htm": "text/html",
	".css": "text/css", ".js": "text/javascript", ".json": "application/json", ".jsonl": "application/jsonl", ".yaml": "application/yaml", ".yml": "application/yaml",
	".toml": "application/toml", ".xml": "application/xml", ".sql": "application/sql", ".svg": "image/svg+xml", ".png": "image/png", ".jpg": "image/jpeg",
	".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp", ".pdf": "application/pdf", ".zip": "application/zip", ".mp3": "audio/mpeg", ".wav": "audio/wav",
}

func mediaType(file string, data []byte) string {
	if t, ok := types[strings.ToLower(path.Ext(file))]; ok {
		return t
	}
	sniffed, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return sniffed
}

// isText reports whether a media type is that of a text.
func isText(mediaType string) bool {
	base, _, _ := strings.Cut(strings.ToLower(mediaType), ";")
	base = strings.TrimSpace(base)
	if strings.HasPrefix(base, "text/") || strings.HasSuffix(base, "+json") || strings.HasSuffix(base, "+xml") || strings.HasSuffix(base, "+yaml") {
		return true
	}
	return slices.Contains([]string{"application/json", "application/jsonl", "application/yaml", "application/x-yaml", "application/toml", "application/xml",
		"application/sql", "application/javascript", "application/x-sh"}, base)
}
