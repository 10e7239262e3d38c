package diff

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/validate"
)

// rule says what a change of a field means. A rule without a class leaves it to code.
type rule struct {
	field  string // and all below it
	class  Class
	reason string
}

// shared are the rules that all kinds have; those of a kind come before them.
var shared = []rule{
	{"/metadata/annotations", Neutral, "annotations mean nothing to a call"},
	{"/metadata/labels", Neutral, "selectors and policies choose by labels"},
	{"/apiVersion", Unknown, "the manifest is read by the rules of another apiVersion"},
	{"/files", Unknown, "a file that the manifest names has another content"},
	{"", Unknown, "what this changes cannot be told from the manifest"},
}

// judge finds the reasons of the change: at least one.
func (j *judgement) judge(ctx context.Context) {
	created, deleted := j.pair.Before == nil, j.pair.After == nil
	of := j.pair.After
	if deleted {
		of = j.pair.Before
	}
	switch o := of.(type) {
	case *v1.Tool:
		switch {
		case created:
			j.add(Compatible, "", "the tool is new", nil)
		case deleted:
			j.add(Breaking, "", "the tool is gone: its calls are answered with not found", j.sample(o.Spec.InputSchema, o.FromPromptKit()))
		default:
			j.tool(ctx, j.pair.Before.(*v1.Tool), o)
		}
	case *v1.Prompt:
		switch {
		case created:
			j.add(Compatible, "", "the prompt is new", nil)
		case deleted:
			j.add(Breaking, "", "the prompt is gone: it can no longer be rendered or run", j.sample(variables(o), o.FromPromptKit()))
		default:
			j.prompt(ctx, j.pair.Before.(*v1.Prompt), o)
		}
	case *v1.ToolPolicy:
		before, _ := j.pair.Before.(*v1.ToolPolicy)
		after, _ := j.pair.After.(*v1.ToolPolicy)
		j.policy(ctx, before, after)
	case *v1.MCPServer:
		switch {
		case created:
			j.add(Compatible, "", "the server is new: its tools are offered", nil)
		case deleted:
			j.add(Breaking, "", "the server is gone, and all of its tools with it", nil)
		default:
			j.server(ctx, j.pair.Before.(*v1.MCPServer), o)
		}
	default:
		j.add(Neutral, "", "a scenario is a test: nothing that is served changes", nil)
	}
	switch {
	case len(j.reasons) > 0:
	case len(j.fields) == 0:
		j.add(Neutral, "", "it is taken over from another set", nil)
	default:
		j.add(Unknown, j.first(""), shared[len(shared)-1].reason, nil)
	}
}

// byRules adds the reasons of the rules that changed fields fall under, each once.
func (j *judgement) byRules(rules []rule) {
	done := map[string]bool{}
	for _, f := range j.fields {
		if r := find(f.Path, rules, shared); r.class != "" && !done[r.reason] {
			done[r.reason] = true
			j.add(r.class, f.Path, r.reason, nil)
		}
	}
}

func find(path string, tables ...[]rule) rule {
	for _, rules := range tables {
		for _, r := range rules {
			if under(path, r.field) {
				return r
			}
		}
	}
	return rule{}
}

// schema compares two schemas, of which nil takes everything.
func (j *judgement) schema(at string, before, after json.RawMessage, as Direction, promptKit, coerces bool) {
	for _, s := range []*json.RawMessage{&before, &after} {
		if len(*s) == 0 {
			*s = json.RawMessage(`{}`)
		}
	}
	change, err := j.checker.schemas(before, after, as, draftOf(promptKit), coerces)
	if err != nil {
		j.add(Unknown, j.first(at), "the schemas cannot be compared: "+err.Error(), nil)
		return
	}
	if change.Class == Neutral && change.Reason == "only annotations changed" {
		change.Reason = "only titles, descriptions and other annotations changed, which models read"
	}
	j.addSchema(at, change)
}

func draftOf(promptKit bool) validate.Draft {
	if promptKit {
		return validate.Draft7
	}
	return validate.Draft2020
}

// sample returns a document that fits a schema, nil when none is found.
func (j *judgement) sample(schema json.RawMessage, promptKit bool) any {
	if len(schema) == 0 {
		schema = json.RawMessage(`{"type":"object"}`)
	}
	change, err := j.checker.schemas(schema, json.RawMessage(`{"not":{}}`), Input, draftOf(promptKit), false)
	if err != nil || change.Witness == nil {
		return nil
	}
	return change.Witness
}

// shorter judges a time within which calls have to end.
func (j *judgement) shorter(pointer string, before, after int) {
	if before == after {
		if p := j.first(pointer); p != "" {
			j.add(Neutral, p, "it says what was the default, or leaves that out", nil)
		}
		return
	}
	if after < before {
		j.add(Risky, pointer, fmt.Sprintf("calls that take more than %d ms are ended; they had %d ms", after, before), nil)
		return
	}
	j.add(Compatible, pointer, fmt.Sprintf("calls have %d ms, where they had %d ms", after, before), nil)
}

// cases adds what calls show, the tighter one first.
func (j *judgement) cases(pointer func(*policy.Case) string, tighter, looser *policy.Case) {
	if c := tighter; c != nil {
		j.add(Tighter, pointer(c), "a call that was "+verb(c.Was)+" is "+verb(c.Now)+inWords(c), c)
	}
	if c := looser; c != nil {
		j.add(Looser, pointer(c), "a call that was "+verb(c.Was)+" is "+verb(c.Now)+inWords(c), c)
	}
}

func verb(decision string) string {
	switch decision {
	case v1.DecisionDeny:
		return "refused"
	case v1.DecisionPending:
		return "held for approval"
	case v1.DecisionAudit:
		return "let through and recorded"
	}
	return "let through"
}

// inWords says which call it is.
func inWords(c *policy.Case) string {
	text := ": " + c.Tool
	if c.Principal != "" {
		text += " by " + c.Principal
	}
	if c.Earlier > 0 {
		text += fmt.Sprintf(", after %d ", c.Earlier)
		if c.Earlier == 1 {
			text += "call "
		} else {
			text += "calls "
		}
		text += c.Where
	}
	if c.Message != "" {
		text += " (" + c.Message + ")"
	}
	return text
}
