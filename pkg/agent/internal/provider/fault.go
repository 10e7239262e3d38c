package provider

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/agent"
)

const (
	maxMessage = 2000 // bytes of an error's message
	maxType    = 100  // bytes of an error's type
)

// starred is a key that a provider has hidden in part: what is left of it is hidden too.
var starred = regexp.MustCompile(`[\w-]*\*{3,}[\w*-]*`)

// clean masks the secrets of a text, drops control characters and bounds it. Masking
// comes first, so that no cut leaves half a key.
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

// refusal is the error of an answer with a status that is no success.
func (c *Client) refusal(status int, body []byte, location string) error {
	e := APIError(body)
	e.Status = status
	if e.Message == "" {
		e.Message = cmp.Or(strings.ToLower(http.StatusText(status)), "an answer that is not a success")
	}
	switch {
	case status < 400:
		e.Message = "redirected to " + strconv.Quote(location) + ", which is not followed: put the right address into " + c.config.URLVar
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		e.Message = strings.TrimRight(e.Message, ". ") + "; check " + c.config.KeyVar
	case status == http.StatusNotFound:
		e.Message = strings.TrimRight(e.Message, ". ") + "; check the name of the model and " + c.config.URLVar
	}
	return c.finish(e)
}

// finish names the provider and cleans the texts.
func (c *Client) finish(e *agent.ModelError) error {
	return &agent.ModelError{
		Provider: c.config.Name,
		Status:   e.Status,
		Type:     clean(c.secrets, e.Type, maxType),
		Message:  clean(c.secrets, e.Message, maxMessage),
	}
}

// APIError reads the error in an answer. All known shapes are read: the object
// "error" of OpenAI, Anthropic and Google, alone or in a list; a text "error" (Ollama);
// "message" or "detail" at the top (vLLM and others); and plain text. Its message is
// empty when there is nothing to show.
func APIError(body []byte) *agent.ModelError {
	body = bytes.TrimSpace(body)
	var list []json.RawMessage
	if json.Unmarshal(body, &list) == nil && len(list) > 0 {
		body = list[0]
	}
	var top struct {
		Error   json.RawMessage `json:"error"`
		Message any             `json:"message"`
		Detail  any             `json:"detail"`
		Type    any             `json:"type"`
		Code    any             `json:"code"`
	}
	if err := json.Unmarshal(body, &top); err != nil {
		if bytes.HasPrefix(body, []byte("<")) || !utf8.Valid(body) { // a web page
			return &agent.ModelError{}
		}
		return &agent.ModelError{Message: string(body)}
	}
	var in struct {
		Message any `json:"message"`
		Type    any `json:"type"`
		Status  any `json:"status"`
		Code    any `json:"code"`
	}
	var text string
	switch {
	case json.Unmarshal(top.Error, &text) == nil && text != "":
		return &agent.ModelError{Message: text}
	case json.Unmarshal(top.Error, &in) == nil && bytes.HasPrefix(bytes.TrimSpace(top.Error), []byte("{")):
		return &agent.ModelError{Message: say(in.Message), Type: first(in.Type, in.Status, in.Code)}
	}
	message := say(top.Message)
	if message == "" {
		message = say(top.Detail)
	}
	return &agent.ModelError{Message: message, Type: first(top.Type, top.Code)}
}

// say returns a JSON value as text: a string as it is, all else as JSON.
func say(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	text, err := json.Marshal(v)
	if err != nil {
		return ""
	}
	return string(text)
}

// first is the first of the values that is a text.
func first(values ...any) string {
	for _, v := range values {
		if s, ok := v.(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// reading is what is wrong with an answer in few words: and not the whole answer.
func reading(err error) string {
	var syntax *json.SyntaxError
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return "not valid JSON: " + syntax.Error()
	case errors.As(err, &wrong):
		return "unexpected JSON " + wrong.Value + " at " + strconv.Quote(strings.TrimPrefix(wrong.Field, "Alias."))
	case err == nil:
		return "it is empty"
	}
	return clip.Bytes(err.Error(), 300)
}
