package google

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"

	"google.golang.org/genai"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

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
	part *genai.Part
	text strings.Builder
}

func newBuilder(req agent.Request, on func(agent.Delta)) *builder {
	if on == nil {
		on = func(agent.Delta) {}
	}
	return &builder{req: req, on: on}
}

func (b *builder) add(a *genai.GenerateContentResponse) {
	if a == nil {
		return
	}
	if a.ModelVersion != "" {
		b.model = a.ModelVersion
	}
	if u := a.UsageMetadata; u != nil {
		b.usage = agent.Usage{
			InputTokens:    int64(u.PromptTokenCount) + int64(u.ToolUsePromptTokenCount),
			OutputTokens:   int64(u.CandidatesTokenCount) + int64(u.ThoughtsTokenCount),
			ThinkingTokens: int64(u.ThoughtsTokenCount),
			CachedTokens:   int64(u.CachedContentTokenCount),
		}
	}
	if f := a.PromptFeedback; f != nil && f.BlockReason != "" {
		b.stop, b.ended = "SAFETY", true
	}
	if len(a.Candidates) == 0 || a.Candidates[0] == nil {
		return
	}
	c := a.Candidates[0]
	if c.Content != nil {
		for _, p := range c.Content.Parts {
			if p != nil {
				b.part(p)
			}
		}
	}
	if c.FinishReason != "" {
		b.stop, b.ended = string(c.FinishReason), true
	}
}

func (b *builder) part(p *genai.Part) {
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
func plain(p *genai.Part) bool {
	return len(p.ThoughtSignature) == 0 && p.FunctionCall == nil && p.InlineData == nil && p.FileData == nil &&
		p.ExecutableCode == nil && p.CodeExecutionResult == nil && p.FunctionResponse == nil && p.ToolCall == nil && p.ToolResponse == nil
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
				Type: kind, MIMEType: p.InlineData.MIMEType, Data: base64.StdEncoding.EncodeToString(p.InlineData.Data),
			})
		}
		more = more || len(p.ThoughtSignature) > 0 || p.ExecutableCode != nil || p.CodeExecutionResult != nil || p.ToolCall != nil || p.ToolResponse != nil
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

// arguments writes the arguments of a call, which the SDK hands out as a Go map.
func arguments(args map[string]any) string {
	if len(args) == 0 {
		return "{}"
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(args); err != nil { // what came from JSON has a JSON form
		return "{}"
	}
	return strings.TrimSpace(b.String())
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
