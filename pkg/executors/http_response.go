package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode/utf8"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
)

// tooLargeError says that a body is larger than spec.http.response.max_bytes.
type tooLargeError struct {
	limit int64
	pages bool // the limit applies to all pages together
}

func (e tooLargeError) Error() string {
	if e.pages {
		return fmt.Sprintf("the pages together are larger than %d bytes (spec.http.response.max_bytes)", e.limit)
	}
	return fmt.Sprintf("the response is larger than %d bytes (spec.http.response.max_bytes)", e.limit)
}

// readBody reads a body of at most limit bytes after decompression.
func readBody(resp *http.Response, limit int64) ([]byte, error) {
	if resp.ContentLength > limit && resp.Request.Method != http.MethodHead && resp.StatusCode/100 == 2 {
		return nil, tooLargeError{limit: limit}
	}
	size := int64(512)
	if resp.ContentLength > 0 {
		size = min(resp.ContentLength, 1<<20) + bytes.MinRead // a server may promise more than it sends
	}
	b := bytes.NewBuffer(make([]byte, 0, size))
	_, err := b.ReadFrom(kept{io.LimitReader(resp.Body, limit+1), resp.Request.Context()})
	if int64(b.Len()) > limit {
		return b.Bytes()[:limit], tooLargeError{limit: limit}
	}
	return b.Bytes(), err
}

// kept counts the bytes that are read of a body in the memory budget.
type kept struct {
	io.Reader
	ctx context.Context //nolint:containedctx // it lives as long as one read of a body
}

func (k kept) Read(p []byte) (int, error) {
	n, err := k.Reader.Read(p)
	if full := budget.Keep(k.ctx, n); full != nil {
		return n, full
	}
	return n, err
}

// content returns the result for a body.
//
//   - An empty body is null.
//   - A body of a media type that multimodal accepts is a part.
//   - JSON stays unchanged, regardless of its media type.
//   - Text is {"result": text}. Invalid UTF-8 in text or JSON becomes U+FFFD.
//   - Any other body is a part.
func (p *httpTool) content(ctx context.Context, header http.Header, body []byte, s *secrets) (json.RawMessage, []v1.Part, error) {
	if len(body) == 0 {
		return json.RawMessage("null"), nil, nil
	}
	mediaType := mediaTypeOf(header, body)
	if p.accepts != nil && accepted(p.accepts, mediaType) {
		parts, content := part(mediaType, body)
		return content, parts, nil
	}
	content, isJSON, isText := textOrJSON(mediaType, body)
	if !isJSON && !isText {
		parts, content := part(mediaType, body)
		return content, parts, nil
	}
	content = s.json(content)
	found, err := p.mapped(ctx, content)
	if isText && string(found) == "null" {
		found = content
	}
	return found, nil, err
}

// mapped applies the body_mapping of the response. The redact rules name members of the body, which a
// mapping moves and renames, so they apply before it. Without a mapping, the registry masks the
// content after it has validated the result.
func (p *httpTool) mapped(ctx context.Context, content json.RawMessage) (json.RawMessage, error) {
	if p.resultMapping == nil {
		return content, nil
	}
	if err := budget.Hold(ctx, budget.Weigh(content)); err != nil {
		return nil, err
	}
	return p.resultMapping.apply(redact.JSON(content, p.spec.Redact))
}

// textOrJSON returns a body as JSON: JSON unchanged, text as the member result, and nothing for
// other bodies.
func textOrJSON(mediaType string, body []byte) (content json.RawMessage, isJSON, isText bool) {
	if plain := bytes.TrimPrefix(body, []byte("\ufeff")); jsontext.Valid(plain) {
		if !utf8.Valid(plain) {
			plain = bytes.ToValidUTF8(plain, []byte("\uFFFD"))
		}
		return plain, true, false
	}
	valid := bytes.ToValidUTF8(body, []byte("\uFFFD"))
	family, _, _ := strings.Cut(mediaType, "/")
	if len(valid) != len(body) || bytes.IndexByte(body, 0) >= 0 {
		named := mediaType == "application/json" || strings.HasSuffix(mediaType, "+json") || mediaType == "application/x-www-form-urlencoded"
		if !named && family != "text" && !strings.HasSuffix(mediaType, "xml") {
			return nil, false, false
		}
	}
	return fmt.Appendf(nil, `{"result":%s}`, jsontext.Quote(string(valid))), false, true
}

// maxErrorBody limits the part of an error response that is shown, in bytes.
const maxErrorBody = 2 << 10

// failure describes an unsuccessful response by its status and body.
func (p *httpTool) failure(status string, header http.Header, body []byte, s *secrets) string {
	text := "HTTP " + status
	if shown := problem(header, body, p.redact, s); shown != "" {
		return text + ": " + shown
	}
	if shown := s.foreign(body, p.redact, maxErrorBody); shown != "" {
		return text + ": " + shown
	}
	return text
}

// problem returns problem details (RFC 9457) as a sentence, followed by their other members;
// "" for other bodies.
func problem(header http.Header, body []byte, rules []string, s *secrets) string {
	var members map[string]json.RawMessage
	if mediaTypeOf(header, body) != "application/problem+json" || json.Unmarshal(redact.JSON(body, rules), &members) != nil {
		return ""
	}
	take := func(name string) string {
		var text string
		if json.Unmarshal(members[name], &text) != nil {
			return ""
		}
		delete(members, name)
		return text
	}
	var parts []string
	for _, name := range []string{"title", "detail"} {
		if text := take(name); text != "" {
			parts = append(parts, text)
		}
	}
	text := strings.Join(parts, ": ")
	delete(members, "status")
	if about := take("type"); about != "" && about != "about:blank" {
		text += " (" + about + ")"
	}
	if len(members) > 0 {
		text += " " + string(object(members))
	}
	return s.foreign([]byte(text), nil, maxErrorBody)
}

// isTooLarge reports whether err is about max_bytes.
func isTooLarge(err error) bool {
	var e tooLargeError
	return errors.As(err, &e)
}
