package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/template"
)

// mock returns results from the manifest: mock_template takes precedence over mock_result, and inline values over
// files; mock_parts is added to either. A tool must not change after its first call, because the prepared result is
// cached.
type mock struct{ answers perTool[*mockAnswer] }

func newMock() *mock { return &mock{} }

// Name returns "mock".
func (*mock) Name() string { return v1.ModeMock }

// Execute returns the declared result. A static result shares memory with the manifest, so
// callers must not change it. A template that renders invalid JSON, or a tool without a
// result, is a [v1.ExecutionError].
func (m *mock) Execute(ctx context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	s := &tool.Spec
	if len(s.MockResult) > 0 && s.MockTemplate == "" && s.MockTemplateFile == "" && len(s.MockParts) == 0 {
		return v1.Result{Status: v1.StatusComplete, Content: s.MockResult, Attempts: 1}, nil
	}
	a := m.answer(tool)
	if len(a.violations) > 0 {
		return v1.Result{}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseExecute, Message: violationText(a.violations)}
	}
	res := v1.Result{Status: v1.StatusComplete, Content: a.content, Attempts: 1}
	if a.template != nil {
		var err error
		if res.Content, err = render(ctx, a.template, tool, args); err != nil {
			return v1.Result{}, err
		}
	}
	res.Parts = slices.Clone(a.parts) // a copy, because the registry masks the contents
	return res, nil
}

func violationText(violations []v1.Violation) string {
	texts := make([]string, len(violations))
	for i, f := range violations {
		texts[i] = v1.FieldPath(f.Path) + ": " + f.Message
		if !f.Source.IsZero() {
			texts[i] = f.Source.String() + ": " + texts[i]
		}
	}
	return strings.Join(texts, "; ")
}

// Check returns the violations that would fail every call of the tool: templates that do not
// parse, files that were not loaded or are not JSON, parts without content.
func (m *mock) Check(tool *v1.Tool) []v1.Violation {
	a := m.answer(tool)
	return slices.Concat(a.violations, arguments(tool, a.uses))
}

// mockAnswer is a prepared tool: either content or template is set.
type mockAnswer struct {
	content    json.RawMessage
	template   *template.JSON
	uses       []use
	parts      []v1.Part
	violations []v1.Violation
}

func (m *mock) answer(tool *v1.Tool) *mockAnswer {
	return m.answers.of(tool, func() *mockAnswer { return prepare(tool) })
}

// promptKitResult is the result in PromptKit of a tool that declares no result.
const promptKitResult = `{"result": "mock response"}`

func prepare(tool *v1.Tool) *mockAnswer {
	s := &tool.Spec
	a := &mockAnswer{}
	a.parts, a.violations = mockParts(tool)
	violation := func(path, expected, got, msg string) {
		a.violations = append(a.violations, v1.Violation{Path: path, Expected: expected, Got: got, Message: msg, Source: tool.Field(path)})
	}
	parse := func(path, name, src string) {
		read := template.ParseJSON
		if tool.FromPromptKit() {
			read = template.ParseLenient
		}
		t, err := read(name, src)
		if err != nil {
			msg := strings.TrimPrefix(err.Error(), "mock_template: ") // the path already names the field
			violation(path, "a Go template", "a template that cannot be read", msg)
		}
		if a.template = t; t != nil {
			a.uses = append(a.uses, useOf(path, t))
		}
	}
	file := func(path, name string) []byte {
		data, ok := tool.Files[name]
		if !ok {
			violation(path, "a file that was loaded with the manifest", fmt.Sprintf("%q", name), fmt.Sprintf("the file %q was not found when the manifest was loaded", name))
		}
		return bytes.TrimPrefix(data, []byte("\ufeff"))
	}
	switch {
	case s.MockTemplate != "":
		parse("/spec/mock_template", "mock_template", s.MockTemplate)
	case s.MockTemplateFile != "":
		if data := file("/spec/mock_template_file", s.MockTemplateFile); len(a.violations) == 0 {
			parse("/spec/mock_template_file", s.MockTemplateFile, string(data))
		}
	case len(s.MockResult) > 0:
		a.content = s.MockResult
	case s.MockResultFile != "":
		a.content = bytes.TrimSpace(file("/spec/mock_result_file", s.MockResultFile))
		if err := notJSON(a.content); err != nil && len(a.violations) == 0 {
			violation("/spec/mock_result_file", "JSON", "something else", fmt.Sprintf("the file %q is not JSON: %v", s.MockResultFile, err))
		}
	case len(s.MockParts) > 0:
		a.content = textContent(a.parts)
	case tool.FromPromptKit():
		a.content = json.RawMessage(promptKitResult)
	default:
		violation("/spec", "mock_result, mock_template or mock_parts", "none of them",
			"the tool has mode mock and declares no result: set mock_result, mock_template, mock_result_file, mock_template_file or mock_parts")
	}
	return a
}

func notJSON(data []byte) error {
	var doc json.RawMessage
	return json.Unmarshal(data, &doc)
}

// textContent returns the content of a tool that declares only parts: the text if there is
// exactly one text part, as for an MCP result, else null.
func textContent(parts []v1.Part) json.RawMessage {
	isText := func(p v1.Part) bool { return p.Type == v1.PartText }
	i := slices.IndexFunc(parts, isText)
	if i < 0 || slices.ContainsFunc(parts[i+1:], isText) {
		return json.RawMessage("null")
	}
	text, err := json.Marshal(parts[i].Text)
	if err != nil {
		return json.RawMessage("null") // cannot happen: a string always marshals
	}
	return text
}

// maxShown limits the rendered text in an error, in bytes.
const maxShown = 500

func render(ctx context.Context, t *template.JSON, tool *v1.Tool, args json.RawMessage) (json.RawMessage, error) {
	fail := func(phase, msg string, cause error) error {
		return &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: phase, Message: msg, Cause: cause}
	}
	values, err := valuesOf(args)
	if err != nil {
		return nil, fail(v1.PhaseValidate, "the arguments are not a JSON object", err)
	}
	out, err := t.Render(ctx, values)
	var violation *template.Error
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fail(v1.PhaseTimeout, err.Error(), err)
	case errors.As(err, &violation) && len(violation.Output) > 0:
		shown := shown(violation.Output)
		if len(tool.RedactRules()) > 0 {
			shown = "not shown, since spec.redact masks parts of it"
		}
		return nil, fail(v1.PhaseExecute, err.Error()+"; the text is "+shown, err)
	}
	return nil, fail(v1.PhaseExecute, err.Error(), err)
}

func shown(text []byte) string {
	if len(text) <= maxShown {
		return string(text)
	}
	return fmt.Sprintf("%s (%d bytes)", clip.Bytes(string(text), maxShown), len(text))
}
