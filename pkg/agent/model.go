package agent

import (
	"context"
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Model is a large language model behind an API. Its methods may be called by many
// goroutines at once.
type Model interface {
	// Generate asks for the next message of a conversation. When on is not nil it is
	// handed the pieces of the reply as they come, one at a time and none after Generate
	// returned; the reply is whole in every case. It returns soon after ctx ends, with
	// the error of ctx. With another error the reply holds what came before it.
	Generate(ctx context.Context, req Request, on func(Delta)) (Reply, error)
}

// Request is a conversation so far, and what the model may do next.
type Request struct {
	// Model is the model's name, such as "gpt-5-mini".
	Model string `json:"model,omitempty"`
	// System is the system message; empty for none.
	System string `json:"system,omitempty"`
	// Messages are the conversation, the oldest first.
	Messages []Message `json:"messages"`
	// Tools are the tools that the model may call, the heaviest first (spec.preference), equal
	// ones by name.
	Tools []ToolSpec `json:"tools,omitempty"`
	// ToolChoice is auto, required or none, as in api/v1; empty is auto.
	ToolChoice string `json:"tool_choice,omitempty"`
	// Output is the JSON Schema that the reply must fit; nil for free text. Only a
	// [StructuredModel] is given one.
	Output json.RawMessage `json:"output,omitempty"`
	// Thinking asks the model to think before it answers.
	Thinking bool `json:"thinking,omitempty"`
	// ThinkingBudget is the most tokens for that; 0 is the provider's default.
	ThinkingBudget int `json:"thinking_budget,omitempty"`
	// Parameters is a JSON object of settings such as temperature, top_p, max_tokens
	// and stop. What the provider's API knows by another name is sent under that name;
	// the rest is sent as it is.
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// StructuredModel is a [Model] whose provider can hold a reply to a JSON Schema.
type StructuredModel interface {
	Model
	// Structured reports whether Request.Output may be set for this schema.
	Structured(schema json.RawMessage) bool
}

// Roles of a [Message].
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one message of a conversation.
type Message struct {
	// Role is "user", "assistant" or "tool".
	Role string `json:"role"`
	// Text is the text of the message; of a tool, its result.
	Text string `json:"text,omitempty"`
	// Parts are images, audio and documents beside the text.
	Parts []v1.Part `json:"parts,omitempty"`
	// ToolCalls are what an assistant message asks for.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID and Tool say which call a tool message answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
	Tool       string `json:"tool,omitempty"`
	// IsError says that the call of a tool message failed.
	IsError bool `json:"is_error,omitempty"`
	// Raw is what the provider wants back unchanged, such as signed thinking; only the
	// provider that made it reads it.
	Raw json.RawMessage `json:"raw,omitempty"`
}

// ToolSpec is a tool as a model sees it.
type ToolSpec struct {
	// Name fits ^[a-zA-Z0-9_-]{1,64}$.
	Name string `json:"name"`
	// Description says what the tool does.
	Description string `json:"description,omitempty"`
	// Parameters is the JSON Schema of the arguments, an object.
	Parameters json.RawMessage `json:"parameters"`
}

// ToolCall is a call that a model asks for.
type ToolCall struct {
	// ID is the provider's name for the call; made when the provider has none.
	ID string `json:"id"`
	// Name is the tool's name as the model wrote it.
	Name string `json:"name"`
	// Args are the arguments as the model wrote them, which may be not valid JSON.
	Args string `json:"args"`
}

// Reply is what a model answered.
type Reply struct {
	// Message is the message, of the role assistant.
	Message Message `json:"message"`
	// Stop says why the model stopped: "end", "tool_calls", "length", "filter", or the
	// provider's own word.
	Stop string `json:"stop,omitempty"`
	// Usage counts tokens.
	Usage Usage `json:"usage"`
	// Model is the model that answered, as the provider names it.
	Model string `json:"model,omitempty"`
}

// Reasons of a [Reply] to stop.
const (
	StopEnd       = "end"
	StopToolCalls = "tool_calls"
	StopLength    = "length"
	StopFilter    = "filter"
)

// Usage counts tokens, as the provider does.
type Usage struct {
	InputTokens    int64 `json:"input_tokens"`
	OutputTokens   int64 `json:"output_tokens"`
	ThinkingTokens int64 `json:"thinking_tokens,omitempty"` // part of OutputTokens
	CachedTokens   int64 `json:"cached_tokens,omitempty"`   // part of InputTokens
}

// Delta is one piece of a reply that is still being made.
type Delta struct {
	// Text is more of the text.
	Text string
	// Thinking is more of the model's thinking, where the provider shows it.
	Thinking string
	// ToolCall is the name of a call that begins.
	ToolCall string
}
