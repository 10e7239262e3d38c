package scenario

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Responses are the replies of scripted models from a file of PromptKit's mock responses. They
// are found by the scenario's id or name and by number. A reply is a text, or an object with
// response, parts and tool_calls. A nil Responses has no replies.
type Responses struct {
	turns map[string]map[int]modelReply
	// fallbacks are the default replies by scenario; "" means all scenarios.
	fallbacks map[string]string
}

// modelReply is a reply of a scripted model.
type modelReply struct {
	v1.ModelReply
	parts []v1.Part
}

func asReplies(script []v1.ModelReply) []modelReply {
	var all []modelReply
	for _, r := range script {
		all = append(all, modelReply{ModelReply: r})
	}
	return all
}

// size returns the size of the reply in bytes.
func (r *modelReply) size() int {
	n := len(r.Text)
	for _, c := range r.ToolCalls {
		n += len(c.Tool) + len(c.Args)
	}
	return n
}

// ReadResponses reads a file of mock responses in JSON. Warnings name the parts that mean nothing
// for tools. With any other violation it returns no responses. Paths of violations start at the
// root of the file.
func ReadResponses(raw json.RawMessage) (*Responses, []v1.Violation) {
	r := &responseReader{}
	const only = "only scripted turns are"
	out := &Responses{turns: map[string]map[int]modelReply{}, fallbacks: map[string]string{}}
	fallback := func(path, scenario string, fields map[string]json.RawMessage) {
		if raw, ok := fields[defaultResponse]; ok {
			text := ""
			r.read(v1.Pointer(path, defaultResponse), raw, &text, "a text")
			out.fallbacks[scenario] = text
		}
	}
	root := r.object("", raw, only, "scenarios", defaultResponse)
	fallback("", "", root)
	if len(root["scenarios"])+len(root[defaultResponse]) == 0 {
		r.violation("", "", "expected scenarios, got nothing")
	}
	scenarios := r.object("/scenarios", root["scenarios"], "")
	for _, name := range sortedKeys(scenarios) {
		path := v1.Pointer("/scenarios", name)
		fields := r.object(path, scenarios[name], only, "turns", defaultResponse)
		fallback(path, name, fields)
		out.turns[name] = map[int]modelReply{}
		turns := r.object(path+"/turns", fields["turns"], "")
		for _, number := range sortedKeys(turns) {
			at := v1.Pointer(path, "turns", number)
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				r.violation(at, "", "expected the number of a turn, from 1, got %q", number)
				continue
			}
			out.turns[name][n] = r.reply(at, turns[number])
		}
	}
	if len(v1.Errors(r.violations)) > 0 {
		return nil, r.violations
	}
	return out, r.violations
}

// defaultResponse is the field of a default reply.
const defaultResponse = "defaultResponse"

// responseReader collects the violations of a file of mock responses.
type responseReader struct{ violations []v1.Violation }

func (r *responseReader) violation(path, severity, format string, args ...any) {
	r.violations = append(r.violations, v1.Violation{Path: path, Severity: severity, Message: fmt.Sprintf(format, args...)})
}

// read decodes a value, unless it is absent. A value of another type is a violation.
func (r *responseReader) read(path string, raw json.RawMessage, into any, expected string) {
	if len(raw) > 0 && json.Unmarshal(raw, into) != nil {
		r.violation(path, "", "expected %s, got %s", expected, v1.JSONKind(raw))
	}
}

// object reads an object. If some fields are known, it warns of all others; only says which are read.
func (r *responseReader) object(path string, raw json.RawMessage, only string, known ...string) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	r.read(path, raw, &fields, "an object")
	for _, key := range sortedKeys(fields) {
		if known != nil && !slices.Contains(known, key) {
			r.violation(v1.Pointer(path, key), v1.SeverityWarning, "%q is not read: %s", key, only)
		}
	}
	return fields
}

