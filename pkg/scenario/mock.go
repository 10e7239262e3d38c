package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/validate"
)

// answerer replaces one executor. It finds the scenario and the call in the context.
type answerer struct {
	name string
	mock registry.Executor
	of   registry.Executor // the real executor if the program added one in Go, or nil
}

// slot receives what an answerer reports about one call besides its result.
type slot struct {
	player   *player
	executed bool
	// took is the duration of the call in virtual time.
	took time.Duration
}

type slotKey struct{}

func (a *answerer) Name() string { return a.name }

// Extension returns the extension of the executor that it replaces.
func (a *answerer) Extension() v1.Extension {
	if x, ok := a.of.(registry.Extender); ok {
		return x.Extension()
	}
	return v1.Extension{}
}

// Execute answers with the scenario's mock of the tool, or with the tool's own mock.
func (a *answerer) Execute(ctx context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	s, ok := ctx.Value(slotKey{}).(*slot)
	if !ok {
		return v1.Result{}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseExecute, Message: "a call outside a scenario"}
	}
	s.executed = true
	if m := s.player.mocks[tool.Key()]; m != nil {
		return m.answer(ctx, s, tool, args)
	}
	return a.own(ctx, s.player, tool, args)
}

// own answers with the mock that the tool declares.
func (a *answerer) own(ctx context.Context, p *player, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	sp := &tool.Spec
	if !declaresMock(sp) {
		message := fmt.Sprintf("tool %q has no mock: add spec.mocks.%s to the scenario, or mock_result to the tool; with --live the real tool is called", tool.Metadata.Name, tool.Metadata.Name)
		p.fail(Failure{Tool: tool.Metadata.Name, What: "mock", Message: message})
		return v1.Result{}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseExecute, Message: "no mock, and scenarios call nothing real"}
	}
	return a.mock.Execute(ctx, tool, args)
}

// declaresMock reports whether a tool has its own mock.
func declaresMock(sp *v1.ToolSpec) bool {
	return len(sp.MockResult) > 0 || cmp.Or(sp.MockTemplate, sp.MockTemplateFile, sp.MockResultFile) != "" || len(sp.MockParts) > 0
}

// mock answers the calls of one tool in one scenario.
type mock struct {
	answerer  *answerer
	responses []*response
	cassette  *tape
	calls     int
}

// response is one prepared response of a mock.
type response struct {
	*v1.MockResponse
	field string
	when  condition
	used  int
	// shadow is the tool with the response as its own mock; nil if the response has no content.
	shadow *v1.Tool
}

// condition reports whether a response applies to a call.
type condition func(args any, call int) (bool, error)

// newMock prepares the mock of a tool. An invalid mock makes the scenario invalid.
func (p *player) newMock(name string, m *v1.Mock, tool *v1.Tool) *mock {
	field := v1.Pointer("/spec/mocks", name)
	out := &mock{answerer: &answerer{mock: p.runner.opts.Mock}}
	if m.Cassette != "" {
		out.cassette = p.newTape(field, m, tool)
	}
	for i := range m.Responses {
		out.responses = append(out.responses, p.newResponse(v1.Pointer(field, "responses", strconv.Itoa(i)), &m.Responses[i], tool))
	}
	own := &m.MockResponse
	switch {
	case own.Error != "" || own.Fault != nil || hasContent(own):
		out.responses = append(out.responses, p.newResponse(field, own, tool))
	case len(m.Responses) == 0 && m.Cassette == "":
		p.invalid(field, "a mock needs one of result, template, error, parts, fault, responses and cassette")
	}
	if out.cassette != nil && len(out.responses) > 0 {
		p.invalid(field+"/cassette", "a mock has either a cassette or answers of its own, not both")
	}
	return out
}

func hasContent(m *v1.MockResponse) bool {
	return len(m.Result) > 0 || m.Template != "" || len(m.Parts) > 0
}

