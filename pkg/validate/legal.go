package validate

import (
	"encoding/json"
	"regexp/syntax"
	"strings"
)

// legal reports whether a schema of draft-07 or later is legal for sure, so that neither its metaschema
// nor an engine need be asked before there is a document that is not found valid by its bytes:
// compiling takes far longer than this. It knows the keywords of most schemas and says no to all
// that is doubtful: ids, references, values that only one draft takes, patterns that RE2 does not
// read. How large a pattern or the schema is the graph has found right.
func legal(schema any) bool {
	obj, ok := schema.(map[string]any)
	if !ok {
		_, ok = schema.(bool)
		return ok
	}
	for keyword, v := range obj {
		if !legalKeyword(keyword, v) {
			return false
		}
	}
	return true
}

func legalKeyword(keyword string, v any) (ok bool) {
	switch keyword {
	case "type":
		return legalType(v)
	case "enum":
		return legalEnum(v)
	case "title", "description", "$comment", "format":
		_, ok = v.(string)
	case "readOnly", "writeOnly", "deprecated", "uniqueItems":
		_, ok = v.(bool)
	case "const", "default":
		ok = true // anything
	case "examples":
		_, ok = v.([]any)
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
		_, ok = v.(json.Number)
	case "multipleOf":
		n, _ := v.(json.Number)
		f, err := n.Float64()
		ok = err == nil && f > 0
	case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
		n, isNumber := v.(json.Number)
		if isNumber {
			_, ok = asCount(n)
		}
	case "pattern":
		ok = legalPattern(v)
	case "required":
		ok = uniqueStrings(v)
	case "items", "additionalProperties", "not":
		ok = legal(v)
	case "allOf", "anyOf", "oneOf":
		list, _ := v.([]any)
		ok = len(list) > 0
		for _, s := range list {
			ok = ok && legal(s)
		}
	case "properties", "definitions", "$defs":
		var members map[string]any
		members, ok = v.(map[string]any)
		for _, s := range members {
			ok = ok && legal(s)
		}
	default:
		ok = keyword == "example" || strings.HasPrefix(keyword, "x-")
	}
	return ok
}

func legalType(v any) bool {
	if list, isList := v.([]any); isList {
		for _, item := range list {
			if name, _ := item.(string); kindsOf[name] == 0 {
				return false
			}
		}
		return len(list) > 0 && uniqueStrings(v)
	}
	name, _ := v.(string)
	return kindsOf[name] != 0
}

// legalEnum takes what is unique by its text.
func legalEnum(v any) bool {
	list, _ := v.([]any)
	seen := make(map[any]bool, len(list))
	for _, item := range list {
		switch item := item.(type) {
		case string, bool, nil:
		case json.Number:
			if !isShort(string(item)) || strings.ContainsRune(string(item), '.') || item == "-0" {
				return false
			}
		default:
			return false
		}
		if seen[item] {
			return false
		}
		seen[item] = true
	}
	return len(list) > 0
}

func uniqueStrings(v any) bool {
	list, ok := v.([]any)
	seen := make(map[string]bool, len(list))
	for _, item := range list {
		s, isString := item.(string)
		if !isString || seen[s] {
			return false
		}
		seen[s] = true
	}
	return ok
}

func legalPattern(v any) bool {
	text, ok := v.(string)
	if !ok {
		return false
	}
	_, err := syntax.Parse(text, syntax.Perl) // all of regexp.Compile that can fail
	return err == nil
}
