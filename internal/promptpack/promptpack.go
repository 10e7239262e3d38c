// Package promptpack turns PromptPack files (promptpack.org) into manifests: their
// tools and their prompts.
package promptpack

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

type pack struct {
	ID        string            `json:"id"`
	Prompts   map[string]prompt `json:"prompts"`
	Tools     map[string]tool   `json:"tools"`
	Fragments map[string]string `json:"fragments"`
}

type prompt struct {
	Description    string             `json:"description"`
	SystemTemplate string             `json:"system_template"`
	System         string             `json:"system"`
	Variables      []variable         `json:"variables"`
	Tools          []string           `json:"tools"`
	ToolPolicy     *v1.ToolPolicySpec `json:"tool_policy"`
	Parameters     json.RawMessage    `json:"parameters"`
	Validators     []validator        `json:"validators"`
}

type variable struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default"`
}

type tool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
}

// Read returns the tools and prompts of a pack, in the order of their names. Notes list what was changed or is not
// read.
func Read(name string, data []byte) (objects []v1.Object, notes []string, err error) {
	var p pack
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, nil, fmt.Errorf("not a PromptPack file: %w", err)
	}
	if len(p.Prompts) == 0 && len(p.Tools) == 0 {
		return nil, nil, fmt.Errorf("not a PromptPack file: it has neither prompts nor tools")
	}
	notes = unread(name, data)
	for _, key := range slices.Sorted(maps.Keys(p.Tools)) {
		t := v1.NewObject(v1.KindTool).(*v1.Tool)
		t.Metadata.Name = named(key, &notes)
		t.Spec.Description, t.Spec.InputSchema = p.Tools[key].Description, p.Tools[key].Parameters
		if len(t.Spec.InputSchema) == 0 {
			t.Spec.InputSchema = json.RawMessage(`{"type":"object"}`)
		}
		t.Spec.MockResult = json.RawMessage(`{"result":"mock response"}`) // what PromptKit's mock answers
		objects = append(objects, t)
	}
	for _, key := range slices.Sorted(maps.Keys(p.Prompts)) {
		from := p.Prompts[key]
		o := v1.NewObject(v1.KindPrompt).(*v1.Prompt)
		o.Metadata.Name = named(key, &notes)
		o.Spec.Description, o.Spec.TemplateSyntax, o.Spec.Parameters = from.Description, "mustache", from.Parameters
		o.Spec.SystemPrompt = fill(from.SystemTemplate+from.System, p.Fragments)
		for _, name := range from.Tools {
			o.Spec.Tools = append(o.Spec.Tools, named(name, nil))
		}
		for _, v := range from.Variables {
			o.Spec.Arguments = append(o.Spec.Arguments, v1.PromptArgument{Name: v.Name, Description: v.Description, Required: v.Required, Default: v.Default})
		}
		o.Spec.Validators = validators(key, from.Validators, &notes)
		if o.Spec.Policy = from.ToolPolicy; o.Spec.Policy != nil {
			for _, field := range slices.Sorted(maps.Keys(o.Spec.Policy.Extensions)) {
				notes = append(notes, fmt.Sprintf("prompt %q: tool_policy.%s is not read", key, field))
			}
			o.Spec.Policy.Extensions = nil
			manifest.Unlimited(o.Spec.Policy)
		}
		objects = append(objects, o)
	}
	for _, o := range objects {
		for _, f := range v1.Errors(o.Validate()) {
			notes = append(notes, fmt.Sprintf("%s %q: %s", strings.ToLower(o.Head().Kind), o.Head().Metadata.Name, f.String()))
		}
	}
	return objects, notes, nil
}

// fill inserts the shared fragments into a template.
func fill(template string, fragments map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(fragments)) {
		template = strings.ReplaceAll(template, "{{"+name+"}}", fragments[name])
	}
	return template
}

// named returns a legal name.
func named(name string, notes *[]string) string {
	if v1.IsName(name) {
		return name
	}
	legal := manifest.Name(name)
	if notes != nil {
		*notes = append(*notes, fmt.Sprintf("%q is not a legal name: written as %q", name, legal))
	}
	return legal
}
