package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"

	"toolctl.dev/toolctl/internal/jmespath"
	"toolctl.dev/toolctl/internal/textcheck"
)

// params are the parameters of all assertions, with PromptKit's names. Where
// PromptKit has two names for one thing, both are read.
type params struct {
	Tools              []string                   `json:"tools"`
	ToolNames          []string                   `json:"tool_names"`
	Tool               string                     `json:"tool"`
	ToolName           string                     `json:"tool_name"`
	Min                *float64                   `json:"min"`
	Max                *float64                   `json:"max"`
	Count              *int                       `json:"count"`
	MinCalls           *int                       `json:"min_calls"`
	MaxCalls           *int                       `json:"max_calls"`
	MaxErrors          *int                       `json:"max_errors"`
	MaxErrorRate       *float64                   `json:"max_error_rate"`
	MaxRepeats         *int                       `json:"max_repeats"`
	IgnoreValidation   bool                       `json:"ignore_validation"`
	RequireArgs        bool                       `json:"require_args"`
	NoError            bool                       `json:"no_error"`
	ExpectedArgs       json.RawMessage            `json:"expected_args"`
	RequiredArgs       json.RawMessage            `json:"required_args"`
	Args               json.RawMessage            `json:"args"`
	ArgsMatch          map[string]string          `json:"args_match"`
	ExcludedArgs       map[string]json.RawMessage `json:"excluded_args"`
	ForbiddenArgs      map[string]json.RawMessage `json:"forbidden_args"`
	ResultIncludes     []string                   `json:"result_includes"`
	ResultMatches      string                     `json:"result_matches"`
	Sequence           []string                   `json:"sequence"`
	Steps              []step                     `json:"steps"`
	Chain              []step                     `json:"chain"`
	Patterns           []pattern                  `json:"patterns"`
	Words              []pattern                  `json:"words"`
	Pattern            string                     `json:"pattern"`
	MatchMode          string                     `json:"match_mode"`
	ExpectMatch        *bool                      `json:"expect_match"`
	Occurrence         *int                       `json:"occurrence"`
	MediaType          string                     `json:"media_type"`
	MIMEType           string                     `json:"mime_type"`
	TimeoutSeconds     int                        `json:"timeout_seconds"`
	SuccessPattern     string                     `json:"success_pattern"`
	MinCharacters      *float64                   `json:"min_characters"`
	MinChars           *float64                   `json:"min_chars"`
	MaxCharacters      *float64                   `json:"max_characters"`
	MaxChars           *float64                   `json:"max_chars"`
	MaxTokens          *int                       `json:"max_tokens"`
	MaxSentences       *float64                   `json:"max_sentences"`
	Fields             []string                   `json:"fields"`
	RequiredFields     []string                   `json:"required_fields"`
	AllowWrapped       bool                       `json:"allow_wrapped"`
	ExtractJSON        bool                       `json:"extract_json"`
	Schema             json.RawMessage            `json:"schema"`
	Expression         string                     `json:"expression"`
	JMESPathExpression string                     `json:"jmespath_expression"`
	Expected           json.RawMessage            `json:"expected"`
	Contains           json.RawMessage            `json:"contains"`
	MinResults         int                        `json:"min_results"`
	MaxResults         int                        `json:"max_results"`
	MaxMS              *float64                   `json:"max_ms"`
	MaxCostUSD         *float64                   `json:"max_cost_usd"`
	MaxInputTokens     *int64                     `json:"max_input_tokens"`
	MaxOutputTokens    *int64                     `json:"max_output_tokens"`
	MaxTotalTokens     *int64                     `json:"max_total_tokens"`
	ValidatorType      string                     `json:"validator_type"`
	Validator          string                     `json:"validator"`
	ShouldTrigger      *bool                      `json:"should_trigger"`
	Direction          string                     `json:"direction"`
	Rule               string                     `json:"rule"`
	Policy             string                     `json:"policy"`
	Criteria           string                     `json:"criteria"`
	Rubric             string                     `json:"rubric"`
	MinScore           *float64                   `json:"min_score"`
	ConversationAware  bool                       `json:"conversation_aware"`
	SystemPrompt       string                     `json:"system_prompt"`
	Temperature        *float64                   `json:"temperature"`
	Message            string                     `json:"message"` // of PromptKit; the assertion's own wins

	// Type is the name by which the assertion was asked for.
	Type string `json:"-"`
	// unknown are parameters that PromptKit would ignore.
	unknown []string
}

// pattern is a text to look for, or a sequence of tools.
type pattern struct {
	Text     string   `json:"-"`
	Sequence []string `json:"sequence"`
	Message  string   `json:"message"`
}

// UnmarshalJSON reads a text or an object.
func (p *pattern) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		return json.Unmarshal(raw, &p.Text)
	}
	type plain pattern
	return json.Unmarshal(raw, (*plain)(p))
}

