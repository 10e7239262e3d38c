package scripted

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Parse reads a script in JSON: a list of replies, or an object with such a list in its
// member replies. Paths of violations start at the root of the script.
func Parse(raw json.RawMessage) ([]v1.ModelReply, []v1.Violation) {
	base := ""
	if v1.JSONKind(raw) == "object" {
		var file map[string]json.RawMessage
		if err := json.Unmarshal(raw, &file); err != nil {
			return nil, []v1.Violation{{Expected: "a script", Got: "text that is not valid JSON", Message: err.Error()}}
		}
		for key := range file {
			if key != "replies" {
				return nil, []v1.Violation{{Path: v1.Pointer("", key), Expected: "replies", Got: key, Message: fmt.Sprintf("unknown field %q: expected replies", key)}}
			}
		}
		raw, base = file["replies"], "/replies"
	}
	if kind := v1.JSONKind(raw); kind != "array" {
		return nil, []v1.Violation{{Path: base, Expected: "a list of replies", Got: kind, Message: "expected a list of replies with text or tool_calls, got " + kind}}
	}
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, []v1.Violation{{Path: base, Expected: "a list of replies", Got: "text that is not valid JSON", Message: err.Error()}}
	}
	replies := make([]v1.ModelReply, len(items))
	var violations []v1.Violation
	for i, item := range items {
		dec := json.NewDecoder(bytes.NewReader(item))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&replies[i]); err != nil {
			violations = append(violations, replyViolation(fmt.Sprintf("%s/%d", base, i), i+1, item, err))
		}
	}
	if violations != nil {
		return nil, violations
	}
	return replies, check(base, replies)
}

// replyViolation describes why item number n, at path, is not a reply.
func replyViolation(path string, n int, item json.RawMessage, err error) v1.Violation {
	f := v1.Violation{Path: path, Expected: "a reply", Got: v1.JSONKind(item), Message: strings.TrimPrefix(err.Error(), "json: ")}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		f.Expected, f.Got = jsonType(wrong.Type), strings.Fields(wrong.Value)[0]
		if wrong.Field != "" {
			f.Path = v1.Pointer(path, strings.Split(wrong.Field, ".")...)
		}
		f.Message = fmt.Sprintf("expected %s, got %s", f.Expected, f.Got)
	}
	f.Message = fmt.Sprintf("reply %d: %s; a reply has text, tool_calls, stop, error and sees", n, f.Message)
	return f
}

// jsonType returns the JSON type for a Go type of a reply.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "string"
	case reflect.Slice:
		return "array"
	case reflect.Bool:
		return "boolean"
	default:
		return "object"
	}
}

// check applies the rules for the replies of a Scenario.
func check(base string, replies []v1.ModelReply) []v1.Violation {
	s := v1.NewObject(v1.KindScenario).(*v1.Scenario)
	s.Metadata.Name, s.Spec.Turns = "script", []v1.Turn{{Model: replies}}
	const at = "/spec/turns/0/model"
	var violations []v1.Violation
	for _, f := range s.Validate() {
		if path, ok := strings.CutPrefix(f.Path, at); ok {
			f.Path = base + path
			violations = append(violations, f)
		}
	}
	return violations
}
