package manifest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
)

// promptKitFields maps fields of a PromptConfig or a Scenario to their names in api/v1.
var promptKitFields = map[string]string{
	"system_template": "system_prompt",
	"allowed_tools":   "tools",
	"tool_policy":     "policy",
	"variables":       "arguments",
	"content":         "user",

	"conversation_assertions": "assertions",
}

const kindPromptConfig = "PromptConfig"

// promptKitKind maps a PromptKit kind to a toolctl kind; "" for a skipped kind.
func promptKitKind(kind string) string {
	switch kind {
	case v1.KindTool, v1.KindPrompt, v1.KindScenario:
		return kind
	case kindPromptConfig:
		return v1.KindPrompt
	}
	return ""
}

// promptKitKinds are the PromptKit kinds that can be read.
var promptKitKinds = []string{v1.KindTool, v1.KindPrompt, kindPromptConfig, v1.KindScenario}

// promptKitName returns the name of a manifest that has no metadata.name.
func (d *document) promptKitName() string {
	_, spec := d.child(d.root, "spec")
	if spec == nil {
		return ""
	}
	for _, field := range []string{"name", "id", "task_type"} {
		if _, n := d.child(spec, field); n != nil && n.Kind == yaml.ScalarNode && n.Tag == tagStr {
			return n.Value
		}
	}
	return ""
}

// adaptPromptKit converts fields of an object from their PromptKit meaning.
func (d *document) adaptPromptKit(obj v1.Object) {
	if s, ok := obj.(*v1.Scenario); ok {
		Unlimited(s.Spec.Policy)
	}
	p, ok := obj.(*v1.Prompt)
	if !ok {
		return
	}
	if p.Spec.TemplateSyntax == "" {
		p.Spec.TemplateSyntax = d.promptKitSyntax()
	}
	Unlimited(p.Spec.Policy)
	_, spec := d.child(d.root, "spec")
	if spec == nil {
		return
	}
	_, required := d.child(spec, "required_vars")
	d.addVars(p, required, true)
	_, optional := d.child(spec, "optional_vars")
	d.addVars(p, optional, false)
}

// dropShadowed removes a field under its toolctl name from a mapping that also has it under its PromptKit name, so
// that both systems read the same value.
func (d *document) dropShadowed(n *yaml.Node, table *fieldTable) {
	theirs := map[string]string{} // PromptKit names by toolctl name
	for i := 0; i+1 < len(n.Content); i += 2 {
		name := n.Content[i].Value
		if _, known := table.byName[name]; !known && promptKitFields[name] != "" {
			theirs[promptKitFields[name]] = name
		}
	}
	if len(theirs) == 0 {
		return
	}
	kept := make([]*yaml.Node, 0, len(n.Content))
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		name, shadowed := theirs[k.Value]
		if !shadowed {
			kept = append(kept, k, n.Content[i+1])
			continue
		}
		d.path = append(d.path, step{key: k.Value, index: -1})
		d.violation(k, v1.Violation{Severity: v1.SeverityWarning, Expected: "one of " + k.Value + ", " + name, Got: "both",
			Message: fmt.Sprintf("PromptKit reads %q, not %q: ignored", name, k.Value)})
		d.path = d.path[:len(d.path)-1]
	}
	n.Content = kept
}

// Unlimited removes limits of 0, which mean no limit in PromptKit.
func Unlimited(p *v1.ToolPolicySpec) {
	if p == nil {
		return
	}
	for _, limit := range []**int64{&p.MaxToolCallsPerTurn, &p.MaxTotalToolCalls} {
		if *limit != nil && **limit == 0 {
			*limit = nil
		}
	}
}

// promptKitSyntax returns the syntax that template_engine.syntax names or shows by an example. The default is
// mustache.
func (d *document) promptKitSyntax() string {
	if _, spec := d.child(d.root, "spec"); spec != nil {
		if _, engine := d.child(spec, "template_engine"); engine != nil {
			if _, text := member(engine, "syntax"); text == "go-template" || strings.Contains(strings.ReplaceAll(text, " ", ""), "{{.") {
				return "go"
			}
		}
	}
	return "mustache"
}

// addVars adds arguments from a list of names, or from a mapping of names to defaults.
func (d *document) addVars(p *v1.Prompt, n *yaml.Node, required bool) {
	add := func(name string, value *yaml.Node) {
		if name == "" || slices.ContainsFunc(p.Spec.Arguments, func(a v1.PromptArgument) bool { return a.Name == name }) {
			return
		}
		arg := v1.PromptArgument{Name: name, Required: required}
		if value != nil && value.Tag != tagNull && !required {
			arg.Default = d.rawJSON(value)
		}
		p.Spec.Arguments = append(p.Spec.Arguments, arg)
	}
	switch {
	case n == nil:
	case n.Kind == yaml.SequenceNode:
		for _, c := range n.Content {
			if c.Kind == yaml.ScalarNode && c.Tag == tagStr {
				add(c.Value, nil)
			}
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			add(n.Content[i].Value, n.Content[i+1])
		}
	}
}

// isPromptKitExtra reports whether the current field is read outside the decoder or has no meaning here: the schema
// for editors, the role of a user turn, the version of a prompt, and the type of a variable, which PromptKit treats
// as text.
func (d *document) isPromptKitExtra(value *yaml.Node) bool {
	switch key := d.path[len(d.path)-1].key; key {
	case "required_vars", "optional_vars", "fragments", "template_engine", "version":
		return true
	case "$schema":
		return len(d.path) == 1
	case "type", "example":
		return len(d.path) == 4 && (d.path[1].key == "variables" || d.path[1].key == "arguments")
	case "role":
		return value.Kind == yaml.ScalarNode && value.Value == "user"
	}
	return false
}

// promptKitViolation sets the severity of a Validate violation in a PromptKit manifest: errors of PromptKit's own
// registry stay errors, all others become warnings. It returns false for a violation to drop, such as that of a name
// that is legal on the wire.
func promptKitViolation(obj v1.Object, f *v1.Violation) bool {
	switch {
	case f.Path == "/metadata/name" && f.Got != "nothing":
		name := obj.Head().Metadata.Name
		if wireName.MatchString(name) {
			return false
		}
		if len(name) <= 253 && strings.IndexFunc(name, unicode.IsControl) < 0 {
			f.Severity = v1.SeverityWarning
		}
	case f.Path == "/metadata/name", f.Path == "/metadata", f.Path == "/spec/template": // the object is useless without it
	case obj.Head().Kind == v1.KindTool && (f.Path == "/spec/description" || f.Path == "/spec/input_schema" || f.Path == "/spec/output_schema"):
	default:
		f.Severity = v1.SeverityWarning
		notApplied(obj, f)
	}
	return true
}

// notApplied explains why a validator of another type is not applied.
func notApplied(obj v1.Object, f *v1.Violation) {
	p, ok := obj.(*v1.Prompt)
	rest, found := strings.CutPrefix(f.Path, "/spec/validators/")
	if !ok || !found || !strings.HasSuffix(rest, "/type") {
		return
	}
	i, err := strconv.Atoi(strings.TrimSuffix(rest, "/type"))
	if err != nil || i >= len(p.Spec.Validators) {
		return
	}
	name := p.Spec.Validators[i].Type
	reason := "toolctl does not have it"
	if t, ok := v1.FindAssertionType(name); ok && t.Unjudged != "" {
		reason = t.Unjudged
	}
	f.Message = fmt.Sprintf("validator %q is not applied: %s", name, reason)
}

// wireName matches the tool names that are legal on the wire.
var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