func (r *responseReader) reply(path string, raw json.RawMessage) (reply modelReply) {
	if json.Unmarshal(raw, &reply.Text) == nil {
		return reply
	}
	if v1.JSONKind(raw) != "object" {
		r.violation(path, "", "expected a text or an object, got %s", v1.JSONKind(raw))
		return reply
	}
	texts := []string{"content", "text", "response"} // the first existing field applies
	fields := r.object(path, raw, "only response, parts and tool_calls are", append(texts, "tool_calls", "parts", "type")...)
	said := slices.IndexFunc(texts, func(key string) bool { return len(fields[key]) > 0 })
	for _, key := range sortedKeys(fields) {
		switch i := slices.Index(texts, key); {
		case i >= 0 && i == said:
			r.read(v1.Pointer(path, key), fields[key], &reply.Text, "a text")
		case i >= 0:
			r.violation(v1.Pointer(path, key), v1.SeverityWarning, "%q is not read: %q says what is answered", key, texts[said])
		}
	}
	var calls []struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	r.read(v1.Pointer(path, "tool_calls"), fields["tool_calls"], &calls, "a list of calls with name and arguments")
	for _, c := range calls {
		reply.ToolCalls = append(reply.ToolCalls, v1.ModelToolCall{Tool: c.Name, Args: c.Arguments})
	}
	reply.parts = r.parts(v1.Pointer(path, "parts"), fields["parts"])
	// PromptKit's mock model returns either calls or parts, depending on the type.
	multimodal := string(fields["type"]) == `"multimodal"`
	switch calls := len(reply.ToolCalls) > 0; {
	case calls && multimodal:
		r.violation(v1.Pointer(path, "tool_calls"), v1.SeverityWarning, "tool_calls are not made: the type of the answer is multimodal")
		reply.ToolCalls = nil
	case calls && len(reply.parts) > 0:
		r.violation(v1.Pointer(path, "parts"), v1.SeverityWarning, "parts are not read beside tool_calls")
		reply.parts = nil
	}
	if reply.Text == "" {
		for _, p := range reply.parts {
			reply.Text += p.Text
		}
	}
	return reply
}

// parts reads the multimodal parts of a reply.
func (r *responseReader) parts(path string, raw json.RawMessage) (parts []v1.Part) {
	type address struct {
		URL string `json:"url"`
	}
	var given []struct {
		Type  string    `json:"type"`
		Text  string    `json:"text"`
		Image address   `json:"image_url"`
		Audio address   `json:"audio_url"`
		Video address   `json:"video_url"`
		Doc   address   `json:"document_url"`
		Media *v1.Media `json:"media"`
	}
	r.read(path, raw, &given, "a list of parts with type, and text or the url of a medium")
	for i, g := range given {
		uri := map[string]address{"image": g.Image, "audio": g.Audio, "video": g.Video, "document": g.Doc}[g.Type].URL
		if g.Type != v1.PartText && uri == "" && g.Media == nil {
			r.violation(v1.Pointer(path, strconv.Itoa(i)), "", "a part of type %q needs %s_url", g.Type, g.Type)
		}
		parts = append(parts, v1.Part{Type: g.Type, Text: g.Text, Media: g.Media, URI: uri})
	}
	return parts
}

// script holds the replies for one scenario.
type script struct {
	replies map[int]modelReply
	// fallback is the reply for numbers without a scripted reply; nil if the script has no such reply.
	fallback *modelReply
	// byTurn says that the numbers are those of turns. Without byTurn, they count all replies.
	byTurn bool
	// next is the number of the next reply, from 1.
	next int
}

// script returns the replies for the first of a scenario's names that has some. PromptKit's mock
// model numbers all its replies in the conversation, including those after the results of its
// calls. If no number exceeds the number of turns, and there is no default reply, the numbers
// are those of turns.
func (r *Responses) script(turns int, names ...string) *script {
	s := &script{next: 1}
	if r == nil {
		return s
	}
	names = slices.DeleteFunc(names, func(name string) bool { return name == "" })
	for _, name := range append(names, "") {
		if text, ok := r.fallbacks[name]; ok && s.fallback == nil {
			s.fallback = &modelReply{ModelReply: v1.ModelReply{Text: text}}
		}
		if len(r.turns[name]) > 0 && s.replies == nil {
			s.replies = r.turns[name]
		}
	}
	s.byTurn = s.fallback == nil
	for n := range s.replies {
		s.byTurn = s.byTurn && n <= turns
	}
	return s
}

// unread gives back the last n replies of a turn, which were not used.
func (s *script) unread(n int) {
	if !s.byTurn {
		s.next -= n
	}
}

// turn returns the replies in turn n, from 1; nil if there are no replies.
func (s *script) turn(n int) (replies []modelReply) {
	if s.byTurn {
		s.next = n
	}
	for {
		reply, ok := s.replies[s.next]
		s.next++ // a missing reply counts too, because PromptKit sends a default one
		if !ok && s.fallback != nil {
			return append(replies, *s.fallback)
		}
		if !ok {
			return replies
		}
		replies = append(replies, reply)
		if s.byTurn || len(reply.ToolCalls) == 0 {
			return replies
		}
	}
}