func (p *player) newResponse(field string, m *v1.MockResponse, tool *v1.Tool) *response {
	out := &response{MockResponse: m, field: field}
	var err error
	if out.when, err = newCondition(m.When); err != nil {
		p.invalid(field+"/when", err.Error())
	}
	if m.Error != "" && hasContent(m) {
		p.invalid(field+"/error", "a response either fails or has a result, not both")
	}
	switch {
	case hasContent(m):
		out.shadow = p.shadow(field, m, tool)
	case m.Fault != nil && m.Fault.Kind == faultSchemaViolation && !declaresMock(&tool.Spec):
		// The fault breaks a result that is generated from the tool's schema.
		result, err := Generate(tool, p.spec.Seed)
		if err != nil {
			p.invalid(field+"/fault", err.Error())
			break
		}
		out.shadow = p.shadow(field, &v1.MockResponse{Result: result}, tool)
	}
	return out
}

// shadow returns the tool with a response in place of its mock, so that responses can have
// templates and parts as mocks of tools do.
func (p *player) shadow(field string, m *v1.MockResponse, tool *v1.Tool) *v1.Tool {
	t := *tool
	t.Spec.Simulate()
	t.Spec.MockResult, t.Spec.MockTemplate, t.Spec.MockParts = m.Result, m.Template, m.Parts
	t.Spec.MockResultFile, t.Spec.MockTemplateFile = "", ""
	t.Files = p.res.scenario.Files
	if c, ok := p.runner.opts.Mock.(registry.Checker); ok {
		for _, f := range c.Check(&t) {
			if f.IsWarning() {
				continue // warnings about arguments that may be absent do not matter here
			}
			p.invalid(mockField(field, f.Path), f.Message)
		}
	}
	return &t
}

// mockField converts the place in a tool's mock to the place in a scenario's mock.
func mockField(field, pointer string) string {
	const template, parts = "/spec/mock_template", "/spec/mock_parts"
	switch {
	case pointer == template:
		return field + "/template"
	case len(pointer) > len(parts) && pointer[:len(parts)] == parts:
		return field + "/parts" + pointer[len(parts):]
	}
	return field
}

func (m *mock) answer(ctx context.Context, s *slot, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	m.calls++
	doc, err := validate.Decode(args)
	if err != nil {
		return v1.Result{}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseValidate, Message: err.Error()}
	}
	if m.cassette != nil {
		return m.cassette.play(s, tool, doc)
	}
	for _, r := range m.responses {
		if r.Times > 0 && r.used >= r.Times {
			continue
		}
		fits, err := r.when(doc, m.calls)
		if err != nil {
			s.player.fail(Failure{Tool: tool.Metadata.Name, What: "mock", Message: err.Error(), Field: r.field + "/when"})
			return v1.Result{}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseExecute, Message: "the condition of a mock failed: " + err.Error()}
		}
		if fits {
			r.used++
			return m.give(ctx, s, r, tool, args)
		}
	}
	shown := show(redacted(doc, tool))
	s.player.fail(Failure{Tool: tool.Metadata.Name, What: "mock", Message: fmt.Sprintf("the mock has no response left for call %d of %q with %s", m.calls, tool.Metadata.Name, shown),
		Field: v1.Pointer("/spec/mocks", tool.Metadata.Name)})
	return v1.Result{}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseExecute, Message: "the mock has no response left"}
}

// give returns the fault, the error or the content of a response, or the result of the tool's own mock.
func (m *mock) give(ctx context.Context, s *slot, r *response, tool *v1.Tool, args json.RawMessage) (v1.Result, error) {
	content := func() (v1.Result, error) {
		if r.shadow != nil {
			return m.answerer.mock.Execute(ctx, r.shadow, args)
		}
		return m.answerer.own(ctx, s.player, tool, args)
	}
	if f := r.Fault; f != nil && s.player.happens(f.Probability) {
		if res, err, done := breakCall(s, tool, f, content); done {
			return res, err
		}
	}
	if r.Error != "" {
		return v1.Result{Status: v1.StatusFailed, Attempts: 1}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseExecute, Message: r.Error}
	}
	return content()
}

// happens decides by a random number from the scenario's seed. A certain event uses no random number.
func (p *player) happens(probability *float64) bool {
	return probability == nil || *probability >= 1 || p.random.Float64() < *probability
}
