package prompt

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/params"
	"toolctl.dev/toolctl/internal/textcheck"
	"toolctl.dev/toolctl/pkg/validate"
)

// Directions of a validator: texts of the user, texts of the model, or both.
const (
	DirectionInput  = "input"
	DirectionOutput = "output"
	DirectionBoth   = "both"
)

// refusal replaces a text that a validator without a message refuses.
const refusal = "Sorry, we can't provide this response as it would violate our content policy."

// Verdict says that a validator refused or cut a text.
type Verdict struct {
	// Validator is the type of the validator, as written in the manifest.
	Validator string `json:"type"`
	// Direction is [DirectionInput] or [DirectionOutput].
	Direction string `json:"direction"`
	// Reason says how the text breaks the rule.
	Reason string `json:"reason"`
	// Text replaces the text.
	Text string `json:"-"`
}

// HasValidators reports whether any validator checks the texts of the model.
func (p *Prompt) HasValidators() bool {
	return slices.ContainsFunc(p.validators, func(v *validator) bool { return v.Direction != DirectionInput })
}

// HasValidator reports whether a validator with this type name in the manifest applies.
func (p *Prompt) HasValidator(name string) bool {
	return slices.ContainsFunc(p.validators, func(v *validator) bool { return v.name == name })
}

// ValidateReply checks a text of the model with the validators. It returns nil if the text passes. A reply without
// text, such as a reply that has only calls, passes.
func (p *Prompt) ValidateReply(text string) *Verdict { return p.validate(DirectionOutput, text) }

// ValidateInput checks a text of the user with the validators. It returns nil if the text passes.
func (p *Prompt) ValidateInput(text string) *Verdict { return p.validate(DirectionInput, text) }

func (p *Prompt) validate(direction, text string) *Verdict {
	if text == "" {
		return nil
	}
	for _, v := range p.validators {
		if v.Direction != direction && v.Direction != DirectionBoth {
			continue
		}
		if broken := v.rule.Check(text); broken != nil {
			return &Verdict{Validator: v.name, Direction: direction, Reason: broken.Reason, Text: v.instead(direction, text)}
		}
	}
	return nil
}

// validator is one compiled validator of a prompt.
type validator struct {
	Direction string `json:"direction"`
	Message   string `json:"message"` // the replacement for a refused text
	name      string
	rule      textcheck.Rule
}

// Invalid implements [params.Checker].
func (v *validator) Invalid() string {
	v.Direction = cmp.Or(v.Direction, DirectionOutput)
	if !slices.Contains([]string{DirectionInput, DirectionOutput, DirectionBoth}, v.Direction) {
		return fmt.Sprintf("parameter \"direction\": expected input, output or both, got %q", v.Direction)
	}
	return ""
}

// instead returns the replacement for a refused text. If the text is only too long, this is its beginning.
func (v *validator) instead(direction, text string) string {
	if m, ok := v.rule.(*textcheck.MaxLength); ok && direction == DirectionOutput && m.Cut(text) != "" {
		return m.Cut(text)
	}
	return cmp.Or(v.Message, refusal)
}

// compileValidators reads the validators. In a PromptKit manifest, an invalid validator is not
// applied, with a warning.
func (p *Prompt) compileValidators(schemas *validate.Cache) []v1.Violation {
	var violations []v1.Violation
	promptKit := p.object.FromPromptKit()
	for i, m := range p.object.Spec.Validators {
		t, _ := v1.FindAssertionType(m.Type)
		v := &validator{name: m.Type, rule: textcheck.New(t.Name, m.Type, schemas, promptKit)}
		if m.Enabled != nil && !*m.Enabled || v.rule == nil {
			continue // [v1.Prompt.Validate] reports unknown types
		}
		_, message := params.Read(m.Params, promptKit, v.rule, v)
		if v.Message = cmp.Or(m.Message, v.Message); message == "" {
			p.validators = append(p.validators, v)
			continue
		}
		at := v1.Pointer("/spec/validators", strconv.Itoa(i), "params")
		if _, ok := p.object.Fields[at]; !ok {
			at = v1.Pointer("/spec/validators", strconv.Itoa(i))
		}
		f := v1.Violation{Path: at, Expected: "parameters of " + m.Type, Got: "others", Message: message}
		if promptKit {
			f.Severity, f.Message = v1.SeverityWarning, fmt.Sprintf("validator %q is not applied: %s", m.Type, message)
		}
		violations = append(violations, p.place(f))
	}
	return violations
}
