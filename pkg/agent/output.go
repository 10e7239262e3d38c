package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/agent/internal/repair"
	"toolctl.dev/toolctl/pkg/validate"
)

// offerSubmit adds the tool that takes the answer of a prompt with spec.output, if the
// provider cannot enforce the schema.
func (l *loop) offerSubmit(o *offer) {
	if len(l.spec.Output) == 0 || l.native {
		return
	}
	if o.choice == v1.ToolChoiceRequired {
		return // the model must call another tool first
	}
	o.submit = v1.SubmitOutput
	schema := l.spec.Output
	if l.wrapped() {
		schema = jsontext.Of(map[string]any{"type": "object", "properties": map[string]any{"output": schema}, "required": []string{"output"}})
	}
	spec := ToolSpec{Name: o.submit, Description: "Give the final answer. Call it alone, once all else is done.", Parameters: schema}
	at := 0
	for at < len(o.specs) && o.specs[at].Name < spec.Name {
		at++
	}
	o.specs = append(o.specs[:at], append([]ToolSpec{spec}, o.specs[at:]...)...)
	o.choice = v1.ToolChoiceAuto
	if len(o.specs) == 1 {
		o.choice = v1.ToolChoiceRequired
	}
}

func (o *offer) isSubmit(name string) bool { return o.submit != "" && name == o.submit }

// wrapped reports whether answers need a wrapper because they are not objects, as the
// arguments of a call must be.
func (l *loop) wrapped() bool {
	var root struct {
		Type any `json:"type"`
	}
	return json.Unmarshal(l.spec.Output, &root) != nil || root.Type != "object"
}

// submitted handles an answer in a call of the submit tool.
func (l *loop) submitted(call ToolCall, cut bool) error {
	hop := &l.res.Hops[len(l.res.Hops)-1]
	c := Call{ID: call.ID, Name: call.Name, Answer: true, Result: v1.Result{Tool: call.Name, Status: v1.StatusComplete}}
	doc, raw, how, err := repair.Object(call.Args, cut)
	if cut {
		err = errors.New("the reply was cut off before its end")
	}
	var violations []v1.Violation
	c.Result.Repair = how
	if err != nil {
		message, _ := validate.Undecoded("the answer is", err)
		violations = []v1.Violation{{Expected: "a JSON object", Got: strconv.Quote(clip.Bytes(call.Args, 200)), Message: message}}
	} else {
		c.Args = raw
		if l.wrapped() {
			if _, ok := doc["output"]; ok {
				raw = jsontext.Of(doc["output"])
			}
		}
		violations = l.prompt.CheckOutput(raw)
	}
	if len(violations) == 0 {
		l.res.Status, l.res.Output = Complete, raw
		hop.Calls = []Call{c}
		return nil
	}
	invalid := v1.NewValidationError(v1.ResultInvalid, "", violations)
	c.refuse(invalid)
	hop.Calls = []Call{c}
	return l.again(invalid, call.Args, Message{Role: RoleTool, ToolCallID: call.ID, Tool: call.Name, IsError: true})
}

// answer handles an answer in the text of a reply.
func (l *loop) answer(offer *offer, text, stop string) error {
	raw, violations := l.read(text, cutOff(stop))
	if len(violations) == 0 {
		l.res.Status, l.res.Output = Complete, raw
		return nil
	}
	return l.again(v1.NewValidationError(v1.ResultInvalid, "", violations), text, Message{Role: RoleUser})
}

// read reads an answer from a text: the text is JSON, it contains JSON, or the schema
// allows a string.
func (l *loop) read(text string, cut bool) (json.RawMessage, []v1.Violation) {
	body := strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(body, "```"); ok {
		if _, rest, ok := strings.Cut(inner, "\n"); ok {
			inner = rest
		}
		body = strings.TrimSpace(strings.TrimSuffix(inner, "```"))
	}
	raw := json.RawMessage(body)
	_, err := validate.Decode(raw)
	if err != nil && strings.Contains(body, "{") {
		if _, repaired, _, bad := repair.Object(body, cut); bad == nil {
			raw, err = repaired, nil
		}
	}
	if err == nil {
		violations := l.prompt.CheckOutput(raw)
		if len(violations) == 0 {
			return raw, nil
		}
		if quoted := jsontext.Of(text); len(l.prompt.CheckOutput(quoted)) == 0 {
			return quoted, nil
		}
		return nil, violations
	}
	if quoted := jsontext.Of(text); len(l.prompt.CheckOutput(quoted)) == 0 {
		return quoted, nil
	}
	message, _ := validate.Undecoded("the answer is", err)
	return nil, []v1.Violation{{Expected: "JSON", Got: strconv.Quote(clip.Bytes(text, 200)), Message: message}}
}

// again reports the violations of an answer to the model once, in the message m.
func (l *loop) again(invalid *v1.ValidationError, text string, m Message) error {
	if l.Tries++; l.Tries > 1 {
		return &OutputError{Prompt: l.res.Prompt, Text: clip.Bytes(text, maxReplyBytes), Invalid: invalid}
	}
	m.Text = fmt.Sprintf("The answer does not fit its JSON Schema:\n%s\nGive the whole answer again.", violationList(invalid.Violations))
	l.say(m)
	return nil
}

// violationList writes one violation on each line.
func violationList(violations []v1.Violation) string {
	const most = 50
	var b strings.Builder
	for i, f := range violations {
		if i == most {
			fmt.Fprintf(&b, "- and %d more\n", len(violations)-most)
			break
		}
		path := cmp.Or(f.Path, "(the whole)")
		fmt.Fprintf(&b, "- %s: %s", path, f.Message)
		if f.Expected != "" {
			fmt.Fprintf(&b, " (expected %s, got %s)", f.Expected, f.Got)
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}
