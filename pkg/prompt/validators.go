package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/textcheck"
	"toolctl.dev/toolctl/pkg/validate"
)

// Directions of a validator: what the user says, what the model says, or both.
const (
	DirectionInput  = "input"
	DirectionOutput = "output"
	DirectionBoth   = "both"
)

// refusal is said in place of a text that a validator without a message refuses.
const refusal = "Sorry, we can't provide this response as it would violate our content policy."

// Verdict is what a validator made of a text.
type Verdict struct {
	// Validator is the type of the validator, as the manifest has it.
	Validator string `json:"type"`
	// Direction is [DirectionInput] or [DirectionOutput].
	Direction string `json:"direction"`
	// Reason says what the text broke.
	Reason string `json:"reason"`
	// Text is what is said instead.
	Text string `json:"-"`
}

// HasValidators reports whether any validator looks at what the model says.
func (p *Prompt) HasValidators() bool {
	return slices.ContainsFunc(p.validators, func(v *validator) bool { return v.Direction != DirectionInput })
}

// HasValidator reports whether a validator of this type, as the manifest has it, applies.
func (p *Prompt) HasValidator(name string) bool {
	return slices.ContainsFunc(p.validators, func(v *validator) bool { return v.name == name })
}

// ValidateReply asks the validators about what the model said; nil when all of them hold.
// A reply without text, such as one that only asks for calls, is not looked at.
func (p *Prompt) ValidateReply(text string) *Verdict { return p.validate(DirectionOutput, text) }

// ValidateInput asks the validators about what the user said; nil when all of them hold.
func (p *Prompt) ValidateInput(text string) *Verdict { return p.validate(DirectionInput, text) }

func (p *Prompt) validate(direction, text string) *Verdict {
	if text == "" {
		return nil
	}
	for _, v := range p.validators {
		if v.Direction != direction && v.Direction != DirectionBoth {
			continue
		}
		if reason := v.broken(text); reason != "" {
			return &Verdict{Validator: v.name, Direction: direction, Reason: reason, Text: v.instead(direction, text)}
		}
	}
	return nil
}

// validatorTypes are the assertions that may be a validator, by their first names.
var validatorTypes = []string{"content_excludes", "content_includes", "content_includes_any", "content_matches", "field_presence",
	"is_valid_json", "json_schema", "max_length", "min_length", "sentence_count"}

// validator is one compiled validator of a prompt.
type validator struct {
	name, message string
	kind          string // the type, by its first name
	validatorParams
	pattern *regexp.Regexp
	schema  *validate.Schema
}

// validatorParams are the parameters of all types. Where PromptKit has two names for one
// thing, both are read.
type validatorParams struct {
	Direction      string          `json:"direction"`
	Message        string          `json:"message"`
	Patterns       []string        `json:"patterns"`
	Words          []string        `json:"words"`
	MatchMode      string          `json:"match_mode"`
	Pattern        string          `json:"pattern"`
	ExpectMatch    *bool           `json:"expect_match"`
	Max            int             `json:"max"`
	MaxCharacters  int             `json:"max_characters"`
	MaxChars       int             `json:"max_chars"`
	MaxTokens      int             `json:"max_tokens"`
	MaxSentences   int             `json:"max_sentences"`
	Min            int             `json:"min"`
	MinCharacters  int             `json:"min_characters"`
	MinChars       int             `json:"min_chars"`
	Fields         []string        `json:"fields"`
	RequiredFields []string        `json:"required_fields"`
	AllowWrapped   bool            `json:"allow_wrapped"`
	ExtractJSON    bool            `json:"extract_json"`
	Schema         json.RawMessage `json:"schema"`
}

func (q *validatorParams) texts() []string { return slices.Concat(q.Patterns, q.Words) }

func (q *validatorParams) fields() []string { return slices.Concat(q.Fields, q.RequiredFields) }

