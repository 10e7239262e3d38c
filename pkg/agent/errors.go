package agent

import (
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// ToolHopsError says that the model asked for more rounds of calls than a run may have.
// The calls of its last reply were not made.
type ToolHopsError struct {
	// Hops is the number of rounds.
	Hops int
	// LastReply is the last reply of the model.
	LastReply Reply
}

func (e *ToolHopsError) Error() string {
	var names []string
	for _, c := range e.LastReply.Message.ToolCalls {
		names = append(names, c.Name)
	}
	return fmt.Sprintf("no answer after %s: the model still asks for %s", clip.Count(e.Hops, "hop"), strings.Join(names, ", "))
}

// ResultErrorType returns the type of the error in a result.
func (e *ToolHopsError) ResultErrorType() string { return "tool_hops" }

// OutputError says that an answer does not fit spec.output, and that a second try failed too.
type OutputError struct {
	Prompt string
	// Text is the answer as the model wrote it.
	Text string
	// Invalid lists the violations.
	Invalid *v1.ValidationError
}

func (e *OutputError) Error() string {
	violations := make([]string, len(e.Invalid.Violations))
	for i, f := range e.Invalid.Violations {
		violations[i] = f.String()
	}
	return fmt.Sprintf("prompt %q: the answer does not fit its output schema: %s", e.Prompt, strings.Join(violations, "; "))
}

// Unwrap returns the violations as a [v1.ValidationError] of the type result_invalid.
func (e *OutputError) Unwrap() error { return e.Invalid }

// LimitError says that a run reached one of its bounds.
type LimitError struct {
	// What names the limit, for example "calls of the run".
	What string
	// Limit is the bound, and Got is the number that exceeds it.
	Limit, Got int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the run was stopped: %d %s, and at most %d are allowed", e.Got, e.What, e.Limit)
}

// ResultErrorType is the type of the error in a result.
func (e *LimitError) ResultErrorType() string { return "limit_reached" }

// callError says why a call of the model was not made.
type callError struct{ typ, message string }

func (e *callError) Error() string { return e.message }

// ResultErrorType is the type of the error in a result.
func (e *callError) ResultErrorType() string { return e.typ }

// Types of errors of calls that never reached the registry.
const (
	typeRepeated = "repeated_call"
	typeDepth    = "depth_exceeded"
	typeNotAlone = "submitted_beside_calls"
	typeCut      = "reply_cut_off"
)
