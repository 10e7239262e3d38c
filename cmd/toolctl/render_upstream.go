package main

import (
	"encoding/json"
)

// promptArgs makes texts of arguments: those of MCP prompts are texts.
func promptArgs(raw json.RawMessage) (map[string]string, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(raw, &values); err != nil {
		return nil, err
	}
	args := map[string]string{}
	for k, v := range values {
		var s string
		if json.Unmarshal(v, &s) != nil {
			s = string(v)
		}
		args[k] = s
	}
	return args, nil
}
