package scenario

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/prompt"
)

// States of a [Result].
const (
	// Passed: all expectations were met.
	Passed = "passed"
	// Failed: an expectation was not met.
	Failed = "failed"
	// Invalid: the manifest has violations or unknown names, so it was not played.
	Invalid = "invalid"
	// Skipped: nothing was judged, or an earlier scenario failed.
	Skipped = "skipped"
)

// Report is the outcome of scenarios, in their order.
type Report struct {
	Scenarios []Result `json:"scenarios"`
	Passed    int      `json:"passed"`
	Failed    int      `json:"failed"`
	Invalid   int      `json:"invalid"`
	Skipped   int      `json:"skipped"`
	// Judged counts the judged checks of all scenarios, and Total all their checks.
	Judged int `json:"judged"`
	Total  int `json:"total"`
	// Judge is the use of the judge model; nil if it was not used.
	Judge *JudgeUse `json:"judge,omitempty"`
}

// Result is the outcome of one scenario.
type Result struct {
	Name        string `json:"name"`
	Namespace   string `json:"namespace"`
	Description string `json:"description,omitempty"`
	// Status is [Passed], [Failed], [Invalid] or [Skipped].
	Status string    `json:"status"`
	Source v1.Source `json:"source,omitzero"`
	Turns  []Turn    `json:"turns"`
	// Judged counts the expectations and assertions that were judged, and Total all expectations and assertions.
	Judged int `json:"judged"`
	Total  int `json:"total"`
	// Reason says why a scenario is [Skipped].
	Reason string `json:"reason,omitempty"`
	// Unjudged are the assertions that were not judged.
	Unjudged []Unjudged `json:"unjudged"`
	// Judge is the use of the judge model; nil if it was not used.
	Judge *JudgeUse `json:"judge,omitempty"`
	// Failures are the expectations that were not met, in the order of the play.
	Failures []Failure `json:"failures"`
	// Warnings name the parts of the manifest that were not played, and recorded
	// results that no longer fit their schema.
	Warnings []v1.Violation `json:"warnings"`
	// DurationMS is the sum of the durations of all calls, in milliseconds.
	DurationMS float64 `json:"duration_ms"`

	scenario *v1.Scenario
}

// Scenario returns the manifest that was played.
func (r *Result) Scenario() *v1.Scenario { return r.scenario }

// Judgement returns how many checks were judged, and the reason if no check was judged.
func (r *Result) Judgement() string {
	text := fmt.Sprintf("%d of %d checks", r.Judged, r.Total)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// Turn is one turn that was played.
type Turn struct {
	// Text is the text of the scripted model.
	Text string `json:"text,omitempty"`
	// Parts are the multimodal parts of its replies.
	Parts []v1.Part `json:"parts,omitempty"`
	// Calls are the calls, including those of a scripted model.
	Calls []Call `json:"calls"`
	// Validators are the verdicts of validators that refused or cut a text.
	Validators []prompt.Verdict `json:"validators,omitempty"`

	user    string   // the text of the user, including the rendered prompt
	said    []string // the texts of the model, one for each reply
	usage   usage
	replies int // number of replies of the model
}

// Call is one call that was made.
type Call struct {
	// Tool is the name in the call; Result has the name of the tool that was found.
	Tool string `json:"tool"`
	// Args are the arguments with secrets masked.
	Args   json.RawMessage `json:"args,omitempty"`
	Result v1.Result       `json:"result"`

	key      v1.Key          // key of the tool; zero if the tool was not found
	raw      json.RawMessage // the arguments without masking
	executed bool            // the call reached an executor or a mock
}

// Failure is one expectation that was not met.
type Failure struct {
	// Turn and Call are numbers from 1; 0 if the failure is about the whole scenario or turn.
	Turn int `json:"turn,omitempty"`
	Call int `json:"call,omitempty"`
	// Tool is the tool of the call.
	Tool string `json:"tool,omitempty"`
	// What names the compared part: status, result, error, policy, duration_ms, mock, scenario,
	// or the type of an assertion.
	What string `json:"what"`
	// Path is the place in the result as a JSONPath (RFC 9535).
	Path string `json:"path,omitempty"`
	// Expected and Got describe the difference; both are empty if Message does.
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	Message  string `json:"message,omitempty"`
	// Field is the JSON pointer of the expectation in the manifest.
	Field string `json:"field,omitempty"`
	// Source is the place of the expectation.
	Source v1.Source `json:"source,omitzero"`

	// update is the change that would make the expectation pass; nil if there is no such change.
	update *Update
}

// String returns the place, the compared part and the difference.
func (f Failure) String() string {
	var b strings.Builder
	if f.Turn > 0 {
		fmt.Fprintf(&b, "turn %d, ", f.Turn)
	}
	if f.Call > 0 {
		fmt.Fprintf(&b, "call %d (%s), ", f.Call, f.Tool)
	}
	b.WriteString(f.What)
	if f.Path != "" {
		b.WriteString(" " + f.Path)
	}
	if f.Message != "" {
		b.WriteString(": " + f.Message)
	}
	if f.Expected != "" {
		fmt.Fprintf(&b, ": expected %s, got %s", f.Expected, f.Got)
	}
	return b.String()
}

// Update replaces one expectation by the observed value.
type Update struct {
	// Field is the JSON pointer of the expectation in the manifest.
	Field string
	// Value is the new value; nil removes the field.
	Value json.RawMessage
}

// Updates returns the changes that make the expectations of calls in the manifest pass. They
// leave out failures without a single right value, such as those of assertions.
func (r *Result) Updates() []Update {
	var all []Update
	for _, f := range r.Failures {
		if f.update != nil {
			all = append(all, *f.update)
		}
	}
	return all
}
