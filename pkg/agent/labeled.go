package agent

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// The values of spec.result_form: how a model sees a result that is JSON.
const (
	// FormJSON shows the JSON unchanged.
	FormJSON = "json"
	// FormLabeled shows each value on its own line, after its path.
	FormLabeled = "labeled"
)

// maxLabel is the longest path of a labeled line; deeper values are shown as JSON.
const maxLabel = 200

// labeled writes a JSON object or array as a line for each of its values:
//
//	city: Oslo
//	days[0].celsius: 4
//
// It keeps the order and the digits of the JSON. A string of several lines is
// written as JSON, so that a line of a value cannot look like a label. Other JSON, and
// text that is not valid JSON, is returned unchanged.
func labeled(raw json.RawMessage) string {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' && raw[0] != '[' || !json.Valid(raw) {
		return string(raw)
	}
	var b strings.Builder
	label(&b, "", raw)
	return strings.TrimSuffix(b.String(), "\n")
}

func label(b *strings.Builder, path string, raw json.RawMessage) {
	raw = bytes.TrimSpace(raw)
	container := len(raw) > 2 && (raw[0] == '{' || raw[0] == '[')
	if !container || len(path) > maxLabel {
		if path != "" {
			b.WriteString(path + ": ")
		}
		b.WriteString(value(raw))
		b.WriteByte('\n')
		return
	}
	before := b.Len()
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token() // "{" or "[": it is valid JSON
	for n := 0; dec.More(); n++ {
		at := path + "[" + strconv.Itoa(n) + "]"
		if raw[0] == '{' {
			key, _ := dec.Token()
			name, _ := key.(string)
			at = name
			if !plainKey(name) {
				at = strconv.Quote(name)
			}
			if path != "" {
				at = path + "." + at
			}
		}
		var v json.RawMessage
		if dec.Decode(&v) != nil {
			break
		}
		label(b, at, v)
	}
	if b.Len() == before { // such as "{ }"
		b.WriteString(strings.TrimPrefix(path+": ", ": ") + value(raw) + "\n")
	}
}

// plainKey reports whether a key needs no quotes in a path.
func plainKey(s string) bool {
	return s != "" && !strings.ContainsAny(s, ".[]:\"\\ \t\r\n") && strconv.Quote(s) == `"`+s+`"`
}

// value returns a scalar as a line shows it.
func value(raw json.RawMessage) string {
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil && !strings.ContainsAny(s, "\r\n\u0085\u2028\u2029") {
		return s
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}
