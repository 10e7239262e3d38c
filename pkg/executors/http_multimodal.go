package executors

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
)

var defaultAcceptTypes = []string{"image/*", "audio/*", "video/*", "application/pdf"}

// acceptTypes returns the media types that become parts; nil if no type does.
func acceptTypes(m *v1.HTTPMultimodal) []string {
	switch {
	case m == nil || !m.Enabled:
		return nil
	case len(m.AcceptTypes) == 0:
		return defaultAcceptTypes
	}
	return m.AcceptTypes
}

// accepted reports whether the list includes a media type; "image/*" includes every image.
func accepted(list []string, mediaType string) bool {
	for _, t := range list {
		t = strings.ToLower(strings.TrimSpace(t))
		prefix, any := strings.CutSuffix(t, "*")
		if t == mediaType || any && (prefix == "" || prefix == "*/" || strings.HasPrefix(mediaType, prefix)) {
			return true
		}
	}
	return false
}

// acceptHeader returns the default Accept header of a tool.
func acceptHeader(parts []string) string {
	if len(parts) == 0 {
		return "application/json, */*;q=0.8"
	}
	return strings.Join(parts, ", ") + ", application/json;q=0.9, */*;q=0.8"
}

// mediaTypeOf returns the media type of a body from its header, or else from its first bytes.
func mediaTypeOf(header http.Header, body []byte) string {
	named := header.Get("Content-Type")
	if named == "application/json" {
		return named
	}
	if t, _, err := mime.ParseMediaType(named); err == nil || t != "" {
		return t
	}
	t, _, _ := mime.ParseMediaType(http.DetectContentType(body))
	return t
}

// part returns a binary body as a part, and content that describes it.
func part(mediaType string, body []byte) ([]v1.Part, []byte) {
	kind := v1.PartDocument
	switch family, _, _ := strings.Cut(mediaType, "/"); family {
	case "image":
		kind = v1.PartImage
	case "audio":
		kind = v1.PartAudio
	case "video":
		kind = v1.PartVideo
	}
	content := fmt.Sprintf(`{"mime_type":%s,"size":%d}`, jsontext.Quote(mediaType), len(body))
	return []v1.Part{{Type: kind, Data: base64.StdEncoding.EncodeToString(body), MIMEType: mediaType}}, []byte(content)
}
