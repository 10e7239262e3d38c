package google

import (
	"bytes"
	"cmp"
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// answer is a response, or a chunk of a stream.
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

// part is one part of a message.
type part struct {
	Text         string        `json:"text"`
	Thought      bool          `json:"thought"`
	FunctionCall *functionCall `json:"functionCall"`
	InlineData   *struct {
		Data     string `json:"data"` // base64
		MIMEType string `json:"mimeType"`
	} `json:"inlineData"`

	fields map[string]json.RawMessage // all fields, also those that nothing here reads
}

// UnmarshalJSON implements [json.Unmarshaler].
func (p *part) UnmarshalJSON(raw []byte) error {
	type plain part
	return cmp.Or(json.Unmarshal(raw, (*plain)(p)), json.Unmarshal(raw, &p.fields))
}

type functionCall struct {
	ID   string          `json:"id,omitempty"`
	Args json.RawMessage `json:"args,omitempty"`
	Name string          `json:"name,omitempty"`
}

// reader reads a response or the events of a stream, which both are lists of parts.
type reader struct {
	*provider.Builder
	parts []*part
}

// Read implements [provider.Reader].
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
	if d := p.InlineData; d != nil {
		r.Parts = append(r.Parts, v1.Part{Type: provider.MediaKind(d.MIMEType), MIMEType: d.MIMEType, Data: d.Data})
	}
	if last := len(r.parts) - 1; last >= 0 && p.bare() && r.parts[last].bare() && p.Thought == r.parts[last].Thought {
		r.parts[last].Text += p.Text
		return
	}
	r.parts = append(r.parts, &p)
}

// bare reports whether a part is text and nothing else.
func (p *part) bare() bool {
	for name := range p.fields {
		if name != "text" && name != "thought" {
			return false
		}
	}
	return true
}

// Kept implements [provider.Reader]. It returns the parts if there is more than text and calls.
func (r *reader) Kept() *provider.Kept {
	k, more := &provider.Kept{}, false
	for _, p := range r.parts {
		if p.Text != "" {
			p.fields["text"] = jsontext.Quote(p.Text)
		}
		if p.bare() && p.Text == "" && !p.Thought { // the API sends empty texts and refuses them
			continue
		}
		k.Parts = append(k.Parts, jsontext.Of(p.fields))
		delete(p.fields, "functionCall")
		delete(p.fields, "inlineData")
		more = more || !p.bare()
	}
	if !more {
		return nil
	}
	return k
}

// arguments returns the arguments of a call on one line.
func arguments(args json.RawMessage) string {
	var b bytes.Buffer
	if len(args) == 0 || string(args) == "null" || json.Compact(&b, args) != nil {
		return "{}"
	}
	return b.String()
}
