package scenario

import (
	"encoding/json"
	"fmt"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Responses script the model of scenarios, from a file of PromptKit's mock
// responses: by the scenario's id or name and the answer's number, a text, or an object
// with response and tool_calls. A nil Responses scripts nothing.
type Responses struct {
	turns map[string]map[int]v1.ModelReply
}

// ReadResponses reads a file of mock responses that was turned into JSON. Violations
// that are warnings name the parts that have no meaning for tools; any other makes
// the file unusable. Paths of violations start at the file's root.
func ReadResponses(raw json.RawMessage) (*Responses, []v1.Violation) {
	out := &Responses{turns: map[string]map[int]v1.ModelReply{}}
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
	root := object("", raw)
	for _, key := range sortedKeys(root) {
		if key != "scenarios" {
			violation(v1.Pointer("", key), v1.SeverityWarning, "%q is not read: only scripted turns are", key)
		}
	}
	if len(root["scenarios"]) == 0 {
		if len(root["defaultResponse"]) > 0 {
			return out, violations // PromptKit's, with one answer to everything
		}
		violation("", "", "expected scenarios, got nothing")
		return nil, violations
	}
	scenarios := object("/scenarios", root["scenarios"])
	for _, name := range sortedKeys(scenarios) {
		path := v1.Pointer("/scenarios", name)
		fields := object(path, scenarios[name])
		for _, key := range sortedKeys(fields) {
			if key != "turns" {
				violation(v1.Pointer(path, key), v1.SeverityWarning, "%q is not read: only scripted turns are", key)
			}
		}
		if len(fields["turns"]) == 0 {
			continue
		}
		out.turns[name] = map[int]v1.ModelReply{}
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
	for _, f := range violations {
		if !f.IsWarning() {
			return nil, violations
		}
	}
	return out, violations
}

func readReply(path string, raw json.RawMessage, violation func(path, severity, format string, args ...any)) (reply v1.ModelReply) {
	if json.Unmarshal(raw, &reply.Text) == nil {
		return reply
	}
	fields := map[string]json.RawMessage{}
	if err := json.Unmarshal(raw, &fields); err != nil {
		violation(path, "", "expected a text or an object, got %s", v1.JSONKind(raw))
		return reply
	}
	for _, key := range sortedKeys(fields) {
		switch key {
		case "response", "content", "text":
			if err := json.Unmarshal(fields[key], &reply.Text); err != nil {
				violation(v1.Pointer(path, key), "", "expected a text, got %s", v1.JSONKind(fields[key]))
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
		default:
			violation(v1.Pointer(path, key), v1.SeverityWarning, "%q is not read: only response and tool_calls are", key)
		}
	}
	return reply
}

// script is what the model answers in one scenario.
type script struct {
	replies map[int]v1.ModelReply
	// whole says that the numbers run through the conversation, not turn by turn.
	whole bool
	// next is the number of the next answer, from 1.
	next int
}

// script chooses the answers of a scenario by the first of its names that has some.
// PromptKit's mock model numbers its answers through the whole conversation: what it
// says to the results of its calls has a number of its own. A file with no more
// answers than the scenario has turns may be numbered either way, and is read by turn.
func (r *Responses) script(turns int, names ...string) *script {
	s := &script{next: 1}
	if r == nil {
		return s
	}
	for _, name := range names {
		if len(r.turns[name]) > 0 {
			s.replies = r.turns[name]
			break
		}
	}
	for n := range s.replies {
		s.whole = s.whole || n > turns
	}
	return s
}

// turn is what the model answers in a turn, from 1, in order; nil when nothing scripts it.
func (s *script) turn(n int) (replies []v1.ModelReply) {
	if !s.whole {
		s.next = n
	}
	for {
		reply, ok := s.replies[s.next]
		s.next++ // an answer that is not scripted counts: PromptKit gives its default one
		if !ok {
			return replies
		}
		replies = append(replies, reply)
		if !s.whole || len(reply.ToolCalls) == 0 {
			return replies
		}
	}
}
