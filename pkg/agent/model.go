package agent

import (
	"context"
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Model is a large language model behind an API. Its methods must be safe for concurrent use.
type Model interface {
	// Generate requests the next message of a conversation. If on is not nil, Generate calls it with each piece of the
	// reply, one at a time and never after it has returned. The returned reply is complete in any case. Generate returns
	// soon after ctx ends, with the error of ctx. If there is another error, the reply holds the part before it.
	Generate(ctx context.Context, req Request, on func(Delta)) (Reply, error)
}

// Request is a conversation so far, with the tools and settings for the next message.
type Request struct {
	// Model is the model's name, such as "gpt-5-mini".
	Model string `json:"model,omitempty"`
	// System is the system message; may be empty.
	System string `json:"system,omitempty"`
	// Messages are the conversation, the oldest first.
	Messages []Message `json:"messages"`
	// Tools are the tools that the model may call, sorted by weight (spec.preference), the
	// heaviest first, and by name.
	Tools []ToolSpec `json:"tools,omitempty"`
	// ToolChoice is auto, required or none, as in api/v1; empty is auto.
	ToolChoice string `json:"tool_choice,omitempty"`
	// Output is the JSON Schema that the reply must fit; nil for free text. It is set only
	// for a [StructuredModel].
	Output json.RawMessage `json:"output,omitempty"`
	// Thinking asks the model to think before it answers.
	Thinking bool `json:"thinking,omitempty"`
	// ThinkingBudget is the maximum number of tokens for thinking; 0 means the provider's default.
	ThinkingBudget int `json:"thinking_budget,omitempty"`
	// Parameters is a JSON object of settings such as temperature, top_p, max_tokens
	// and stop. Settings that the provider's API knows by another name are sent under that
	// name; all others are sent unchanged.
	Parameters json.RawMessage `json:"parameters,omitempty"`
}

// StructuredModel is a [Model] whose provider can enforce a JSON Schema for replies.
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
	// Text is the text of the message. For a tool message, it is the result.
	Role string `json:"role"`
	// Text is the text of the message; of a tool, its result.
	Text string `json:"text,omitempty"`
	// Parts are images, audio and documents beside the text.
	Parts []v1.Part `json:"parts,omitempty"`
	// ToolCalls are the calls that an assistant message asks for.
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	// ToolCallID and Tool name the call that a tool message answers.
	ToolCallID string `json:"tool_call_id,omitempty"`
	Tool       string `json:"tool,omitempty"`
	// IsError says that the call of a tool message failed.
	IsError bool `json:"is_error,omitempty"`
	// Raw is data that the provider needs back unchanged, such as signed thinking. Only the
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
	// ID is the provider's ID of the call, or a generated one.
	ID string `json:"id"`
	// Name is the tool's name as the model wrote it.
	Name string `json:"name"`
	// Args are the arguments as the model wrote them. They may be invalid JSON.
	Args string `json:"args"`
}

// Reply is the reply of a model.
type Reply struct {
	// Message is the message, with the role assistant.
	Message Message `json:"message"`
	// Stop is the reason why the model stopped: "end", "tool_calls", "length", "filter", or
	// the provider's own word.
	Stop string `json:"stop,omitempty"`
	// Usage is the number of tokens.
	Usage Usage `json:"usage"`
	// Model is the provider's name of the model that answered.
	Model string `json:"model,omitempty"`
}

// Values of Reply.Stop.
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

// Delta is a piece of a streamed reply.
type Delta struct {
	// Text continues the text.
	Text string
	// Thinking continues the model's thinking, if the provider shows it.
	Thinking string
	// ToolCall is the name of the tool of a new call.
	ToolCall string
}
