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
	// Passed: all that was expected came true.
	Passed = "passed"
	// Failed: something differs.
	Failed = "failed"
	// Invalid: the manifest has violations, or names what is not there; nothing was played.
	Invalid = "invalid"
	// Skipped: nothing was judged, or it was not played because an earlier one failed.
	Skipped = "skipped"
)

// Report is the outcome of many scenarios, in the order in which they were given.
type Report struct {
	Scenarios []Result `json:"scenarios"`
	Passed    int      `json:"passed"`
	Failed    int      `json:"failed"`
	Invalid   int      `json:"invalid"`
	Skipped   int      `json:"skipped"`
	// Judged counts what was judged in all scenarios, of Total.
	Judged int `json:"judged"`
	Total  int `json:"total"`
	// Judge is the use of the judge model; nil when it was not asked.
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
	// Judged counts the expectations and assertions that were judged, of the Total that the scenario has.
	Judged int `json:"judged"`
	Total  int `json:"total"`
	// Reason says why a scenario is [Skipped].
	Reason string `json:"reason,omitempty"`
	// Unjudged are the assertions that were not judged.
	Unjudged []Unjudged `json:"unjudged"`
	// Judge is the use of the judge model; nil when it was not asked.
	Judge *JudgeUse `json:"judge,omitempty"`
	// Failures is what differs, in the order in which it was found.
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

// Judgement says how much of a scenario was judged, and why nothing was.
func (r *Result) Judgement() string {
	text := fmt.Sprintf("%d of %d checks", r.Judged, r.Total)
	if r.Reason != "" {
		text += ": " + r.Reason
	}
	return text
}

// Turn is what was played of one turn.
type Turn struct {
	// Text is what a scripted model said.
	Text string `json:"text,omitempty"`
	// Parts are the multimodal parts of what it said.
	Parts []v1.Part `json:"parts,omitempty"`
	// Calls are the calls, those of a scripted model too.
	Calls []Call `json:"calls"`
	// Validators are those of the prompt that refused or cut what was said.
	Validators []prompt.Verdict `json:"validators,omitempty"`

	user    string   // what the user said, the rendered prompt included
	said    []string // what the model said, one text a reply
	usage   usage
	replies int // of the model
}

// Call is one call that was made.
type Call struct {
	// Tool is the name that was asked for; Result has the name that was found.
	Tool string `json:"tool"`
	// Args are the arguments with secrets masked.
	Args   json.RawMessage `json:"args,omitempty"`
	Result v1.Result       `json:"result"`

	key      v1.Key          // of the tool; zero when none was found
	raw      json.RawMessage // the arguments as they were asked for
	executed bool            // the call reached an executor or a mock
}

// Failure is one expectation that did not come true.
type Failure struct {
	// Turn and Call count from 1; 0 when the failure is of the whole.
	Turn int `json:"turn,omitempty"`
	Call int `json:"call,omitempty"`
	// Tool is the tool of the call.
	Tool string `json:"tool,omitempty"`
	// What is what was compared: status, result, error, policy, duration_ms, mock,
	// scenario, or the type of an assertion.
	What string `json:"what"`
	// Path is the place in the result as a JSONPath (RFC 9535).
	Path string `json:"path,omitempty"`
	// Expected and Got say the difference; both are empty when Message says all.
	Expected string `json:"expected,omitempty"`
	Got      string `json:"got,omitempty"`
	Message  string `json:"message,omitempty"`
	// Field is the JSON pointer of the expectation in the manifest.
	Field string `json:"field,omitempty"`
	// Source is the place of the expectation.
	Source v1.Source `json:"source,omitzero"`

	// update is what would make the expectation come true; nil when nothing would.
	update *Update
}

// String returns the failure as one text: its place, what was compared, and the difference.
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

// An Update replaces one expectation by what was observed.
type Update struct {
	// Field is the JSON pointer of the expectation in the manifest.
	Field string
	// Value is the new value; nil removes the field.
	Value json.RawMessage
}

// Updates returns what makes the expectations of calls in the manifest come true.
// What has no one right value, such as an assertion, is not among them.
func (r *Result) Updates() []Update {
	var all []Update
	for _, f := range r.Failures {
		if f.update != nil {
			all = append(all, *f.update)
		}
	}
	return all
}
