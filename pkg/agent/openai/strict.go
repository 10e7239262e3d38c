package openai

import "encoding/json"

// maxDepth is the deepest schema that the API takes in strict mode.
const maxDepth = 10

// strict reports whether a schema keeps to the subset that OpenAI enforces: every object
// is closed and requires all that it names, and nothing is used but the keywords that
// the guide to structured outputs lists. Asked to be strict with another schema, the API
// refuses the request.
func strict(schema json.RawMessage) bool {
	var root map[string]any
	if json.Unmarshal(schema, &root) != nil || root["anyOf"] != nil {
		return false
	}
	return strictNode(root, 0)
}

func strictNode(v any, depth int) bool {
	node, ok := v.(map[string]any)
	if !ok || depth > maxDepth {
		return false
	}
	for key, value := range node {
		switch key {
		case "type", "description", "title", "enum", "const", "required", "additionalProperties", "$ref", "$schema", "$id",
			"pattern", "format", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems":
		case "items":
			if !strictNode(value, depth+1) {
				return false
			}
		case "anyOf":
			list, ok := value.([]any)
			if !ok {
				return false
			}
			for _, one := range list {
				if !strictNode(one, depth+1) {
					return false
				}
			}
		case "properties", "$defs", "definitions":
			all, ok := value.(map[string]any)
			if !ok {
				return false
			}
			for _, one := range all {
				if !strictNode(one, depth+1) {
					return false
				}
			}
		default:
			return false
		}
	}
	properties, hasProperties := node["properties"].(map[string]any)
	if !hasProperties && !isObject(node["type"]) {
		return true
	}
	if node["additionalProperties"] != false {
		return false
	}
	required := map[string]bool{}
	list, _ := node["required"].([]any)
	for _, name := range list {
		if s, ok := name.(string); ok {
			required[s] = true
		}
	}
	for name := range properties {
		if !required[name] {
			return false
		}
	}
	return true
}

// isObject reports whether a type keyword allows objects.
func isObject(t any) bool {
	if t == "object" {
		return true
	}
	list, _ := t.([]any)
	for _, one := range list {
		if one == "object" {
			return true
		}
	}
	return false
}
