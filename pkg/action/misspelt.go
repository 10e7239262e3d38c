package action

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

// properties are those that stand at the root of a schema.
type properties struct {
	Properties           map[string]json.RawMessage `json:"properties"`
	PatternProperties    map[string]json.RawMessage `json:"patternProperties"`
	AdditionalProperties json.RawMessage            `json:"additionalProperties"`
}

// Misspelt says which arguments of a call an open schema lets through, although one of its properties was probably meant:
// one of nearly the same name, which the call does not have. A closed schema refuses such arguments.
func Misspelt(tool *v1.Tool, args json.RawMessage) []string {
	const most = 100 // arguments that are looked at
	var schema properties
	var given map[string]json.RawMessage
	if json.Unmarshal(tool.Spec.InputSchema, &schema) != nil || json.Unmarshal(args, &given) != nil {
		return nil // validation says what is wrong
	}
	if string(schema.AdditionalProperties) == "false" || len(schema.PatternProperties) > 0 || len(given) > most {
		return nil
	}
	free := slices.DeleteFunc(slices.Sorted(maps.Keys(schema.Properties)), func(name string) bool {
		_, there := given[name]
		return there
	})
	var out []string
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, known := schema.Properties[name]; known || name == "" {
			continue
		}
		near := v1.Nearest(name, free)
		if near == "" || !strings.EqualFold(near[:1], name[:1]) { // a and b are near, and mean nothing
			continue
		}
		out = append(out, fmt.Sprintf("tool %q has no argument %q; did you mean %q?", tool.Metadata.Name, clip.Runes(name, 60), clip.Runes(near, 60)))
	}
	return out
}

// Unwritten says how an argument is written as key:=JSON, where a text was refused for what it was probably meant to be:
// null, a list or an object. pairs are the arguments that were given as key=value; "" means that there is nothing to say.
func Unwritten(err *v1.ValidationError, pairs map[string]json.RawMessage) string {
	for _, v := range err.Violations {
		key := strings.Join(v1.Tokens(v.Path), ".")
		var text string
		if json.Unmarshal(pairs[key], &text) != nil {
			continue
		}
		switch {
		case text == "null":
			return fmt.Sprintf("null is written -a %s:=null", key)
		case strings.HasPrefix(v.Expected, "array"):
			list := strings.Split(strings.Trim(text, "[]"), ",")
			for i, item := range list {
				list[i] = strconv.Quote(strings.TrimSpace(item))
			}
			return fmt.Sprintf("a list is written -a '%s:=[%s]'", key, clip.Words(strings.Join(list, ","), 80))
		case strings.HasPrefix(v.Expected, "object"):
			return fmt.Sprintf("an object is written -a '%s:={…}', or -a %s.NAME=VALUE", key, key)
		}
	}
	return ""
}
