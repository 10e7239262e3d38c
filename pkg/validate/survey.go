package validate

import (
	"encoding/json"
	"fmt"
)

// A survey is the result of one quick walk over a document. It decides whether the document may go
// to an engine at once, or whether its cost must be counted first.
type survey struct {
	values  int
	depth   int
	text    int // size of all strings and member names, in bytes
	longest int // length of the longest array that contains arrays or objects
}

// visit adds v and all values inside it. Its error names what an engine cannot
// handle: nesting and size beyond the bounds of [Decode], numbers beyond those of
// [checkNumber], and Go types that Decode does not make.
func (s *survey) visit(v any, depth int) error {
	if s.values++; s.values > MaxValues {
		return fmt.Errorf("document of more than %d values", MaxValues)
	}
	switch v := v.(type) {
	case nil, bool:
	case string:
		s.text += len(v)
	case json.Number:
		return checkNumber(string(v))
	case map[string]any:
		if err := s.deeper(depth + 1); err != nil {
			return err
		}
		for k, member := range v {
			s.text += len(k)
			if err := s.visit(member, depth+1); err != nil {
				return err
			}
		}
	case []any:
		if err := s.deeper(depth + 1); err != nil {
			return err
		}
		composite := false
		for _, item := range v {
			switch item.(type) {
			case []any, map[string]any:
				composite = true
			}
			if err := s.visit(item, depth+1); err != nil {
				return err
			}
		}
		if composite {
			s.longest = max(s.longest, len(v))
		}
	default:
		return fmt.Errorf("document holds a Go %T, which is not a JSON value: decode it with validate.Decode", v)
	}
	if s.text > MaxDocumentBytes {
		return fmt.Errorf("document of more than %d bytes", MaxDocumentBytes)
	}
	return nil
}

func (s *survey) deeper(depth int) error {
	if s.depth = max(s.depth, depth); depth > MaxDepth {
		return fmt.Errorf("document nested deeper than %d levels", MaxDepth)
	}
	return nil
}