// maxLength is the most bytes of a text; 0 for no bound.
func (q *validatorParams) maxLength() int { return max(q.Max, q.MaxCharacters, q.MaxChars) }

func (q *validatorParams) minLength() int { return max(q.Min, q.MinCharacters, q.MinChars) }

func (q *validatorParams) sentences() int { return max(q.Max, q.MaxSentences) }

// broken says what a text breaks; "" when it is as it should be.
func (v *validator) broken(text string) string {
	switch v.kind {
	case "content_excludes":
		words := v.MatchMode == textcheck.WordBoundary || v.MatchMode == "" && v.name == "banned_words"
		if found := textcheck.Found(v.texts(), text, words); found != "" {
			return fmt.Sprintf("it has %q", found)
		}
	case "content_includes", "field_presence":
		if gone := textcheck.Missing(slices.Concat(v.texts(), v.fields()), text); gone != nil {
			return fmt.Sprintf("it does not have %q", gone[0])
		}
	case "content_includes_any":
		if len(textcheck.Missing(v.texts(), text)) == len(v.texts()) {
			return fmt.Sprintf("it has none of %q", v.texts())
		}
	case "content_matches":
		if want := v.ExpectMatch == nil || *v.ExpectMatch; v.pattern.MatchString(text) != want {
			return fmt.Sprintf("it matches %q: %v", v.Pattern, !want)
		}
	case "max_length":
		if most := v.maxLength(); most > 0 && len(text) > most {
			return fmt.Sprintf("it has %s, and at most %d are allowed", clip.Count(len(text), "byte"), most)
		}
		if n := textcheck.Tokens(text); v.MaxTokens > 0 && n > v.MaxTokens {
			return fmt.Sprintf("it has about %s, and at most %d are allowed", clip.Count(n, "token"), v.MaxTokens)
		}
	case "min_length":
		if len(text) < v.minLength() {
			return fmt.Sprintf("it has %s, and at least %d are needed", clip.Count(len(text), "byte"), v.minLength())
		}
	case "sentence_count":
		if n := textcheck.Sentences(text); n > v.sentences() {
			return fmt.Sprintf("it has %s, and at most %d are allowed", clip.Count(n, "sentence"), v.sentences())
		}
	case "is_valid_json", "json_schema":
		return v.brokenJSON(text)
	}
	return ""
}

func (v *validator) brokenJSON(text string) string {
	doc, err := validate.Decode([]byte(textcheck.JSON(text, v.AllowWrapped, v.ExtractJSON)))
	if err != nil {
		return "it is not valid JSON"
	}
	if v.schema == nil {
		return ""
	}
	violations, err := v.schema.Validate(doc)
	switch {
	case err != nil:
		return err.Error()
	case len(violations) > 0:
		return violations[0].String()
	}
	return ""
}

// instead is what is said in the place of a text: its beginning where it is only too long.
func (v *validator) instead(direction, text string) string {
	if most := v.maxLength(); v.kind == "max_length" && direction == DirectionOutput && most > 0 && len(text) > most {
		return clip.Start(text, most)
	}
	if v.message != "" {
		return v.message
	}
	return refusal
}

// compileValidators reads the validators. Violations of a manifest of PromptKit are
// warnings, and the validator is not applied.
func (p *Prompt) compileValidators(schemas *validate.Cache) []v1.Violation {
	var violations []v1.Violation
	for i, m := range p.object.Spec.Validators {
		if t, _ := v1.FindAssertionType(m.Type); m.Enabled != nil && !*m.Enabled || !slices.Contains(validatorTypes, t.Name) {
			continue // what is not known has a violation of v1.Prompt.Validate
		}
		v, message := compileValidator(&m, schemas, p.object.FromPromptKit())
		if message == "" {
			p.validators = append(p.validators, v)
			continue
		}
		at := v1.Pointer("/spec/validators", strconv.Itoa(i), "params")
		if _, ok := p.object.Fields[at]; !ok {
			at = v1.Pointer("/spec/validators", strconv.Itoa(i))
		}
		f := v1.Violation{Path: at, Expected: "parameters of " + m.Type, Got: "others", Message: message}
		if p.object.FromPromptKit() {
			f.Severity, f.Message = v1.SeverityWarning, fmt.Sprintf("validator %q is not applied: %s", m.Type, message)
		}
		violations = append(violations, p.place(f))
	}
	return violations
}

