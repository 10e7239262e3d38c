package google

import (
	"bytes"
	"encoding/json"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// answer is an answer, or a chunk of one.
type answer struct {
	Candidates []struct {
		Content struct {
			Parts []part `json:"parts"`
		} `json:"content"`
		FinishReason provider.String `json:"finishReason"`
	} `json:"candidates"`
	ModelVersion  provider.String `json:"modelVersion"`
	UsageMetadata *struct {
		Prompt     provider.Count `json:"promptTokenCount"`
		ToolPrompt provider.Count `json:"toolUsePromptTokenCount"`
		Candidates provider.Count `json:"candidatesTokenCount"`
		Thoughts   provider.Count `json:"thoughtsTokenCount"`
		Cached     provider.Count `json:"cachedContentTokenCount"`
	} `json:"usageMetadata"`
	PromptFeedback struct {
		BlockReason provider.String `json:"blockReason"`
	} `json:"promptFeedback"`
	Error *struct {
		Code int `json:"code"`
	} `json:"error"`
}

// part is one part of a message; what this package does not read of it is kept.
type part struct {
	MediaResolution     json.RawMessage   `json:"mediaResolution,omitempty"`
	CodeExecutionResult json.RawMessage   `json:"codeExecutionResult,omitempty"`
	ExecutableCode      json.RawMessage   `json:"executableCode,omitempty"`
	FileData            *fileData         `json:"fileData,omitempty"`
	FunctionCall        *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse    *functionResponse `json:"functionResponse,omitempty"`
	InlineData          *blob             `json:"inlineData,omitempty"`
	Text                string            `json:"text,omitempty"`
	Thought             bool              `json:"thought,omitempty"`
	ThoughtSignature    string            `json:"thoughtSignature,omitempty"`
	VideoMetadata       json.RawMessage   `json:"videoMetadata,omitempty"`
	ToolCall            json.RawMessage   `json:"toolCall,omitempty"`
	ToolResponse        json.RawMessage   `json:"toolResponse,omitempty"`
	PartMetadata        json.RawMessage   `json:"partMetadata,omitempty"`
}

type fileData struct {
	FileURI  string `json:"fileUri,omitempty"`
	MIMEType string `json:"mimeType,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
	Name string          `json:"name,omitempty"`
}

type functionResponse struct {
	ID       string         `json:"id,omitempty"`
	Name     string         `json:"name,omitempty"`
	Response map[string]any `json:"response,omitempty"`
}

type blob struct {
	Data     string `json:"data,omitempty"` // base64
	MIMEType string `json:"mimeType,omitempty"`
}

// builder gathers a reply, from one answer or from the chunks of a stream: both are
// lists of the same parts.
type builder struct {
	req   agent.Request
	on    func(agent.Delta)
	parts []*piece
	usage agent.Usage
	stop  string
	model string
	ended bool
}

// piece is one part of the reply. Texts that follow each other without a signature
// between them are one piece.
type piece struct {
	part *part
	text strings.Builder
}

func newBuilder(req agent.Request, on func(agent.Delta)) *builder {
	if on == nil {
		on = func(agent.Delta) {}
	}
	return &builder{req: req, on: on}
}

func (b *builder) add(a *answer) {
	if a.ModelVersion != "" {
		b.model = string(a.ModelVersion)
	}
	if u := a.UsageMetadata; u != nil {
		b.usage = agent.Usage{
			InputTokens:    int64(u.Prompt + u.ToolPrompt),
			OutputTokens:   int64(u.Candidates + u.Thoughts),
			ThinkingTokens: int64(u.Thoughts),
			CachedTokens:   int64(u.Cached),
		}
	}
	if a.PromptFeedback.BlockReason != "" {
		b.stop, b.ended = "SAFETY", true
	}
	if len(a.Candidates) == 0 {
		return
	}
	c := &a.Candidates[0]
	for i := range c.Content.Parts {
		b.part(&c.Content.Parts[i])
	}
	if c.FinishReason != "" {
		b.stop, b.ended = string(c.FinishReason), true
	}
}

func (b *builder) part(p *part) {
	switch {
	case p.FunctionCall != nil:
		b.on(agent.Delta{ToolCall: p.FunctionCall.Name})
	case p.Text != "" && p.Thought:
		b.on(agent.Delta{Thinking: p.Text})
	case p.Text != "":
		b.on(agent.Delta{Text: p.Text})
	}
	if last := len(b.parts) - 1; last >= 0 && plain(p) && plain(b.parts[last].part) && p.Thought == b.parts[last].part.Thought {
		b.parts[last].text.WriteString(p.Text)
		return
	}
	n := &piece{part: p}
	n.text.WriteString(p.Text)
	b.parts = append(b.parts, n)
}

// plain reports whether a part is text and nothing else.
func plain(p *part) bool {
	return p.ThoughtSignature == "" && p.FunctionCall == nil && p.InlineData == nil && p.FileData == nil && p.FunctionResponse == nil && !p.tools()
}

// tools reports whether the part is of a tool that the API runs itself.
func (p *part) tools() bool {
	return p.ExecutableCode != nil || p.CodeExecutionResult != nil || p.ToolCall != nil || p.ToolResponse != nil
}

// reply is what came so far.
func (b *builder) reply() agent.Reply {
	r := agent.Reply{Usage: b.usage, Model: b.model}
	r.Message.Role = agent.RoleAssistant
	k := kept{Provider: Name}
	more := false // than text and calls
	var text strings.Builder
	for _, one := range b.parts {
		p := *one.part
		p.Text = one.text.String()
		if !p.Thought {
			text.WriteString(p.Text)
		}
		switch {
		case p.FunctionCall != nil:
			id := p.FunctionCall.ID
			if id == "" {
				id = provider.CallID(b.req, len(r.Message.ToolCalls))
			}
			r.Message.ToolCalls = append(r.Message.ToolCalls, agent.ToolCall{ID: id, Name: p.FunctionCall.Name, Args: arguments(p.FunctionCall.Args)})
		case p.InlineData != nil:
			kind, _, _ := strings.Cut(p.InlineData.MIMEType, "/")
			if kind != provider.Image && kind != provider.Audio && kind != provider.Video {
				kind = provider.Document
			}
			r.Message.Parts = append(r.Message.Parts, v1.Part{
				Type: kind, MIMEType: p.InlineData.MIMEType, Data: p.InlineData.Data,
			})
		}
		more = more || len(p.ThoughtSignature) > 0 || p.tools()
		if raw, err := encode(&p); err == nil && string(raw) != "{}" {
			k.Parts = append(k.Parts, raw)
		}
	}
	r.Message.Text = text.String()
	if more {
		if raw, err := json.Marshal(k); err == nil {
			r.Message.Raw = raw
		}
	}
	r.Stop = reason(b.stop, len(r.Message.ToolCalls) > 0)
	return r
}

// arguments are those of a call, on one line.
func arguments(args json.RawMessage) string {
	var b bytes.Buffer
	if len(args) == 0 || string(args) == "null" || json.Compact(&b, args) != nil {
		return "{}"
	}
	return b.String()
}

func reason(word string, calls bool) string {
	switch word {
	case "STOP":
		if calls {
			return agent.StopToolCalls
		}
		return agent.StopEnd
	case "MAX_TOKENS":
		return agent.StopLength
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return agent.StopFilter
	}
	return strings.ToLower(word)
}
