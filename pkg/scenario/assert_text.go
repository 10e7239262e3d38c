package scenario

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"toolctl.dev/toolctl/internal/jmespath"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/params"
	"toolctl.dev/toolctl/internal/textcheck"
	"toolctl.dev/toolctl/pkg/validate"
)

// said returns the texts of the model, one for each reply. For a turn without a model, which
// PromptKit does not have, it returns the results of the calls.
func (s *scope) said() []string {
	var all []string
	for _, t := range s.turns {
		all = append(all, t.said...)
		if len(t.said) > 0 || s.player.promptKit {
			continue
		}
		for i := range t.Calls {
			if c := &t.Calls[i]; !c.failed() && c.resultText() != "" {
				all = append(all, c.resultText())
			}
		}
	}
	return all
}

// answer returns the last text of the model.
func (s *scope) answer() string {
	said := s.said()
	if len(said) == 0 {
		return ""
	}
	return said[len(said)-1]
}

// textAssertion checks the texts of the model with a rule.
type textAssertion struct {
	rule textcheck.Rule
	kind string
}

func (a *textAssertion) check(s *scope) (expected, got string) {
	texts := []string{s.answer()}
	switch {
	case a.kind == "content_excludes":
		texts = s.said()
	case a.kind == "content_includes_any", a.kind == "content_includes" && !s.player.promptKit:
		texts = []string{strings.Join(s.said(), "\n")}
	}
	for _, text := range texts {
		if broken := a.rule.Check(text); broken != nil {
			return broken.Expected, broken.Got
		}
	}
	return "", ""
}

// jsonPath compares the values that an expression finds in the answer.
type jsonPath struct {
	Expression         string       `json:"expression" need:"expression"`
	JMESPathExpression string       `json:"jmespath_expression" need:"expression"`
	Expected           params.Value `json:"expected"`
	Contains           params.Value `json:"contains"`
	numberRange
	MinResults int `json:"min_results"`
	MaxResults int `json:"max_results"`
	textcheck.Document
}

func (q *jsonPath) expression() string { return cmp.Or(q.Expression, q.JMESPathExpression) }

// Invalid implements [params.Checker].
func (q *jsonPath) Invalid() string {
	if path := q.expression(); path[0] == '$' {
		if _, err := parsePath(path); err != nil {
			return fmt.Sprintf("expression is not a JSONPath: %v", err)
		}
	} else if _, err := jmespath.Compile(path); err != nil {
		return fmt.Sprintf("expression: %v", err)
	}
	return ""
}

func (q *jsonPath) check(s *scope) (expected, got string) {
	doc, err := q.Read(s.answer())
	if err != nil {
		return "JSON", show(s.answer())
	}
	path := q.expression()
	found, err := evaluate(path, doc)
	if err != nil {
		return "what " + path + " finds", err.Error()
	}
	list, isList := found.([]any)
	if q.Expected.Given && !equal(q.Expected.Doc, found) {
		return path + " exactly " + show(q.Expected.Doc), show(found)
	}
	if q.Contains.Given {
		want, ok := q.Contains.Doc.([]any)
		if !ok {
			want = []any{q.Contains.Doc}
		}
		for _, item := range want {
			if !isList || !contains(map[string]any{"equals": item}, list) {
				return path + " as a list with " + show(item), show(found)
			}
		}
	}
	if q.Min != nil || q.Max != nil {
		n, ok := found.(json.Number)
		if f, err := n.Float64(); !ok || err != nil || !q.has(f) {
			return path + " as a number " + q.String(), show(found)
		}
	}
	results := numberRange{Min: new(float64)}
	if *results.Min = float64(q.MinResults); q.MaxResults > 0 {
		most := float64(q.MaxResults)
		results.Max = &most
	}
	if !isList && (q.MinResults > 0 || q.MaxResults > 0) || !results.has(float64(len(list))) {
		return path + " as a list of length " + results.String(), show(found)
	}
	return "", ""
}

// numberRange is a range of numbers. A nil end is open.
type numberRange struct {
	Min *float64 `json:"min"`
	Max *float64 `json:"max"`
}

func (r numberRange) has(f float64) bool {
	return (r.Min == nil || f >= *r.Min) && (r.Max == nil || f <= *r.Max)
}

func (r numberRange) String() string {
	switch {
	case r.Max == nil:
		return fmt.Sprintf("of at least %v", *r.Min)
	case r.Min == nil:
		return fmt.Sprintf("of at most %v", *r.Max)
	}
	return fmt.Sprintf("from %v to %v", *r.Min, *r.Max)
}

func equal(want, got any) bool { return len(compareExact(want, got)) == 0 }

// evaluate evaluates a JMESPath expression, or a JSONPath that begins with "$".
func evaluate(expression string, doc any) (any, error) {
	if strings.HasPrefix(expression, "$") {
		path, err := parsePath(expression)
		if err != nil {
			return nil, err
		}
		nodes := path.Select(doc)
		if path.Query().Singular() == nil {
			return []any(nodes), nil
		}
		if len(nodes) == 0 {
			return nil, nil
		}
		return nodes[0], nil
	}
	path, err := jmespath.Compile(expression)
	if err != nil {
		return nil, err
	}
	found, err := path.Search(native(doc))
	if err != nil {
		return nil, err
	}
	raw, err := jsontext.Marshal(found)
	if err != nil {
		return nil, err
	}
	return validate.Decode(raw)
}
