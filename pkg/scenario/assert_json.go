package scenario

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"toolctl.dev/toolctl/internal/jmespath"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/textcheck"
	"toolctl.dev/toolctl/pkg/validate"
)

// document is the JSON of the answer: all of it, the first code block, or the first
// object or array in the text.
func (q *params) document(s *scope) (doc any, err error) {
	return validate.Decode(json.RawMessage(textcheck.JSON(s.answer(), q.AllowWrapped, q.ExtractJSON)))
}

func isValidJSON(q *params, s *scope) (expected, got string) {
	if _, err := q.document(s); err != nil {
		return "JSON", show(s.answer())
	}
	return "", ""
}

func jsonSchema(q *params, s *scope) (expected, got string) {
	doc, err := q.document(s)
	if err != nil {
		return "JSON that fits the schema", show(s.answer())
	}
	draft := validate.Draft2020
	if s.player.promptKit {
		draft = validate.Draft7
	}
	violations, err := s.player.runner.schemas.Schema(q.Schema, draft).Validate(doc)
	if err != nil {
		return "a JSON Schema that can be used", err.Error()
	}
	if len(violations) > 0 {
		all := make([]string, len(violations))
		for i, v := range violations {
			all[i] = v.String()
		}
		return "JSON that fits the schema", strings.Join(all, "; ")
	}
	return "", ""
}

// jsonPath compares what an expression finds in the answer.
func jsonPath(q *params, s *scope) (expected, got string) {
	doc, err := q.document(s)
	if err != nil {
		return "JSON", show(s.answer())
	}
	found, err := search(q.expression(), doc)
	if err != nil {
		return "what " + q.expression() + " finds", err.Error()
	}
	list, isList := found.([]any)
	switch {
	case len(q.Expected) > 0 && !equal(decode(q.Expected), found):
		return q.expression() + " exactly " + show(decode(q.Expected)), show(found)
	case len(q.Contains) > 0:
		want, ok := decode(q.Contains).([]any)
		if !ok {
			want = []any{decode(q.Contains)}
		}
		for _, item := range want {
			if !isList || !contains(map[string]any{"equals": item}, list) {
				return q.expression() + " as a list with " + show(item), show(found)
			}
		}
	}
	if q.Min != nil || q.Max != nil {
		n, ok := found.(json.Number)
		f, err := n.Float64()
		if !ok || err != nil || q.Min != nil && f < *q.Min || q.Max != nil && f > *q.Max {
			return q.expression() + " as a number " + between(q.Min, q.Max), show(found)
		}
	}
	if !isList && (q.MinResults > 0 || q.MaxResults > 0) || len(list) < q.MinResults || q.MaxResults > 0 && len(list) > q.MaxResults {
		low, high := float64(q.MinResults), float64(q.MaxResults)
		bound := &high
		if q.MaxResults == 0 {
			bound = nil
		}
		return q.expression() + " as a list of length " + between(&low, bound), show(found)
	}
	return "", ""
}

func between(low, high *float64) string {
	switch {
	case high == nil:
		return fmt.Sprintf("of at least %v", *low)
	case low == nil:
		return fmt.Sprintf("of at most %v", *high)
	}
	return fmt.Sprintf("from %v to %v", *low, *high)
}

func equal(want, got any) bool {
	exact := &matcher{exact: true}
	exact.value(want, got, "$", "")
	return len(exact.found) == 0
}

// search asks a JMESPath expression, or a JSONPath that begins with "$".
func search(expression string, doc any) (any, error) {
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
	// JMESPath knows numbers as float64 alone.
	var plain any
	if err := json.Unmarshal(jsontext.Of(doc), &plain); err != nil {
		return nil, err
	}
	path, err := jmespath.Compile(expression)
	if err != nil {
		return nil, err
	}
	found, err := path.Search(plain)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(found); err != nil {
		return nil, err
	}
	return validate.Decode(b.Bytes())
}
