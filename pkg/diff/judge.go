package diff

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/validate"
)

// rule is the meaning of a change of some fields, or of values below them. A rule without a class leaves its
// fields to code.
type rule struct {
	class  Class
	reason string
	fields []string
}

// shared are the rules that apply to all kinds. The rule with the longest matching field applies.
var shared = []rule{
	{Neutral, "annotations do not affect calls", []string{"/metadata/annotations"}},
	{Neutral, "selectors and policies match labels", []string{"/metadata/labels"}},
	{Unknown, "the rules for manifests differ between API versions", []string{"/apiVersion"}},
	{Unknown, "the content of a referenced file changed", []string{"/files"}},
	{Unknown, "the manifest does not show what this changes", []string{""}},
}

// judge finds the reasons of the change: at least one.
func (j *judgement) judge(ctx context.Context) {
	of := j.pair.After
	if of == nil {
		of = j.pair.Before
	}
	switch o := of.(type) {
	case *v1.Tool:
		if j.appears("the tool is new", "the tool is deleted: its calls fail with not found", func() any { return j.sample(o.Spec.InputSchema, o.FromPromptKit()) }) {
			j.tool(ctx, j.pair.Before.(*v1.Tool), o)
		}
	case *v1.Prompt:
		if j.appears("the prompt is new", "the prompt is deleted: it can no longer be rendered or run", func() any { return j.sample(variables(o), o.FromPromptKit()) }) {
			j.prompt(ctx, j.pair.Before.(*v1.Prompt), o)
		}
	case *v1.ToolPolicy:
		before, _ := j.pair.Before.(*v1.ToolPolicy)
		after, _ := j.pair.After.(*v1.ToolPolicy)
		j.policy(ctx, before, after)
	case *v1.MCPServer:
		if j.appears("the server is new: its tools are offered", "the server is deleted with all of its tools", func() any { return nil }) {
			j.server(ctx, j.pair.Before.(*v1.MCPServer), o)
		}
	case *v1.Toolset:
		if j.appears("the toolset is new: it is served at /mcp/"+o.Metadata.Name, "the toolset is deleted: its clients get 404", func() any { return nil }) {
			j.toolset(j.pair.Before.(*v1.Toolset), o)
		}
	default:
		j.add(Neutral, "", "a scenario is a test: served tools do not change", nil)
	}
	switch {
	case len(j.reasons) > 0:
	case len(j.fields) == 0:
		j.add(Neutral, "", "the object moves here from another set", nil)
	default:
		j.add(Unknown, j.first(""), find("", shared).reason, nil)
	}
}

// appears adds the reason for a new or deleted object, and reports whether the object exists on both sides. The
// witness of a deleted object is a call that worked.
func (j *judgement) appears(created, gone string, witness func() any) (changed bool) {
	switch {
	case j.pair.Before == nil:
		j.add(Compatible, "", created, nil)
	case j.pair.After == nil:
		j.add(Breaking, "", gone, witness())
	default:
		return true
	}
	return false
}

// moved sets the pointer of all reasons from index n on.
func (j *judgement) moved(n int, pointer string) {
	for i := n; i < len(j.reasons); i++ {
		j.reasons[i].Pointer, j.reasons[i].Source = pointer, j.head.Field(pointer)
	}
}

// byRules adds the reason of each rule that matches changed fields, each once.
func (j *judgement) byRules(rules []rule) {
	done := map[string]bool{}
	for _, f := range j.fields {
		if r := find(f.Path, slices.Concat(rules, shared)); r.class != "" && !done[r.reason] {
			done[r.reason] = true
			j.add(r.class, f.Path, r.reason, nil)
		}
	}
}

func find(path string, rules []rule) (found rule) {
	longest := -1
	for _, r := range rules {
		for _, field := range r.fields {
			if under(path, field) && len(field) > longest {
				found, longest = r, len(field)
			}
		}
	}
	return found
}

// schema compares two schemas; nil accepts everything.
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

// sample returns a document that fits a schema, or nil if none is found.
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

// shorter judges a change of a timeout.
func (j *judgement) shorter(pointer string, before, after int) {
	if before == after {
		if p := j.first(pointer); p != "" {
			j.add(Neutral, p, "the default value is now explicit, or implicit again", nil)
		}
		return
	}
	if after < before {
		j.add(Risky, pointer, fmt.Sprintf("calls are cancelled after %d ms; the limit was %d ms", after, before), nil)
		return
	}
	j.add(Compatible, pointer, fmt.Sprintf("calls may take %d ms; the limit was %d ms", after, before), nil)
}

// cases adds the calls with a different decision, the tighter one first.
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

// inWords describes a call in words.
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
