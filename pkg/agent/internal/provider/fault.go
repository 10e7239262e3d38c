package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/agent"
)

const (
	maxMessage = 2000 // length of an error message, in bytes
	maxType    = 100  // length of an error type, in bytes
)

// starred matches a key that the provider has masked in part. The rest of the key must be masked, too.
var starred = regexp.MustCompile(`[\w-]*\*{3,}[\w*-]*`)

// clean masks the secrets in a text, drops control characters and cuts it. Masking comes
// first, so that no half of a key remains after a cut.
func clean(secrets *redact.Masker, text string, most int) string {
	text = secrets.Values(starred.ReplaceAllString(text, redact.Mask))
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text)
	return clip.Bytes(strings.TrimSpace(text), most)
}

func (m *Model) execution(phase, message string, cause error) error {
	return &v1.ExecutionError{Phase: phase, Message: m.api.Name + ": " + clean(m.secrets, message, maxMessage), Cause: cause}
}

// unreachable returns the error for a request without a response.
func (m *Model) unreachable(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		err = outer.Err // without the method and the address, which the outer error repeats
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return m.execution(v1.PhaseConnect, m.host+" closed the connection before it answered", err)
	}
	return m.execution(v1.PhaseConnect, fmt.Sprintf("cannot reach %s: %v; check %s and the network", m.host, err, m.api.URLVar), err)
}

// broke returns the error for a response that broke off or is too large.
func (m *Model) broke(err error) error {
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return m.execution(v1.PhaseValidate, fmt.Sprintf("the response is larger than %d MiB", maxAnswer>>20), nil)
	}
	return m.execution(v1.PhaseExecute, fmt.Sprintf("the response of %s was interrupted: %v", m.host, err), err)
}

// fault returns the error for a response that the reader could not read.
func (m *Model) fault(err error, media string) error {
	refused, isRefused := errors.AsType[*agent.ModelError](err)
	typed, isTyped := errors.AsType[*v1.ExecutionError](err)
	switch {
	case err == nil:
		return nil
	case isRefused:
		return m.finish(refused)
	case isTyped:
		return typed
	case media != "" && media != "text/event-stream" && !strings.HasSuffix(media, "json"):
		return m.execution(v1.PhaseValidate, fmt.Sprintf("%s answers with %s instead of JSON: check %s", m.host, media, m.api.URLVar), nil)
	}
	return m.execution(v1.PhaseValidate, "the response cannot be read: "+reading(err), nil)
}

// refusal returns the error for a response without a success status.
func (m *Model) refusal(status int, body []byte, location string) error {
	e := apiError(body)
	e.Status = status
	if e.Message == "" {
		e.Message = cmp.Or(strings.ToLower(http.StatusText(status)), "the response has no success status")
	}
	switch {
	case status < 400:
		e.Message = "redirected to " + strconv.Quote(location) + ", which is not followed: put the right address into " + m.api.URLVar
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Message = strings.TrimRight(e.Message, ". ") + "; check " + m.keyVar
	case status == http.StatusNotFound:
		e.Message = strings.TrimRight(e.Message, ". ") + "; check the name of the model and " + m.api.URLVar
	}
	return m.finish(e)
}

// finish sets the provider and cleans the texts.
func (m *Model) finish(e *agent.ModelError) error {
	return &agent.ModelError{
		Provider: m.api.Name,
		Status:   e.Status,
		Type:     clean(m.secrets, e.Type, maxType),
		Message:  clean(m.secrets, e.Message, maxMessage),
	}
}

// apiError reads the error in a response. It recognizes the object "error" of OpenAI, Anthropic and Google, alone or
// in a list; a text "error" (Ollama); "message" or "detail" at the top (vLLM and others); and plain text. The message
// is empty if the response has no message.
func apiError(body []byte) *agent.ModelError {
	body = bytes.TrimSpace(body)
	var v any
	if json.Unmarshal(body, &v) != nil && (bytes.HasPrefix(body, []byte("<")) || !utf8.Valid(body)) { // a web page
		return &agent.ModelError{}
	}
	if list, ok := v.([]any); ok && len(list) > 0 {
		v, body = list[0], jsontext.Of(list[0])
	}
	top, ok := v.(map[string]any)
	if !ok {
		return &agent.ModelError{Message: string(body)}
	}
	if text := first(top["error"]); text != "" {
		return &agent.ModelError{Message: text}
	}
	if in, ok := top["error"].(map[string]any); ok {
		return &agent.ModelError{Message: say(in["message"]), Type: first(in["type"], in["status"], in["code"])}
	}
	return &agent.ModelError{Message: cmp.Or(say(top["message"]), say(top["detail"])), Type: first(top["type"], top["code"])}
}

// say formats a JSON value: a string without quotes, any other value as JSON.
func say(v any) string {
	if text, ok := v.(string); ok || v == nil {
		return text
	}
	return string(jsontext.Of(v))
}

// first returns the first value that is a nonempty string.
func first(values ...any) string {
	for _, v := range values {
		if s, ok := v.(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// reading describes why a response cannot be read, without quoting all of it.
func reading(err error) string {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return "not valid JSON: " + syntax.Error()
	case errors.As(err, &wrong):
		return "unexpected JSON " + wrong.Value + " at " + strconv.Quote(wrong.Field)
	}
	return clip.Bytes(err.Error(), 300)
}
