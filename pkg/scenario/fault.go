package scenario

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/validate"
)

// Kinds of [v1.MockFault].
const (
	faultLatency         = "latency"
	faultTimeout         = "timeout"
	faultStatus          = "status"
	faultDisconnect      = "disconnect"
	faultMalformed       = "malformed"
	faultOversize        = "oversize"
	faultSchemaViolation = "schema_violation"
)

// oversizeBytes is the default limit of the HTTP executor for responses. An oversize fault only
// reports it and builds no response.
const oversizeBytes = 10 << 20

// breakCall fails a call with the error that the real fault would cause. done is false if the
// call continues, later in virtual time.
func breakCall(s *slot, tool *v1.Tool, f *v1.MockFault, content func() (v1.Result, error)) (res v1.Result, err error, done bool) {
	fail := func(status, phase, message string) (v1.Result, error, bool) {
		return v1.Result{Status: status, Attempts: 1}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: phase, Message: message}, true
	}
	switch f.Kind {
	case faultLatency:
		limit := timeLimit(tool)
		if s.took += time.Duration(f.MS) * time.Millisecond; s.took < limit {
			return v1.Result{}, nil, false
		}
		return timedOut(s, tool)
	case faultTimeout:
		return timedOut(s, tool)
	case faultStatus:
		status := cmp.Or(f.Status, http.StatusInternalServerError)
		name := cmp.Or(http.StatusText(status), "no name")
		return fail(v1.StatusFailed, v1.PhaseExecute, fmt.Sprintf("HTTP status %d %s", status, name))
	case faultDisconnect:
		return fail("", v1.PhaseConnect, "the connection was closed before the answer came")
	case faultMalformed:
		return fail("", v1.PhaseValidate, "the answer is not JSON: unexpected end of JSON input")
	case faultOversize:
		return fail("", v1.PhaseValidate, fmt.Sprintf("the response is larger than %d bytes", oversizeBytes))
	case faultSchemaViolation:
		res, err := content()
		if err != nil {
			return res, err, true
		}
		broken, ok := s.player.violate(tool, res.Content)
		if !ok {
			s.player.fail(Failure{Tool: tool.Metadata.Name, What: "mock", Message: fmt.Sprintf("fault schema_violation: tool %q has no output_schema that a result could break", tool.Metadata.Name)})
		}
		res.Content = broken
		return res, nil, true
	}
	return fail("", v1.PhaseExecute, "unknown fault "+f.Kind)
}

func timeLimit(tool *v1.Tool) time.Duration {
	ms := cmp.Or(tool.Spec.TimeoutMS, v1.DefaultTimeoutMS)
	return time.Duration(ms) * time.Millisecond
}

// timedOut returns the error of the registry for a tool that does not answer in time.
func timedOut(s *slot, tool *v1.Tool) (v1.Result, error, bool) {
	limit := timeLimit(tool)
	s.took = limit
	return v1.Result{}, &v1.ExecutionError{Tool: tool.Metadata.Name, Phase: v1.PhaseTimeout, Message: fmt.Sprintf("timed out after %s", clip.Duration(limit)), Cause: context.DeadlineExceeded}, true
}

// violate changes content as little as possible so that it violates the tool's output schema:
// it drops a required member, changes the type of a member, or changes the type of the whole.
func (p *player) violate(tool *v1.Tool, content json.RawMessage) (json.RawMessage, bool) {
	if len(tool.Spec.OutputSchema) == 0 {
		return content, false
	}
	schema := p.runner.schema(tool, tool.Spec.OutputSchema)
	breaks := func(doc any) bool {
		violations, err := schema.Validate(doc)
		return err == nil && len(violations) > 0
	}
	doc, err := validate.Decode(content)
	if err != nil {
		return content, false
	}
	if object, ok := doc.(map[string]any); ok {
		for _, try := range []func(map[string]any, string){
			func(o map[string]any, key string) { delete(o, key) },
			func(o map[string]any, key string) { o[key] = map[string]any{"broken": true} },
			func(o map[string]any, key string) { o[key] = "broken" },
		} {
			for _, key := range sortedKeys(object) {
				changed := make(map[string]any, len(object))
				maps.Copy(changed, object)
				try(changed, key)
				if breaks(changed) {
					return jsontext.Of(changed), true
				}
			}
		}
	}
	for _, other := range []any{nil, "broken", json.Number("-1"), true, []any{}, map[string]any{}} {
		if breaks(other) {
			return jsontext.Of(other), true
		}
	}
	return content, false
}

// schema compiles a schema of a tool, as the registry does.
func (r *Runner) schema(tool *v1.Tool, raw json.RawMessage) *validate.Schema {
	draft := validate.Draft2020
	if tool.FromPromptKit() {
		draft = validate.Draft7
	}
	return r.schemas.Schema(raw, draft)
}
