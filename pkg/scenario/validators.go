package scenario

import (
	"fmt"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/prompt"
)

// chooseValidators finds the prompt with the task_type of a PromptKit scenario. If two prompts have it, the choice is
// ambiguous, and no validators apply.
func (p *player) chooseValidators() {
	p.validators = &prompt.Prompt{}
	if !p.promptKit {
		return
	}
	found := p.prompts()
	has := func(m *v1.Prompt) bool { return len(m.Spec.Validators) > 0 }
	switch {
	case len(found) > 1 && slices.ContainsFunc(found, has):
		p.warn("/spec/task_type", "validators are not applied: prompts %q and %q both have task_type %q", found[0].Metadata.Name, found[1].Metadata.Name, p.spec.TaskType)
	case len(found) == 1 && has(found[0]):
		compiled, err := prompt.Compile(found[0])
		if err != nil {
			p.warn("/spec/task_type", "the validators of prompt %q are not applied: %v", found[0].Metadata.Name, err)
			return
		}
		p.validators = compiled
	}
}

// prompts returns the prompts whose validators may apply: all prompts, or in a PromptKit scenario
// those with its task_type.
func (p *player) prompts() []*v1.Prompt {
	var found []*v1.Prompt
	for _, o := range p.runner.objects {
		m, ok := o.(*v1.Prompt)
		if !ok {
			continue
		}
		if task := p.spec.TaskType; !p.promptKit || task != "" && (m.Spec.TaskType == task || m.Spec.TaskType == "" && m.Metadata.Name == task) {
			found = append(found, m)
		}
	}
	return found
}

// validated adds the verdict of a validator.
func (t *Turn) validated(v *prompt.Verdict) { t.Validators = append(t.Validators, *v) }

// validatedRun adds the verdicts in a run.
func (t *Turn) validatedRun(res *agent.Result) {
	for _, hop := range res.Hops {
		if hop.Validator != nil {
			t.validated(hop.Validator)
		}
	}
}

// verdicts returns the verdicts in the last turn with a reply of a model.
func (s *scope) verdicts() []prompt.Verdict {
	for _, t := range slices.Backward(s.own) {
		if t.replies > 0 {
			return t.Validators
		}
	}
	return nil
}

// isValidator reports whether a validator of the type applies in the scenario.
func (p *player) isValidator(name string) bool {
	if p.promptKit {
		return p.validators.HasValidator(name)
	}
	return slices.ContainsFunc(p.prompts(), func(m *v1.Prompt) bool {
		compiled, err := prompt.Compile(m)
		return err == nil && compiled.HasValidator(name)
	})
}

// noValidator returns the reason why no validator of the type applies in the scenario.
func (p *player) noValidator(name string) string {
	reason := fmt.Sprintf("%q is not a policy of this scenario, a rule of one, or a validator of a prompt", name)
	if slices.ContainsFunc(p.prompts(), func(m *v1.Prompt) bool {
		return slices.ContainsFunc(m.Spec.Validators, func(v v1.PromptValidator) bool { return v.Type == name })
	}) {
		reason = fmt.Sprintf("validator %q is not applied", name)
	}
	if t, ok := v1.FindAssertionType(name); ok && t.Unjudged != "" {
		reason = fmt.Sprintf("validator %q is not applied: %s", name, t.Unjudged)
	}
	return reason
}
