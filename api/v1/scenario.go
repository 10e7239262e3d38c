package v1

import (
	"encoding/json"
)

// Scenario tests tools, prompts and policies offline: it plays turns of calls
// against mocks and compares what comes back.
//
//	apiVersion: toolctl.dev/v1
//	kind: Scenario
//	metadata:
//	  name: weather-works
//	spec:
//	  turns:
//	  - calls:
//	    - tool: get-weather
//	      args: {location: Oslo}
//	      expect:
//	        status: complete
//	        result: {location: Oslo}
type Scenario struct {
	Header
	// Spec holds the turns. Required.
	Spec ScenarioSpec `json:"spec" check:"required"`
}

// ScenarioSpec holds what is played and what is expected.
type ScenarioSpec struct {
	// ID is the name by which PromptKit's mock responses know the scenario, read from PromptKit
	// manifests. Default: metadata.name.
	ID string `json:"id,omitempty"`
	// TaskType names the prompt whose validators apply, by its task_type, read from PromptKit manifests.
	TaskType string `json:"task_type,omitempty"`
	// Description says what the scenario shows.
	Description string `json:"description,omitempty"`
	// Tools names the tools that exist in the scenario. Default: all that are loaded. Example: [get-weather].
	Tools []string `json:"tools,omitzero"`
	// Policies names the policies that apply. Default: all that are loaded. Example: [careful].
	Policies []string `json:"policies,omitzero"`
	// Policy holds rules for the calls of this scenario, besides those of ToolPolicy manifests;
	// PromptKit's tool_policy.
	Policy *ToolPolicySpec `json:"policy,omitempty"`
	// Mocks replace the executor of a tool for this scenario, by the tool's name.
	Mocks map[string]Mock `json:"mocks,omitempty"`
	// Seed fixes every choice by chance. Default: 0.
	Seed int64 `json:"seed,omitempty"`
	// Turns are played one after the other. Required.
	Turns []Turn `json:"turns" check:"required"`
	// Assertions hold for the whole run.
	Assertions []Assertion `json:"assertions,omitempty"`
}

// Mock answers the calls of one tool. Responses are asked in order; without
// them the mock itself is the one response.
type Mock struct {
	MockResponse
	// Responses are tried in order; the first whose when fits and whose times is not used up answers.
	Responses []MockResponse `json:"responses,omitempty"`
	// Cassette is a file of recorded calls, relative to the manifest. Example: cassettes/weather.yaml.
	Cassette string `json:"cassette,omitempty"`
	// Match says how the arguments of a call are compared with those of a recorded one: exact, or
	// subset, where a call may have more than was recorded. Default: what the cassette says, else exact.
	Match string `json:"match,omitempty" check:"oneof=exact|subset"`
	// Ignore lists arguments that are not compared with the recorded ones, as JSON pointers
	// (RFC 6901), besides those that the cassette ignores. Example: [/request_id].
	Ignore []string `json:"ignore,omitempty"`
}

// MockResponse is one answer of a mock.
type MockResponse struct {
	// When says which arguments the response is for: an object that the arguments must contain, with
	// the conditions of expect.result, or a JMESPath expression over args
	// and call, the number of the call of this tool from 1. Default: all. Example: args.amount > 100.
	When json.RawMessage `json:"when,omitempty"`
	// Times is how often the response answers; 0 means always. Default: 0.
	Times int `json:"times,omitempty" check:"min=0"`
	// Result is the result: any JSON value.
	Result json.RawMessage `json:"result,omitempty" check:"null"`
	// Template is a Go text/template that renders the result as JSON, as in mock_template.
	Template string `json:"template,omitempty"`
	// Error fails the call with this message. Example: card declined.
	Error string `json:"error,omitempty"`
	// Parts are multimodal parts of the result.
	Parts []Part `json:"parts,omitempty"`
	// Fault breaks the call in a chosen way.
	Fault *MockFault `json:"fault,omitempty"`
}

// MockFault breaks a call in a chosen way.
type MockFault struct {
	// Kind is latency, timeout, status, disconnect, malformed, oversize or schema_violation. Required.
	Kind string `json:"kind" check:"required,oneof=latency|timeout|status|disconnect|malformed|oversize|schema_violation"`
	// MS is the delay of latency, in milliseconds. Example: 250.
	MS int `json:"ms,omitempty" check:"min=0"`
	// Status is the HTTP status of status. Example: 503.
	Status int `json:"status,omitempty" check:"min=0,max=599"`
	// Probability is how likely the fault is, from 0 to 1, drawn from the scenario's seed. Default: 1.
	Probability *float64 `json:"probability,omitempty" check:"min=0,max=1"`
}

