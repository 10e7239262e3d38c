package agent

import (
	"encoding/json"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/prompt"
)

// States of a [Result].
const (
	// Complete: the model gave its answer.
	Complete = "complete"
	// Failed: Error says why.
	Failed = "failed"
	// Pending: calls wait for approval; [Resume] goes on.
	Pending = "pending"
	// ToolRequests: the model asks for calls, which the caller wanted to make.
	ToolRequests = "tool_requests"
)

// Result is the outcome of a run; `-o json` prints it as it is. Arguments that a tool
// redacts are masked.
type Result struct {
	// ID names the run; [Resume] takes it.
	ID        string `json:"id"`
	Prompt    string `json:"prompt"`
	Namespace string `json:"namespace"`
	// Status is "complete", "failed", "pending" or "tool_requests".
	Status string `json:"status"`
	// Text is the model's last text: the answer, or what it said so far.
	Text string `json:"text"`
	// Output is the answer of a prompt with spec.output; it fits that schema.
	Output json.RawMessage `json:"output,omitempty"`
	// Error is set when Status is "failed".
	Error *v1.ResultError `json:"error,omitempty"`
	// Pending are the calls that wait, when Status is "pending".
	Pending []v1.PendingToolInfo `json:"pending,omitempty"`
	// ToolRequests are the calls asked for, when Status is "tool_requests".
	ToolRequests []ToolRequest `json:"tool_requests,omitempty"`
	// Warnings say what the prompt names and could not be offered.
	Warnings []string `json:"warnings,omitempty"`
	// System and Messages are the whole transcript.
	System   string    `json:"system,omitempty"`
	Messages []Message `json:"messages"`
	// Hops are the requests to the model, in order.
	Hops []Hop `json:"hops"`
	// Usage is that of all hops, those of prompts that were called included.
	Usage Usage `json:"usage"`
	// DurationMS is how long the run took, in milliseconds; a run that was resumed does
	// not count the time it waited.
	DurationMS float64 `json:"duration_ms"`
}

// Hop is one request to the model, and the calls that it led to.
type Hop struct {
	// Tools are the tools that were offered.
	Tools []string `json:"tools,omitempty"`
	// ToolChoice is what the model was told; empty is auto.
	ToolChoice string `json:"tool_choice,omitempty"`
	Model      string `json:"model,omitempty"`
	// Stop is why the model stopped.
	Stop  string `json:"stop,omitempty"`
	Usage Usage  `json:"usage"`
	// Calls are the calls, in the order in which they were asked for.
	Calls []Call `json:"calls,omitempty"`
	// Validator is what a validator of the prompt refused or cut; the run ended with it.
	Validator *prompt.Verdict `json:"validator,omitempty"`
	// DurationMS is how long the model took, in milliseconds.
	DurationMS float64 `json:"duration_ms"`
}

// Call is one call that the model asked for.
type Call struct {
	// ID is the provider's name for the call, Name the tool's as the model wrote it.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Tool is the full name of the tool; empty when none was offered by that name.
	Tool string `json:"tool,omitempty"`
	// Args are the arguments as they were understood.
	Args json.RawMessage `json:"args,omitempty"`
	// CallID is the call's name in the audit; empty for a call that was not made.
	CallID string `json:"call_id,omitempty"`
	// Answer says that the call gave the answer of a prompt with spec.output.
	Answer bool `json:"answer,omitempty"`
	// FromText says that the call stood in the text of the reply.
	FromText bool `json:"from_text,omitempty"`
	// Cached says that an earlier result was used again.
	Cached bool `json:"cached,omitempty"`
	// CutBytes is how much of the result the model was not shown.
	CutBytes int `json:"cut_bytes,omitempty"`
	// Result is the outcome.
	Result v1.Result `json:"result"`
	// Run is the run of a prompt that was called.
	Run *Result `json:"run,omitempty"`

	to    *offered        // what is called; nil when nothing is offered by that name
	raw   json.RawMessage // the arguments with what they redact
	key   string          // the same for the same tool and arguments
	skip  bool            // there is a result, or nothing can be called
	err   error           // of the call; Result.Error says the same
	ends  bool            // the run ends with the call's failure
	child *loop           // of a prompt that waits
}

// ToolRequest is a call that was not made.
type ToolRequest struct {
	ID string `json:"id"`
	// Tool is the full name of the tool.
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	// Repair says how malformed arguments were repaired; see [v1.Result].
	Repair string `json:"repair,omitempty"`
	// Error says why the call cannot be made as it is.
	Error *v1.ResultError `json:"error,omitempty"`
}

// Kinds of an [Event].
const (
	// EventHop: the model is asked.
	EventHop = "hop"
	// EventDelta: a piece of its reply came.
	EventDelta = "delta"
	// EventReply: the reply is whole; Hop has its tokens and time.
	EventReply = "reply"
	// EventCall: a call begins.
	EventCall = "call"
	// EventResult: a call has ended.
	EventResult = "result"
)

// Event is something that happens in a run.
type Event struct {
	Kind string
	// Prompt is the prompt that runs, at Depth from 1.
	Prompt string
	Depth  int
	// Number counts the requests to the model from 1.
	Number int
	// Delta, Hop and Call are set for their kinds.
	Delta Delta
	Hop   *Hop
	Call  *Call
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Microseconds()) / 1000
}

// Add adds the tokens of another usage.
func (u *Usage) Add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.ThinkingTokens += v.ThinkingTokens
	u.CachedTokens += v.CachedTokens
}

// Requests is how often a model was asked, by prompts that were called too.
func (r *Result) Requests() int {
	n := len(r.Hops)
	for _, h := range r.Hops {
		for _, c := range h.Calls {
			if c.Run != nil {
				n += c.Run.Requests()
			}
		}
	}
	return n
}
