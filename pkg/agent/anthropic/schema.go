package anthropic

import "slices"

const maxDepth = 32

// formats are the formats of strings that the API enforces.
var formats = []string{"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"}

// compiles reports whether a schema keeps to what the API takes as an output format.
// References and patterns are taken in part only, so they count as not taken.
func compiles(v any, depth int) bool {
	node, ok := v.(map[string]any)
	if !ok || depth > maxDepth {
		return false
	}
	for key, value := range node {
		switch key {
		case "type", "description", "title", "enum", "const", "required":
		case "additionalProperties":
			if value != false {
				return false
			}
		case "format":
			if s, _ := value.(string); !slices.Contains(formats, s) {
				return false
			}
		case "minItems":
			if value != float64(0) && value != float64(1) {
				return false
			}
		case "items":
			if !compiles(value, depth+1) {
				return false
			}
		case "anyOf", "allOf":
			list, ok := value.([]any)
			if !ok || slices.ContainsFunc(list, func(one any) bool { return !compiles(one, depth+1) }) {
				return false
			}
		case "properties":
			all, ok := value.(map[string]any)
			if !ok {
				return false
			}
			for _, one := range all {
				if !compiles(one, depth+1) {
					return false
				}
			}
		default:
			return false
		}
	}
	_, hasProperties := node["properties"]
	types, _ := node["type"].([]any)
	if hasProperties || node["type"] == "object" || slices.Contains(types, any("object")) {
		return node["additionalProperties"] == false
	}
	return true
}