// step is one step of a chain of calls: a tool, and what its call has to fit.
type step struct {
	Tool           string            `json:"tool"`
	ResultIncludes []string          `json:"result_includes"`
	ResultMatches  string            `json:"result_matches"`
	ArgsMatch      map[string]string `json:"args_match"`
	NoError        bool              `json:"no_error"`
}

// UnmarshalJSON reads the name of a tool or an object.
func (s *step) UnmarshalJSON(raw []byte) error {
	if bytes.HasPrefix(raw, []byte(`"`)) {
		return json.Unmarshal(raw, &s.Tool)
	}
	type plain step
	return json.Unmarshal(raw, (*plain)(s))
}

// expressions says what is wrong with regular expressions and paths.
func (q *params) expressions() string {
	all := map[string]string{"pattern": q.Pattern, "result_matches": q.ResultMatches, "success_pattern": q.SuccessPattern}
	for name, re := range q.ArgsMatch {
		all["args_match."+name] = re
	}
	for i, s := range q.steps() {
		all[fmt.Sprintf("steps[%d].result_matches", i)] = s.ResultMatches
		for name, re := range s.ArgsMatch {
			all[fmt.Sprintf("steps[%d].args_match.%s", i, name)] = re
		}
	}
	for _, name := range sortedKeys(all) {
		if _, err := regexp.Compile(all[name]); err != nil {
			return fmt.Sprintf("%s is not a regular expression (RE2): %v", name, err)
		}
	}
	switch path := q.expression(); {
	case path == "":
	case path[0] == '$':
		if _, err := parsePath(path); err != nil {
			return fmt.Sprintf("expression is not a JSONPath: %v", err)
		}
	default:
		if _, err := jmespath.Compile(path); err != nil {
			return fmt.Sprintf("expression: %v", err)
		}
	}
	return ""
}

func (q *params) tools() []string {
	for _, names := range [][]string{q.Tools, q.ToolNames} {
		if len(names) > 0 {
			return names
		}
	}
	if name := q.tool(); name != "" {
		return []string{name}
	}
	return nil
}

func (q *params) tool() string { return first(q.Tool, q.ToolName) }

func (q *params) expression() string { return first(q.Expression, q.JMESPathExpression) }

func (q *params) steps() []step {
	if len(q.Steps) > 0 {
		return q.Steps
	}
	return q.Chain
}

func (q *params) args() json.RawMessage {
	for _, raw := range []json.RawMessage{q.ExpectedArgs, q.RequiredArgs} {
		if len(raw) > 0 {
			return raw
		}
	}
	return q.Args
}

func (q *params) texts() []string {
	var all []string
	for _, p := range slices.Concat(q.Patterns, q.Words) {
		all = append(all, p.Text)
	}
	return all
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// firstOf is the first number that is set.
func firstOf(all ...*float64) *float64 {
	for _, n := range all {
		if n != nil {
			return n
		}
	}
	return nil
}

// Needs of several types.

func needTools(q *params) string {
	if len(q.tools()) == 0 {
		return "the parameter tools is missing"
	}
	return ""
}

func needTool(q *params) string {
	if q.tool() == "" {
		return "the parameter tool_name is missing"
	}
	return ""
}

func needTexts(q *params) string {
	if len(q.texts()) == 0 {
		return "the parameter patterns is missing"
	}
	if slices.Contains(q.texts(), "") {
		return `parameter "patterns": expected a list of texts`
	}
	if q.MatchMode != "" && q.MatchMode != "substring" && q.MatchMode != textcheck.WordBoundary {
		return fmt.Sprintf("parameter \"match_mode\": expected substring or %s, got %q", textcheck.WordBoundary, q.MatchMode)
	}
	return ""
}

func needPattern(q *params) string {
	if q.Pattern == "" {
		return "the parameter pattern is missing"
	}
	return ""
}

func needSequences(q *params) string {
	if len(q.Patterns) == 0 {
		return "the parameter patterns is missing"
	}
	for _, p := range q.Patterns {
		if len(p.Sequence) == 0 {
			return `parameter "patterns": expected a list of {sequence: [TOOL, …], message: TEXT}`
		}
	}
	return ""
}

func needSteps(q *params) string {
	if len(q.steps()) == 0 {
		return "the parameter steps is missing"
	}
	for i, s := range q.steps() {
		if s.Tool == "" {
			return fmt.Sprintf("the parameter steps[%d].tool is missing", i)
		}
	}
	return ""
}

func needCount(q *params) string {
	for name, n := range map[string]*float64{"min": q.Min, "max": q.Max} {
		if n != nil && (*n != math.Trunc(*n) || math.Abs(*n) > math.MaxInt32) {
			return fmt.Sprintf("parameter %q: expected a whole number, got %v", name, *n)
		}
	}
	return ""
}

func needObject(name string, raw json.RawMessage) string {
	if _, ok := decode(raw).(map[string]any); len(raw) > 0 && !ok {
		return fmt.Sprintf("parameter %q: expected an object", name)
	}
	return ""
}