// Turn is one turn of a conversation: calls, or a message to a scripted model.
type Turn struct {
	// Calls are made at once, as a model would.
	Calls []ScenarioCall `json:"calls,omitempty"`
	// Prompt is the name of a Prompt to run. Example: travel-advice.
	Prompt string `json:"prompt,omitempty"`
	// Args are the variables of the prompt.
	Args json.RawMessage `json:"args,omitempty"`
	// User is a message of the user. Example: What is the weather in Oslo?
	User string `json:"user,omitempty"`
	// Model scripts the answers of the model, one a hop.
	Model []ModelReply `json:"model,omitempty"`
	// Approve is what a person answers to the calls of a prompt that wait for approval, when its run
	// is suspended; the run then goes on. Default: nobody answers, and the run ends as pending.
	Approve *bool `json:"approve,omitempty"`
	// ConsentOverrides are what a person answers to calls that need approval, by the tool's name:
	// grant, deny, or timeout for no answer. Default: nobody answers; in a manifest of PromptKit's
	// the consent that a tool asks for is granted. Example: {get-location: deny}.
	ConsentOverrides map[string]string `json:"consent_overrides,omitempty" check:"oneof=grant|deny|timeout"`
	// Expect says what is expected of the whole run of a scripted model: result is compared with the
	// structured answer of a prompt that has output. Default: status complete.
	Expect *Expect `json:"expect,omitempty"`
	// Assertions hold for this turn.
	Assertions []Assertion `json:"assertions,omitempty"`
}

// ScenarioCall is one call and what is expected of it.
type ScenarioCall struct {
	// Tool is the tool's name. Required. Example: get-weather.
	Tool string `json:"tool" check:"required"`
	// Args are the arguments. Default: {}. Example: {location: Oslo}.
	Args json.RawMessage `json:"args,omitempty"`
	// Approve is what a person answers when the call needs approval. Default: nobody answers, and
	// the call is left pending.
	Approve *bool `json:"approve,omitempty"`
	// Expect says what is expected. Default: status complete.
	Expect *Expect `json:"expect,omitempty"`
}

// ModelReply is one scripted answer of a model.
type ModelReply struct {
	// Text is what the model says.
	Text string `json:"text,omitempty"`
	// ToolCalls are the calls that the model asks for.
	ToolCalls []ModelToolCall `json:"tool_calls,omitempty"`
	// Stop says why the model stops: end, tool_calls, length or filter. Default: tool_calls when there
	// are some, else end.
	Stop string `json:"stop,omitempty" check:"oneof=end|tool_calls|length|filter"`
	// Error fails the request instead, with this message.
	Error string `json:"error,omitempty"`
	// Sees says what the request must hold that this answers.
	Sees *ModelSees `json:"sees,omitempty"`
}

// ModelSees is what a scripted model must be shown; every member that is set must hold.
type ModelSees struct {
	// Tools are the tools that are offered, by their names, in any order. An empty list means none.
	// Example: [get-weather].
	Tools []string `json:"tools,omitzero"`
	// ToolChoice is auto, required or none.
	ToolChoice string `json:"tool_choice,omitempty" check:"oneof=auto|required|none"`
	// Contains are texts that stand in what was said since the model's last answer, or, before its
	// first one, in the system message and the prompt. Example: ["the temperature is 4"].
	Contains []string `json:"contains,omitempty"`
	// Lacks are texts that do not stand there.
	Lacks []string `json:"lacks,omitempty"`
}

// ModelToolCall is a call that a scripted model asks for.
type ModelToolCall struct {
	// Tool is the tool's name. Required. Example: get-weather.
	Tool string `json:"tool" check:"required"`
	// Args are the arguments; a string is passed on as it is, malformed JSON included.
	Args json.RawMessage `json:"args,omitempty"`
}

// Expect says what is expected of a call; every member that is set must hold.
type Expect struct {
	// Status is complete, failed or pending.
	Status string `json:"status,omitempty" check:"oneof=complete|failed|pending"`
	// Result is compared with the content: objects by subset, everything else exactly. An object
	// with one of equals, matches, contains, gt, lt, exists is a condition; a key that starts with
	// $ is a JSONPath (RFC 9535). Example: {temperature_c: {gt: 10}}.
	Result json.RawMessage `json:"result,omitempty" check:"null"`
	// Error is the error that is expected.
	Error *ExpectError `json:"error,omitempty"`
	// Policy is the decision that is expected.
	Policy *ExpectPolicy `json:"policy,omitempty"`
	// DurationMS is the time the call must stay under, in milliseconds. Example: 500.
	DurationMS int `json:"duration_ms,omitempty" check:"min=0"`
}

// ExpectError is an expected error; every member that is set must hold.
type ExpectError struct {
	// Type is the error's type. Example: args_invalid.
	Type string `json:"type,omitempty"`
	// Path is the JSON pointer of the first violation. Example: /location.
	Path string `json:"path,omitempty"`
	// Message is a part of the error's message.
	Message string `json:"message,omitempty"`
}

// ExpectPolicy is an expected decision; every member that is set must hold.
type ExpectPolicy struct {
	// Decision is allow, deny, audit or pending.
	Decision string `json:"decision,omitempty" check:"oneof=allow|deny|audit|pending"`
	// Rule is the rule that decided. Example: max_total_tool_calls.
	Rule string `json:"rule,omitempty"`
}

// Answers of consent_overrides.
const (
	ConsentGrant   = "grant"
	ConsentDeny    = "deny"
	ConsentTimeout = "timeout"
)

// Validate returns the violations of the scenario by its own rules.
func (s *Scenario) Validate() []Violation {
	fs := append(s.Header.validate(), checkFields(s)...)
	if s.Spec.Policy != nil {
		fs = append(fs, s.Spec.Policy.patternViolations("/spec/policy")...)
	}
	if s.FromPromptKit() { // it asserts more than tools; those parts load and are named when the scenario runs
		for i := range fs {
			fs[i].Severity = SeverityWarning
		}
	}
	return fs
}
