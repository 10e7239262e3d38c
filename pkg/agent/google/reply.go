package google

import (
	"bytes"
	"encoding/json"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
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
}

// part is one part of a message; what this package does not read of it is kept.
type part struct {
	MediaResolution     json.RawMessage `json:"mediaResolution,omitempty"`
	CodeExecutionResult json.RawMessage `json:"codeExecutionResult,omitempty"`
	ExecutableCode      json.RawMessage `json:"executableCode,omitempty"`
	FileData            json.RawMessage `json:"fileData,omitempty"`
	FunctionCall        *functionCall   `json:"functionCall,omitempty"`
	FunctionResponse    json.RawMessage `json:"functionResponse,omitempty"`
	InlineData          *blob           `json:"inlineData,omitempty"`
	Text                string          `json:"text,omitempty"`
	Thought             bool            `json:"thought,omitempty"`
	ThoughtSignature    string          `json:"thoughtSignature,omitempty"`
	VideoMetadata       json.RawMessage `json:"videoMetadata,omitempty"`
	ToolCall            json.RawMessage `json:"toolCall,omitempty"`
	ToolResponse        json.RawMessage `json:"toolResponse,omitempty"`
	PartMetadata        json.RawMessage `json:"partMetadata,omitempty"`
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
	Name string          `json:"name,omitempty"`
}

type blob struct {
	Data     string `json:"data,omitempty"` // base64
	MIMEType string `json:"mimeType,omitempty"`
}

// reader reads an answer. One that comes whole and the events of a stream are lists of the
// same parts.
type reader struct {
	*provider.Builder
	parts []*piece
}

// piece is one part of the reply. Texts that follow each other without a signature
// between them are one piece.
type piece struct {
	part
	text strings.Builder
}

// Read is [provider.Reader.Read].
func (r *reader) Read(data []byte) error {
	var a answer
	if err := json.Unmarshal(data, &a); err != nil {
		return err
	}
	if a.ModelVersion != "" {
		r.Model = string(a.ModelVersion)
	}
	if u := a.UsageMetadata; u != nil {
		r.Usage = agent.Usage{
			InputTokens:    int64(u.Prompt + u.ToolPrompt),
			OutputTokens:   int64(u.Candidates + u.Thoughts),
			ThinkingTokens: int64(u.Thoughts),
			CachedTokens:   int64(u.Cached),
		}
	}
	if a.PromptFeedback.BlockReason != "" {
		r.Reason, r.Ended = "SAFETY", true
	}
	if len(a.Candidates) == 0 {
		return nil
	}
	c := &a.Candidates[0]
	for _, p := range c.Content.Parts {
		r.part(p)
	}
	if c.FinishReason != "" {
		r.Reason, r.Ended = string(c.FinishReason), true
	}
	return nil
}

func (r *reader) part(p part) {
	if p.Thought {
		r.Thinking(p.Text)
	} else {
		r.Text(p.Text)
	}
	if p.FunctionCall != nil {
		r.Call(p.FunctionCall.ID, p.FunctionCall.Name).Args.WriteString(arguments(p.FunctionCall.Args))
	}
	if p.InlineData != nil {
		r.Parts = append(r.Parts, v1.Part{Type: provider.MediaKind(p.InlineData.MIMEType), MIMEType: p.InlineData.MIMEType, Data: p.InlineData.Data})
	}
	last := len(r.parts) - 1
	if last < 0 || !p.bare() || !r.parts[last].bare() || p.Thought != r.parts[last].Thought {
		r.parts = append(r.parts, &piece{part: p})
		last++
	}
	r.parts[last].text.WriteString(p.Text)
}

// bare reports whether a part is text and nothing else.
func (p part) bare() bool {
	p.Text, p.Thought = "", false
	return string(jsontext.Of(&p)) == "{}"
}

// Kept is [provider.Reader.Kept]: the parts, where there is more than text and calls.
func (r *reader) Kept() *provider.Kept {
	k, more := &provider.Kept{}, false
	for _, p := range r.parts {
		p.Text = p.text.String()
		if raw := p.json(); string(raw) != "{}" {
			k.Parts = append(k.Parts, raw)
		}
		p.FunctionCall, p.InlineData = nil, nil
		more = more || !p.bare()
	}
	if !more {
		return nil
	}
	return k
}

// json writes a part. The type leaves out an empty text, and the API refuses a part that
// has a signature alone.
func (p part) json() json.RawMessage {
	raw := jsontext.Of(&p)
	signed := p.ThoughtSignature != ""
	if p.ThoughtSignature = ""; signed && p.Text == "" && p.bare() {
		return append([]byte(`{"text":"",`), raw[1:]...)
	}
	return raw
}

// arguments are those of a call, on one line.
func arguments(args json.RawMessage) string {
	var b bytes.Buffer
	if len(args) == 0 || string(args) == "null" || json.Compact(&b, args) != nil {
		return "{}"
	}
	return b.String()
}
