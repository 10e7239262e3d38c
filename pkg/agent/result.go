package agent

import (
	"encoding/json"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/prompt"
)

// States of a [Result].
const (
	// Complete: the model has answered.
	Complete = "complete"
	// Failed: Error says why.
	Failed = "failed"
	// Pending: calls wait for approval; [Resume] continues the run.
	Pending = "pending"
	// ToolRequests: the model asks for calls, and the caller makes them itself.
	ToolRequests = "tool_requests"
)

// Result is the outcome of a run, and what `-o json` prints. Arguments that a tool redacts
// are masked.
type Result struct {
	// ID is the ID of the run, for [Resume].
	ID        string `json:"id"`
	Prompt    string `json:"prompt"`
	Namespace string `json:"namespace"`
	// Status is "complete", "failed", "pending" or "tool_requests".
	Status string `json:"status"`
	// Text is the model's last text: the answer, or the text so far.
	Text string `json:"text"`
	// Output is the answer of a prompt with spec.output, and fits that schema.
	Output json.RawMessage `json:"output,omitempty"`
	// Error is set when Status is "failed".
	Error *v1.ResultError `json:"error,omitempty"`
	// Pending are the calls that wait for approval if Status is "pending".
	Pending []v1.PendingToolInfo `json:"pending,omitempty"`
	// ToolRequests are the calls that the caller is to make if Status is "tool_requests".
	ToolRequests []ToolRequest `json:"tool_requests,omitempty"`
	// Warnings name tools of the prompt that the model was not offered, among other problems.
	Warnings []string `json:"warnings,omitempty"`
	// System and Messages are the whole transcript.
	System   string    `json:"system,omitempty"`
	Messages []Message `json:"messages"`
	// Hops are the requests to the model, in order.
	Hops []Hop `json:"hops"`
	// Usage is the sum of all hops, including those of prompts that the model called.
	Usage Usage `json:"usage"`
	// DurationMS is the run time in milliseconds, without the time that the run was pending.
	DurationMS float64 `json:"duration_ms"`
}

// Hop is one request to the model, and the calls that it led to.
type Hop struct {
	// Tools are the tools that were offered.
	Tools []string `json:"tools,omitempty"`
	// ToolChoice is the tool choice of the request; empty means auto.
	ToolChoice string `json:"tool_choice,omitempty"`
	Model      string `json:"model,omitempty"`
	// Stop is why the model stopped.
	Stop  string `json:"stop,omitempty"`
	Usage Usage  `json:"usage"`
	// Calls are the calls in the order of the reply.
	Calls []Call `json:"calls,omitempty"`
	// Validator is the verdict of a validator that refused or cut a text, which ended the run.
	Validator *prompt.Verdict `json:"validator,omitempty"`
	// DurationMS is the response time of the model, in milliseconds.
	DurationMS float64 `json:"duration_ms"`
}

// Call is one call that the model asked for.
type Call struct {
	// ID is the provider's ID of the call, and Name is the tool's name as the model wrote it.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Tool is the full name of the tool; empty if no such tool was offered.
	Tool string `json:"tool,omitempty"`
	// Args are the arguments, repaired if necessary.
	Args json.RawMessage `json:"args,omitempty"`
	// CallID is the call's ID in the audit log; empty for a call that was not made.
	CallID string `json:"call_id,omitempty"`
	// Answer says that the call gave the answer of a prompt with spec.output.
	Answer bool `json:"answer,omitempty"`
	// FromText says that the call was found in the text of the reply.
	FromText bool `json:"from_text,omitempty"`
	// Cached says that the result comes from an earlier call.
	Cached bool `json:"cached,omitempty"`
	// CutBytes is the number of bytes of the result that the model did not see.
	CutBytes int `json:"cut_bytes,omitempty"`
	// Result is the outcome.
	Result v1.Result `json:"result"`
	// Run is the run of the prompt if the model called a prompt.
	Run *Result `json:"run,omitempty"`

	to    *offered        // the called tool or prompt; nil if it was not offered
	raw   json.RawMessage // the arguments without redaction
	key   string          // the same for equal tools and arguments
	skip  bool            // do not make the call: it has a result already
	err   error           // the error of the call, which Result.Error repeats
	ends  bool            // the failure of the call ends the run
	child *loop           // the pending run of a prompt
}

// ToolRequest is a call that was not made.
type ToolRequest struct {
	ID string `json:"id"`
	// Tool is the full name of the tool.
	Tool string          `json:"tool"`
	Args json.RawMessage `json:"args"`
	// Repair says how malformed arguments were repaired; see [v1.Result].
	Repair string `json:"repair,omitempty"`
	// Error says why the call cannot be made.
	Error *v1.ResultError `json:"error,omitempty"`
}

// Kinds of an [Event].
const (
	// EventHop: a request is sent to the model.
	EventHop = "hop"
	// EventDelta: a piece of the reply arrived.
	EventDelta = "delta"
	// EventReply: the reply is complete; Hop has its tokens and time.
	EventReply = "reply"
	// EventCall: a call begins.
	EventCall = "call"
	// EventResult: a call has ended.
	EventResult = "result"
)

// Event is something that happens in a run.
type Event struct {
	Kind string
	// Prompt is the running prompt, and Depth its nesting depth from 1.
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

// Add adds the tokens of v to u.
func (u *Usage) Add(v Usage) {
	u.InputTokens += v.InputTokens
	u.OutputTokens += v.OutputTokens
	u.ThinkingTokens += v.ThinkingTokens
	u.CachedTokens += v.CachedTokens
}

// Requests counts the requests to models, including those of prompts that the model called.
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
