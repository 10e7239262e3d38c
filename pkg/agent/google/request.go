package google

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/internal/provider"
)

// object is a JSON object of a request.
type object = provider.Object

// topLevel are the parameters outside of generationConfig.
var topLevel = []string{"safetySettings", "cachedContent", "labels", "serviceTier", "toolConfig", "store"}

func body(p object, req agent.Request, tools []any, extra object) error {
	contents, err := conversation(req.Messages)
	if err != nil {
		return err
	}
	p["contents"] = contents
	system := req.System
	config := object{}
	if len(tools) > 0 {
		p["tools"] = []any{object{"functionDeclarations": tools}}
	}
	switch {
	case req.Output == nil:
	case len(tools) > 0 && olderThan3(req.Model): // older models refuse a response schema with tools
		system = strings.TrimSpace(system + "\n\nWhen you need no more tools, answer only with JSON that matches this JSON Schema: " + string(req.Output))
	default:
		config["responseMimeType"], config["responseJsonSchema"] = "application/json", req.Output
	}
	if system != "" {
		p["systemInstruction"] = object{"parts": []object{{"text": system}}}
	}
	if req.Thinking {
		thinking := object{"includeThoughts": true}
		if req.ThinkingBudget > 0 {
			thinking["thinkingBudget"] = req.ThinkingBudget
		}
		config["thinkingConfig"] = thinking
	}
	if err := settings(config, extra); err != nil {
		return err
	}
	if len(config) > 0 {
		p["generationConfig"] = config
	}
	return nil
}

// settings moves parameters into the configuration.
func settings(config, extra object) error {
	provider.List(extra, "stopSequences")
	if v, ok := extra["generationConfig"].(json.RawMessage); ok {
		inner, err := provider.Parameters(v)
		if err != nil {
			return fmt.Errorf("parameters.generationConfig must be a JSON object")
		}
		delete(extra, "generationConfig")
		maps.Copy(config, inner)
	}
	for name, v := range extra {
		if !slices.Contains(topLevel, name) {
			config[name] = v
			delete(extra, name)
		}
	}
	return nil
}

func olderThan3(model string) bool {
	model = strings.TrimPrefix(model, "models/")
	return strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemini-2")
}

// turn is one content of a request. Its parts are objects or raw JSON.
type turn struct {
	Role  string `json:"role"`
	Parts []any  `json:"parts"`
}

func conversation(messages []agent.Message) ([]turn, error) {
	out := []turn{}
	ids := map[string]string{} // the id that the API knows for each call; may be ""
	tools := map[string]string{}
	results := 0 // number of results in the last turn
	err := provider.Each(messages, func(msg agent.Message) error {
		var parts, after []any
		var err error
		role := "user"
		switch msg.Role {
		case agent.RoleUser:
			parts, err = provider.Contents(msg.Text, msg.Parts, content)
		case agent.RoleAssistant:
			role = "model"
			for _, c := range msg.ToolCalls {
				tools[c.ID], ids[c.ID] = c.Name, c.ID
			}
			parts, err = assistant(msg, ids)
		case agent.RoleTool:
			// The API needs the name as the model wrote it.
			parts, after, err = result(msg, cmp.Or(tools[msg.ToolCallID], msg.Tool), ids[msg.ToolCallID])
		}
		if err != nil || len(parts) == 0 { // the API refuses a turn without parts
			return err
		}
		last := len(out) - 1
		if last < 0 || out[last].Role != role {
			out, results = append(out, turn{Role: role}), 0
			last++
		}
		at := len(out[last].Parts)
		if msg.Role == agent.RoleTool {
			// The results of a turn come first, followed by the parts that belong to them.
			at, results = results, results+1
		}
		out[last].Parts = append(slices.Insert(out[last].Parts, at, parts...), after...)
		return nil
	})
	return out, err
}

// assistant returns the parts of a reply. In ids it clears the ids that the API does not know.
func assistant(msg agent.Message, ids map[string]string) ([]any, error) {
	if parts := restore(msg, ids); parts != nil {
		return parts, nil
	}
	out, err := provider.Contents(msg.Text, msg.Parts, content)
	for _, c := range msg.ToolCalls {
		call := functionCall{ID: c.ID, Name: c.Name, Args: provider.Arguments(c.Args)}
		if string(call.Args) == "{}" {
			call.Args = nil
		}
		out = append(out, object{"functionCall": call})
	}
	return out, err
}

// restore returns the parts of Message.Raw if they still match the message.
func restore(msg agent.Message, ids map[string]string) (parts []any) {
	var text strings.Builder
	told := map[string]string{}
	n := 0
	for _, raw := range provider.Restore(msg, Name).Parts {
		var p part
		if json.Unmarshal(raw, &p) != nil {
			return nil
		}
		parts = append(parts, raw)
		if !p.Thought {
			text.WriteString(p.Text)
		}
		if c := p.FunctionCall; c != nil {
			if n >= len(msg.ToolCalls) || msg.ToolCalls[n].Name != c.Name || c.ID != "" && msg.ToolCalls[n].ID != c.ID {
				return nil
			}
			told[msg.ToolCalls[n].ID] = c.ID
			n++
		}
	}
	if n != len(msg.ToolCalls) || text.String() != msg.Text {
		return nil
	}
	maps.Copy(ids, told)
	return parts
}

// result returns the part of a result, and the media parts that belong to it.
func result(msg agent.Message, name, id string) (parts, after []any, err error) {
	var value any = msg.Text
	if text := strings.TrimSpace(msg.Text); text != "" && json.Valid([]byte(text)) {
		value = json.RawMessage(text)
	}
	key := "output"
	if msg.IsError {
		key = "error"
	}
	said := object{"name": name, "response": object{key: value}}
	if id != "" {
		said["id"] = id
	}
	if len(msg.Parts) > 0 {
		// Only Gemini 3 and later accept them inside the result.
		after, err = provider.Contents(fmt.Sprintf("From the result of tool %q:", name), msg.Parts, content)
	}
	return []any{object{"functionResponse": said}}, after, err
}

func content(m provider.Media) (object, error) {
	key, value := "inlineData", object{"data": m.Data}
	switch {
	case m.Kind == provider.Text:
		return object{"text": m.Text}, nil
	case m.Data == "":
		key, value = "fileData", object{"fileUri": m.URL}
	}
	if m.MIME != "" {
		value["mimeType"] = m.MIME
	}
	return object{key: value}, nil
}