// compileValidator reads one validator; message says what is wrong with it.
func compileValidator(m *v1.PromptValidator, schemas *validate.Cache, promptKit bool) (v *validator, message string) {
	t, _ := v1.FindAssertionType(m.Type)
	v = &validator{name: m.Type, kind: t.Name, message: m.Message}
	given := map[string]json.RawMessage{}
	if len(m.Params) > 0 {
		if err := json.Unmarshal(m.Params, &given); err != nil {
			return nil, "the parameters must be an object, got " + v1.JSONKind(m.Params)
		}
	}
	known := append(slices.Clone(t.Params), "direction", "message")
	for key := range given {
		switch {
		case slices.Contains(known, key):
		case promptKit && (key == "min_score" || key == "max_score"):
			return nil, "it is judged by a score (" + key + ")"
		case promptKit:
			delete(given, key)
		default:
			message = fmt.Sprintf("unknown parameter %q: expected %s", key, strings.Join(known, ", "))
			message += v1.DidYouMean(key, known)
			return nil, message
		}
	}
	raw, err := json.Marshal(given)
	if err == nil {
		err = json.Unmarshal(raw, &v.validatorParams)
	}
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
		expected, ok := map[reflect.Kind]string{reflect.Int: "a whole number", reflect.Slice: "a list", reflect.Bool: "true or false"}[wrong.Type.Kind()]
		if !ok {
			expected = "a text"
		}
		return nil, fmt.Sprintf("parameter %q: expected %s, got %s", wrong.Field, expected, wrong.Value)
	}
	if err != nil {
		return nil, "cannot read the parameters: " + err.Error()
	}
	if v.message == "" {
		v.message = v.Message
	}
	return v, v.check(schemas, promptKit)
}

// check says what is wrong with the parameters, and compiles what has to be compiled.
func (v *validator) check(schemas *validate.Cache, promptKit bool) string {
	switch v.Direction {
	case "":
		v.Direction = DirectionOutput
	case DirectionInput, DirectionOutput, DirectionBoth:
	default:
		return fmt.Sprintf("parameter \"direction\": expected input, output or both, got %q", v.Direction)
	}
	missing := ""
	switch v.kind {
	case "content_excludes", "content_includes", "content_includes_any":
		if len(v.texts()) == 0 || slices.Contains(v.texts(), "") {
			missing = "patterns"
		}
	case "field_presence":
		if len(v.fields()) == 0 {
			missing = "fields"
		}
	case "content_matches":
		var err error
		if v.pattern, err = regexp.Compile(v.Pattern); err != nil {
			return fmt.Sprintf("pattern is not a regular expression (RE2): %v", err)
		}
		if v.Pattern == "" {
			missing = "pattern"
		}
	case "max_length":
		if v.maxLength() <= 0 && v.MaxTokens <= 0 {
			missing = "max"
		}
	case "min_length":
		if v.minLength() <= 0 {
			missing = "min"
		}
	case "sentence_count":
		if v.sentences() <= 0 {
			missing = "max"
		}
	case "json_schema":
		if len(v.Schema) == 0 {
			missing = "schema"
			break
		}
		draft := validate.Draft2020
		if promptKit {
			draft = validate.Draft7
		}
		v.schema = schemas.Schema(v.Schema, draft)
		if err := v.schema.Compile(); err != nil {
			return "parameter \"schema\": " + err.Error()
		}
	}
	if missing != "" {
		return "the parameter " + missing + " is missing"
	}
	return ""
}
