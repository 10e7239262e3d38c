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

// properties are the keywords about properties at the root of a schema.
type properties struct {
	Properties           map[string]json.RawMessage `json:"properties"`
	PatternProperties    map[string]json.RawMessage `json:"patternProperties"`
	AdditionalProperties json.RawMessage            `json:"additionalProperties"`
}

// misspelt names arguments that an open schema allows, but that the caller probably misspelled: the call lacks a
// property with nearly the same name. A closed schema refuses such arguments.
func misspelt(tool *v1.Tool, args json.RawMessage) []string {
	const most = 100 // maximum number of arguments to check
	var schema properties
	var given map[string]json.RawMessage
	if json.Unmarshal(tool.Spec.InputSchema, &schema) != nil || json.Unmarshal(args, &given) != nil {
		return nil // validation reports the error
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
		if near == "" || !strings.EqualFold(near[:1], name[:1]) { // names such as a and b are similar only because they are short
			continue
		}
		out = append(out, fmt.Sprintf("tool %q has no argument %q; did you mean %q?", tool.Metadata.Name, clip.Runes(name, 60), clip.Runes(near, 60)))
	}
	return out
}

// howWritten explains how to write an argument as key:=JSON after a text was refused that was probably meant as
// null, a list or an object. pairs are the arguments given as key=value; "" means that it has no advice.
func howWritten(err *v1.ValidationError, pairs map[string]json.RawMessage) string {
	for _, v := range err.Violations {
		key := strings.Join(v1.Tokens(v.Path), ".")
		var text string
		if json.Unmarshal(pairs[key], &text) != nil {
			continue
		}
		switch {
		case text == "null":
			return fmt.Sprintf("for null, write -a %s:=null", key)
		case strings.HasPrefix(v.Expected, "array"):
			list := strings.Split(strings.Trim(text, "[]"), ",")
			for i, item := range list {
				list[i] = strconv.Quote(strings.TrimSpace(item))
			}
			return fmt.Sprintf("for a list, write -a '%s:=[%s]'", key, clip.Words(strings.Join(list, ","), 80))
		case strings.HasPrefix(v.Expected, "object"):
			return fmt.Sprintf("for an object, write -a '%s:={…}' or -a %s.NAME=VALUE", key, key)
		}
	}
	return ""
}
