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
	out := &Responses{turns: map[string]map[int]modelReply{}, fallbacks: map[string]string{}}
	var violations []v1.Violation
	violation := func(path, severity, format string, args ...any) {
		violations = append(violations, v1.Violation{Path: path, Severity: severity, Message: fmt.Sprintf(format, args...)})
	}
	object := func(path string, raw json.RawMessage) map[string]json.RawMessage {
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(raw, &fields); err != nil {
			violation(path, "", "expected an object, got %s", v1.JSONKind(raw))
		}
		return fields
	}
	fallback := func(path, scenario string, raw json.RawMessage) {
		text := ""
		if err := json.Unmarshal(raw, &text); err != nil {
			violation(v1.Pointer(path, defaultResponse), "", "expected a text, got %s", v1.JSONKind(raw))
		}
		out.fallbacks[scenario] = text
	}
	root := object("", raw)
	for _, key := range sortedKeys(root) {
		switch key {
		case "scenarios":
		case defaultResponse:
			fallback("", "", root[key])
		default:
			violation(v1.Pointer("", key), v1.SeverityWarning, "%q is not read: only scripted turns are", key)
		}
	}
	if len(root["scenarios"]) == 0 {
		if len(root[defaultResponse]) > 0 {
			return out.unless(violations) // one default reply for all turns
		}
		violation("", "", "expected scenarios, got nothing")
		return nil, violations
	}
	scenarios := object("/scenarios", root["scenarios"])
	for _, name := range sortedKeys(scenarios) {
		path := v1.Pointer("/scenarios", name)
		fields := object(path, scenarios[name])
		for _, key := range sortedKeys(fields) {
			switch key {
			case "turns":
			case defaultResponse:
				fallback(path, name, fields[key])
			default:
				violation(v1.Pointer(path, key), v1.SeverityWarning, "%q is not read: only scripted turns are", key)
			}
		}
		if len(fields["turns"]) == 0 {
			continue
		}
		out.turns[name] = map[int]modelReply{}
		turns := object(path+"/turns", fields["turns"])
		for _, number := range sortedKeys(turns) {
			at := v1.Pointer(path, "turns", number)
			n, err := strconv.Atoi(number)
			if err != nil || n < 1 {
				violation(at, "", "expected the number of a turn, from 1, got %q", number)
				continue
			}
			out.turns[name][n] = readReply(at, turns[number], violation)
		}
	}
	return out.unless(violations)
}

// defaultResponse is the field of a default reply.
const defaultResponse = "defaultResponse"

// unless returns the responses unless there is an error among the violations.
func (r *Responses) unless(violations []v1.Violation) (*Responses, []v1.Violation) {
	for _, f := range violations {
		if !f.IsWarning() {
			return nil, violations
		}
	}
	return r, violations
}

func readReply(path string, raw json.RawMessage, violation func(path, severity, format string, args ...any)) (reply modelReply) {
	if json.Unmarshal(raw, &reply.Text) == nil {
		return reply
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		violation(path, "", "expected a text or an object, got %s", v1.JSONKind(raw))
		return reply
	}
	kind, said := "", ""
	for _, key := range []string{"content", "text", "response"} { // the first one present counts
		if raw := fields[key]; len(raw) > 0 && said == "" {
			said = key
			if err := json.Unmarshal(raw, &reply.Text); err != nil {
				violation(v1.Pointer(path, key), "", "expected a text, got %s", v1.JSONKind(raw))
			}
		}
	}
	for _, key := range sortedKeys(fields) {
		switch key {
		case "content", "text", "response":
			if key != said {
				violation(v1.Pointer(path, key), v1.SeverityWarning, "%q is not read: %q says what is answered", key, said)
			}
		case "tool_calls":
			var calls []struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			}
			if err := json.Unmarshal(fields[key], &calls); err != nil {
				violation(v1.Pointer(path, key), "", "expected a list of calls with name and arguments, got %s", v1.JSONKind(fields[key]))
			}
			for _, c := range calls {
				reply.ToolCalls = append(reply.ToolCalls, v1.ModelToolCall{Tool: c.Name, Args: c.Arguments})
			}
		case "parts":
			reply.parts = readParts(v1.Pointer(path, key), fields[key], violation)
		case "type":
			_ = json.Unmarshal(fields[key], &kind) // only multimodal makes a difference
		default:
			violation(v1.Pointer(path, key), v1.SeverityWarning, "%q is not read: only response, parts and tool_calls are", key)
		}
	}
	// PromptKit's mock model returns either calls or parts, depending on the type.
	switch calls := len(reply.ToolCalls) > 0; {
	case calls && kind == "multimodal":
		violation(v1.Pointer(path, "tool_calls"), v1.SeverityWarning, "tool_calls are not made: the type of the answer is multimodal")
		reply.ToolCalls = nil
	case calls && len(reply.parts) > 0:
		violation(v1.Pointer(path, "parts"), v1.SeverityWarning, "parts are not read beside tool_calls")
		reply.parts = nil
	}
	if reply.Text == "" {
		for _, p := range reply.parts {
			reply.Text += p.Text
		}
	}
	return reply
}

// readParts reads the multimodal parts of a reply.
func readParts(path string, raw json.RawMessage, violation func(path, severity, format string, args ...any)) (parts []v1.Part) {
	type address struct {
		URL string `json:"url"`
	}
	var given []struct {
		Type  string    `json:"type"`
		Text  string    `json:"text"`
		Image *address  `json:"image_url"`
		Audio *address  `json:"audio_url"`
		Video *address  `json:"video_url"`
		Doc   *address  `json:"document_url"`
		Media *v1.Media `json:"media"`
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		violation(path, "", "expected a list of parts with type, and text or the url of a medium: %v", err)
		return nil
	}
	for i, g := range given {
		p := v1.Part{Type: g.Type, Text: g.Text, Media: g.Media}
		for kind, a := range map[string]*address{"image": g.Image, "audio": g.Audio, "video": g.Video, "document": g.Doc} {
			if a != nil && kind == g.Type {
				p.URI = a.URL
			}
		}
		if g.Type != v1.PartText && p.URI == "" && p.Media == nil {
			violation(v1.Pointer(path, strconv.Itoa(i)), "", "a part of type %q needs %s_url", g.Type, g.Type)
		}
		parts = append(parts, p)
	}
	return parts
}

// script holds the replies for one scenario.
type script struct {
	replies map[int]modelReply
	// fallback is the reply where no number is scripted; nil if there is none.
	fallback *modelReply
	// byTurn says that the numbers are those of turns. Otherwise they count all replies.
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

// turn returns the replies in turn n, from 1; nil if there are none.
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
