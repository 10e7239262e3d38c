package scenario

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/validate"
)

// params are the parameters of all assertions, with PromptKit's names. Where
// PromptKit has two names for one thing, both are read.
type params struct {
	Tools            []string        `json:"tools"`
	ToolNames        []string        `json:"tool_names"`
	Tool             string          `json:"tool"`
	ToolName         string          `json:"tool_name"`
	Min              *int            `json:"min"`
	Max              *int            `json:"max"`
	Count            *int            `json:"count"`
	MinCalls         *int            `json:"min_calls"`
	MaxCalls         *int            `json:"max_calls"`
	IgnoreValidation bool            `json:"ignore_validation"`
	RequireArgs      bool            `json:"require_args"`
	ExpectedArgs     json.RawMessage `json:"expected_args"`
	Args             json.RawMessage `json:"args"`
	ArgsMatch        json.RawMessage `json:"args_match"`
	Sequence         []string        `json:"sequence"`
	Patterns         []string        `json:"patterns"`
	Rule             string          `json:"rule"`
	Policy           string          `json:"policy"`
	Message          string          `json:"message"` // of PromptKit; the assertion's own wins
}

// assertion is one kind: the parameters it knows, what it needs of them, and what
// is wrong with a run, "" when nothing is.
type assertion struct {
	params []string
	need   func(*params) string
	check  func(*params, []Turn) (expected, got string)
}

// assertions are all kinds.
func assertions() map[string]assertion {
	tools := func(q *params) string {
		if len(q.tools()) == 0 {
			return "tools"
		}
		return ""
	}
	args := func(q *params) string {
		if q.tool() == "" {
			return "tool_name"
		}
		if len(q.args()) == 0 && len(q.ArgsMatch) == 0 {
			return "expected_args or args_match"
		}
		return ""
	}
	order := func(q *params) string {
		if len(q.Sequence)+len(q.tools()) == 0 {
			return "sequence"
		}
		return ""
	}
	return map[string]assertion{
		"tools_called":     {[]string{"tools", "tool_names", "min_calls", "max_calls", "ignore_validation", "require_args"}, tools, toolsCalled},
		"tools_not_called": {[]string{"tools", "tool_names"}, tools, toolsNotCalled},
		"tool_call_count": {[]string{"tool", "tool_name", "min", "max", "count"}, func(q *params) string {
			if q.Min == nil && q.Max == nil && q.Count == nil {
				return "min, max or count"
			}
			return ""
		}, toolCallCount},
		"tool_call_args":  {[]string{"tool", "tool_name", "expected_args", "args", "args_match"}, args, toolCallArgs},
		"tool_call_order": {[]string{"sequence", "tools", "tool_names"}, order, toolCallOrder},
		"no_tool_errors":  {[]string{"tools", "tool_names"}, nil, noToolErrors},
		"content_includes": {[]string{"patterns"}, func(q *params) string {
			if len(q.Patterns) == 0 {
				return "patterns"
			}
			return ""
		}, contentIncludes},
		"policy_refusals": {[]string{"tools", "tool_names", "rule", "policy", "min", "max", "count"}, nil, policyRefusals},
	}
}

func (p *player) assertion(a *v1.Assertion) (assertion, bool) {
	name := a.Type
	if p.promptKit {
		name = v1.PromptKitAssertion(name)
	}
	kind, ok := p.runner.asserts[name]
	return kind, ok
}

// checkAssertions finds assertions that cannot be judged. In a manifest of
// PromptKit's they are named and passed over.
func (p *player) checkAssertions(field string, list []v1.Assertion) {
	for i := range list {
		at := v1.Pointer(field, strconv.Itoa(i))
		kind, ok := p.assertion(&list[i])
		if !ok {
			why := "is not about tools"
			if strings.HasPrefix(list[i].Type, "tool") {
				why = "is not known"
			}
			p.warn(at+"/type", "assertion %q %s: it is not judged", list[i].Type, why)
			continue
		}
		_, message := kind.read(list[i].Params)
		switch {
		case message == "":
		case p.promptKit:
			p.warn(at+"/params", "assertion %q is not judged: %s", list[i].Type, message)
		default:
			p.invalid(at+"/params", message)
		}
	}
}

// read reads the parameters of an assertion; message says what is wrong with them.
func (a *assertion) read(raw json.RawMessage) (_ *params, message string) {
	q := &params{}
	given := map[string]json.RawMessage{}
	if len(raw) > 0 {
		if err := json.Unmarshal(raw, &given); err != nil {
			return nil, "the parameters must be an object, got " + v1.JSONKind(raw)
		}
	}
	for _, key := range sortedKeys(given) {
		if slices.Contains(a.params, key) || key == "message" {
			continue
		}
		message = fmt.Sprintf("unknown parameter %q: expected %s", key, strings.Join(a.params, ", "))
		if near := v1.Nearest(key, a.params); near != "" {
			message += fmt.Sprintf("; did you mean %q?", near)
		}
		return nil, message
	}
	if err := json.Unmarshal(raw, q); len(raw) > 0 && err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			return nil, fmt.Sprintf("parameter %q: expected %s, got %s", wrong.Field, jsonType(wrong.Type), wrong.Value)
		}
		return nil, "cannot read the parameters: " + err.Error()
	}
	if a.need != nil {
		if missing := a.need(q); missing != "" {
			return nil, "the parameter " + missing + " is missing"
		}
	}
	if len(q.ArgsMatch) > 0 {
		patterns := map[string]string{}
		if err := json.Unmarshal(q.ArgsMatch, &patterns); err != nil {
			return nil, "args_match must be an object of regular expressions"
		}
		for _, name := range sortedKeys(patterns) {
			if _, err := regexp.Compile(patterns[name]); err != nil {
				return nil, fmt.Sprintf("args_match.%s is no regular expression (RE2): %v", name, err)
			}
		}
	}
	return q, ""
}

// jsonType names a Go type of a parameter as people write it.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Slice:
		return "a list of strings"
	case reflect.Bool:
		return "true or false"
	case reflect.Int:
		return "a whole number"
	}
	return "a string"
}

// assert judges assertions on turns.
func (p *player) assert(field string, list []v1.Assertion, turns []Turn) {
	for i := range list {
		kind, ok := p.assertion(&list[i])
		if !ok {
			continue
		}
		q, message := kind.read(list[i].Params)
		if message != "" {
			continue // named before
		}
		if expected, got := kind.check(q, turns); expected != "" {
			text := list[i].Message
			if text == "" {
				text = q.Message
			}
			p.fail(Failure{What: list[i].Type, Expected: expected, Got: got, Message: text, Field: v1.Pointer(field, strconv.Itoa(i))})
		}
	}
}

func (q *params) tools() []string {
	if len(q.Tools) > 0 {
		return q.Tools
	}
	return q.ToolNames
}

func (q *params) tool() string {
	if q.Tool != "" {
		return q.Tool
	}
	return q.ToolName
}

func (q *params) args() json.RawMessage {
	if len(q.ExpectedArgs) > 0 {
		return q.ExpectedArgs
	}
	return q.Args
}

// decode reads a parameter that the manifest's reader let through.
func decode(raw json.RawMessage) any {
	doc, err := validate.Decode(raw)
	if err != nil {
		return nil
	}
	return doc
}
