package executors

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"path"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// mediaTypes holds the media types of files for mock parts. The table of the system is not
// used, since results must not depend on the machine.
var mediaTypes = map[string]string{
	".png": "image/png", ".jpg": "image/jpeg", ".jpeg": "image/jpeg", ".gif": "image/gif", ".webp": "image/webp",
	".svg": "image/svg+xml", ".avif": "image/avif", ".bmp": "image/bmp", ".ico": "image/x-icon", ".tiff": "image/tiff",
	".mp3": "audio/mpeg", ".wav": "audio/wav", ".ogg": "audio/ogg", ".m4a": "audio/mp4", ".flac": "audio/flac",
	".mp4": "video/mp4", ".webm": "video/webm", ".mov": "video/quicktime",
	".pdf": "application/pdf", ".json": "application/json", ".xml": "application/xml", ".html": "text/html",
	".txt": "text/plain", ".md": "text/markdown", ".csv": "text/csv",
}

// Extension returns the file extension for a media type, such as ".png"; ".bin" for an unknown
// one.
func Extension(mediaType string) string {
	ext := ".bin"
	for e, t := range mediaTypes {
		if t == mediaType && (ext == ".bin" || e < ext) {
			ext = e
		}
	}
	return ext
}

// mockParts returns the parts as results have them: data as base64 with a media type,
// and no [v1.Media].
func mockParts(tool *v1.Tool) ([]v1.Part, []v1.Violation) {
	var violations []v1.Violation
	var parts []v1.Part
	for i, p := range tool.Spec.MockParts {
		at := v1.Pointer("/spec/mock_parts", strconv.Itoa(i))
		part, violation := mockPart(tool, p, at)
		if violation != nil {
			violation.Source = tool.Field(violation.Path)
			violations = append(violations, *violation)
		}
		parts = append(parts, part)
	}
	return parts, violations
}

func mockPart(tool *v1.Tool, p v1.Part, at string) (v1.Part, *v1.Violation) {
	field := at + "/data"
	if m := p.Media; m != nil {
		p.Media = nil
		p.Description = cmp.Or(p.Description, m.Caption)
		p.MIMEType = cmp.Or(m.MIMEType, p.MIMEType)
		switch {
		case p.Data != "":
		case m.Data != "":
			field, p.Data = at+"/media/data", m.Data
		case m.FilePath != "":
			data, ok := tool.Files[m.FilePath]
			if !ok {
				return p, &v1.Violation{Path: at + "/media/file_path", Expected: "a file that was loaded with the manifest", Got: fmt.Sprintf("%q", m.FilePath),
					Message: fmt.Sprintf("the file %q was not found when the manifest was loaded", m.FilePath)}
			}
			p.Data = base64.StdEncoding.EncodeToString(data)
			p.MIMEType = cmp.Or(p.MIMEType, mediaTypes[strings.ToLower(path.Ext(m.FilePath))], sniff(data))
			return p, nil
		default:
			p.URI = cmp.Or(p.URI, m.URL)
			p.MIMEType = cmp.Or(p.MIMEType, mediaTypes[strings.ToLower(path.Ext(m.URL))])
		}
	}
	if p.Data == "" {
		return p, nil
	}
	data, err := base64.StdEncoding.DecodeString(p.Data)
	if err != nil {
		return p, &v1.Violation{Path: field, Expected: "base64", Got: "something else", Message: fmt.Sprintf("the data is not base64 (RFC 4648, section 4): %v", err)}
	}
	p.MIMEType = cmp.Or(p.MIMEType, sniff(data))
	return p, nil
}

func sniff(data []byte) string {
	typ, _, _ := strings.Cut(http.DetectContentType(data), ";")
	return typ
}
