package main

import (
	"encoding/json"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// nestedArgs puts the pairs of the arguments whose key is a path, such as body.stock=4, into the objects that the
// path names. A property that has the whole key as its name is set as it is, and so is every
// key whose first part is no property of the tool: validation then says what is.
func nestedArgs(tool *v1.Tool, args json.RawMessage, pairs map[string]json.RawMessage) (json.RawMessage, error) {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	_ = json.Unmarshal(tool.Spec.InputSchema, &schema) // a schema that is true or false has none
	var keys []string
	for key := range pairs {
		head, _, dotted := strings.Cut(key, ".")
		_, whole := schema.Properties[key]
		if _, known := schema.Properties[head]; dotted && known && !whole {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		return args, nil
	}
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal(args, &all); err != nil {
		return nil, err
	}
	slices.Sort(keys)
	for _, key := range keys {
		delete(all, key)
		if err := setAt(all, strings.Split(key, "."), pairs[key]); err != nil {
			return nil, usagef("argument %q: %w", key, err)
		}
	}
	return json.Marshal(all)
}

// setAt sets a member of nested objects, and makes those that are missing.
func setAt(in map[string]json.RawMessage, path []string, value json.RawMessage) error {
	name := path[0]
	if len(path) == 1 {
		if _, twice := in[name]; twice {
			return usagef("%q is given twice", name)
		}
		in[name] = value
		return nil
	}
	inner := map[string]json.RawMessage{}
	if raw, ok := in[name]; ok {
		if json.Unmarshal(raw, &inner) != nil || inner == nil {
			return usagef("%q is given as %s already, not as an object", name, v1.JSONKind(raw))
		}
	}
	if err := setAt(inner, path[1:], value); err != nil {
		return err
	}
	raw, err := json.Marshal(inner)
	in[name] = raw
	return err
}
