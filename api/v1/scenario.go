package v1

import (
	"encoding/json"
)

// Scenario tests tools, prompts and policies offline: it makes turns of calls
// against mocks and compares the results.
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

// ScenarioSpec holds the calls and the expected results.
type ScenarioSpec struct {
	// ID is the name of the scenario in mock responses of PromptKit, read from PromptKit
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
	// Seed makes random choices repeatable. Default: 0.
	Seed int64 `json:"seed,omitempty"`
	// Turns run one after the other. Required.
	Turns []Turn `json:"turns" check:"required"`
	// Assertions are checked for the whole run.
	Assertions []Assertion `json:"assertions,omitempty"`
}

// Mock answers the calls of one tool. Responses are tried in order; without
// them the mock itself is the only response.
type Mock struct {
	MockResponse
	// Responses are tried in order; the first whose when fits and whose times is not used up answers.
	Responses []MockResponse `json:"responses,omitempty"`
	// Cassette is a file of recorded calls, relative to the manifest. Example: cassettes/weather.yaml.
	Cassette string `json:"cassette,omitempty"`
	// Match sets how the arguments of a call are compared with those of a recorded one: exact, or
	// subset (a call may have more than was recorded). Default: the match of the cassette, else exact.
	Match string `json:"match,omitempty" check:"oneof=exact|subset"`
	// Ignore lists arguments that are not compared with the recorded ones, as JSON pointers
	// (RFC 6901), besides those that the cassette ignores. Example: [/request_id].
	Ignore []string `json:"ignore,omitempty"`
}

// MockResponse is one answer of a mock.
type MockResponse struct {
	// When selects the arguments for this response: an object that the arguments must contain, with
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

// Turn is one turn of a conversation: calls, a message to a scripted model, or searches for tools.
type Turn struct {
	// Calls are made concurrently, as a model does.
	Calls []ScenarioCall `json:"calls,omitempty"`
	// Search are searches for tools, as clients of a toolset make them with find_tools.
	// Example: [{query: give Ann her money back, expect: {first: refund-order}}].
	Search []ScenarioSearch `json:"search,omitempty"`
	// Prompt is the name of a Prompt to run. Example: travel-advice.
	Prompt string `json:"prompt,omitempty"`
	// Args are the variables of the prompt.
	Args json.RawMessage `json:"args,omitempty"`
	// User is a message of the user. Example: What is the weather in Oslo?
	User string `json:"user,omitempty"`
	// Model scripts the replies of the model, one per hop.
	Model []ModelReply `json:"model,omitempty"`
	// Approve is the decision of a person on pending calls of a prompt whose run is suspended; the run
	// then continues. Default: no decision, and the run ends as pending.
	Approve *bool `json:"approve,omitempty"`
	// ConsentOverrides are the decisions of a person on calls that need approval, by tool name:
	// grant, deny, or timeout for no answer. Default: no answer; in a PromptKit manifest, the
	// consent is granted. Example: {get-location: deny}.
	ConsentOverrides map[string]string `json:"consent_overrides,omitempty" check:"oneof=grant|deny|timeout"`
	// Expect describes the expected result of the whole run of a scripted model: result is compared with the
	// structured answer of a prompt that has output. Default: status complete.
	Expect *Expect `json:"expect,omitempty"`
	// Assertions are checked for this turn.
	Assertions []Assertion `json:"assertions,omitempty"`
}

// ScenarioCall is one call and its expected result.
type ScenarioCall struct {
	// Tool is the tool's name. Required. Example: get-weather.
	Tool string `json:"tool" check:"required"`
	// Args are the arguments. Default: {}. Example: {location: Oslo}.
	Args json.RawMessage `json:"args,omitempty"`
	// Approve is the decision of a person if the call needs approval. Default: no decision, and the
	// call stays pending.
	Approve *bool `json:"approve,omitempty"`
	// Expect describes the expected result. Default: status complete.
	Expect *Expect `json:"expect,omitempty"`
}

// ScenarioSearch is one search for tools and its expected result.
type ScenarioSearch struct {
	// Query says in plain words what the tool should do. Required. Example: give Ann her money back.
	Query string `json:"query" check:"required"`
	// Limit is the maximum number of tools that the search finds. Default: 5.
	Limit int `json:"limit,omitempty" check:"min=0,max=50"`
	// Toolset is the name of the Toolset that is searched. Default: all tools of the scenario. Example: support.
	Toolset string `json:"toolset,omitempty"`
	// Expect describes the expected result. Required.
	Expect ExpectFound `json:"expect" check:"required"`
}

// ExpectFound says which tools a search must find; every member that is set must hold.
type ExpectFound struct {
	// First is the tool that must come first. Example: refund-order.
	First string `json:"first,omitempty"`
	// Contains are tools that must be found, in any order. Example: [refund-order, get-order].
	Contains []string `json:"contains,omitempty"`
	// Lacks are tools that must not be found. Example: [delete-order].
	Lacks []string `json:"lacks,omitempty"`
}

func (e *ExpectFound) rules(path string) []Violation {
	if e.First != "" || len(e.Contains)+len(e.Lacks) > 0 {
		return nil
	}
	return []Violation{{Path: path, Expected: "first, contains or lacks", Got: "none of them", Message: "nothing is expected of the search: set first, contains or lacks"}}
}

// ModelReply is one scripted answer of a model.
type ModelReply struct {
	// Text is the text of the reply.
	Text string `json:"text,omitempty"`
	// ToolCalls are the calls that the model requests.
	ToolCalls []ModelToolCall `json:"tool_calls,omitempty"`
	// Stop is the reason for which the model stops: end, tool_calls, length or filter. Default:
	// tool_calls if the reply has calls, else end.
	Stop string `json:"stop,omitempty" check:"oneof=end|tool_calls|length|filter"`
	// Error fails the request instead, with this message.
	Error string `json:"error,omitempty"`
	// Sees states what the model's request must and must not contain.
	Sees *ModelSees `json:"sees,omitempty"`
}

// ModelSees states what the request to a scripted model must contain; every member that is set is checked.
type ModelSees struct {
	// Tools are the names of the offered tools, in any order. An empty list means none.
	// Example: [get-weather].
	Tools []string `json:"tools,omitzero"`
	// ToolChoice is auto, required or none.
	ToolChoice string `json:"tool_choice,omitempty" check:"oneof=auto|required|none"`
	// Contains are texts that must occur since the last reply of the model, or, before its first
	// reply, in the system message and the prompt. Example: ["the temperature is 4"].
	Contains []string `json:"contains,omitempty"`
	// Lacks are texts that must not occur there.
	Lacks []string `json:"lacks,omitempty"`
}

// ModelToolCall is a call that a scripted model requests.
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
	if s.FromPromptKit() { // it asserts more than tools; those parts load and are named when the scenario runs
		for i := range fs {
			fs[i].Severity = SeverityWarning
		}
	}
	return fs
}
