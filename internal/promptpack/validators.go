package promptpack

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/params"
	"toolctl.dev/toolctl/internal/textcheck"
	"toolctl.dev/toolctl/pkg/manifest"
)

type validator struct {
	Type    string                     `json:"type"`
	Params  map[string]json.RawMessage `json:"params"`
	Message string                     `json:"message"`
	Enabled *bool                      `json:"enabled"`
}

// validators returns the validators that a Prompt can have; notes name the others.
func validators(prompt string, from []validator, notes *[]string) []v1.PromptValidator {
	var out []v1.PromptValidator
	for _, v := range from {
		off := func(reason string) {
			*notes = append(*notes, fmt.Sprintf("prompt %q: validator %q is not supported and was dropped: %s", prompt, v.Type, reason))
		}
		kind, ok := v1.FindAssertionType(v.Type)
		one := v1.PromptValidator{Type: v.Type, Message: v.Message, Enabled: v.Enabled}
		rule := textcheck.New(kind.Name, v.Type, nil, true)
		switch {
		case !ok:
			off("toolctl does not have it")
			continue
		case kind.Unjudged != "":
			off(kind.Unjudged)
			continue
		case rule == nil:
			off("toolctl has it as an assertion of scenarios")
			continue
		case v.Params["min_score"] != nil || v.Params["max_score"] != nil:
			off("it needs a score")
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(v.Params)) {
			if !slices.Contains(params.Names(rule), name) && name != "direction" && name != "message" {
				*notes = append(*notes, fmt.Sprintf("prompt %q: validator %q: the parameter %q is not read", prompt, v.Type, name))
				delete(v.Params, name)
			}
		}
		if len(v.Params) > 0 {
			one.Params = jsontext.Of(v.Params)
		}
		out = append(out, one)
	}
	return out
}

// The fields of a pack and of its prompts that are read, or that have no effect.
var (
	packFields   = []string{"$schema", "id", "name", "version", "description", "metadata", "compilation", "template_engine", "prompts", "tools", "fragments"}
	promptFields = []string{"id", "name", "version", "description", "system_template", "system", "variables", "tools", "tool_policy", "parameters", "validators", "tested_models"}
)

// Outside holds the parts of packs and of PromptKit's Arena files that have no counterpart in toolctl, with the reasons.
var Outside = map[string]string{
	"workflow":     "toolctl has no state machines",
	"compositions": "toolctl has no chains of prompts",
	"agents":       "toolctl has no agents as tools",
	"a2a_agents":   "toolctl has no agents as tools; one behind an MCP server is a tool",
	"skills":       "toolctl has no skills",
}

// unread returns a note, with its place, for each part of a pack that is not read.
func unread(name string, data []byte) (notes []string) {
	var pack struct {
		Prompts map[string]map[string]json.RawMessage `json:"prompts"`
	}
	top := map[string]json.RawMessage{}
	if json.Unmarshal(data, &top) != nil || json.Unmarshal(data, &pack) != nil {
		return nil
	}
	_, place, _ := manifest.ToJSONPlaced(name, data)
	note := func(pointer, text, field string) {
		if reason := Outside[field]; reason != "" {
			text += ": " + reason
		}
		if place != nil {
			text = place(pointer).String() + ": " + text
		}
		notes = append(notes, text)
	}
	for _, field := range slices.Sorted(maps.Keys(top)) {
		if !slices.Contains(packFields, field) {
			note(v1.Pointer("", field), fmt.Sprintf("%q of the pack is not read", field), field)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pack.Prompts)) {
		for _, field := range slices.Sorted(maps.Keys(pack.Prompts[name])) {
			if !slices.Contains(promptFields, field) {
				note(v1.Pointer("/prompts", name, field), fmt.Sprintf("prompt %q: %q is not read", name, field), field)
			}
		}
	}
	return notes
}
