package main

import (
	"fmt"
	"slices"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// addRules says in CEL what a structural schema cannot say, or says without a message that
// helps: which fields belong together. CEL does not see fields of any type, so what is said
// of them stays in the schema.
func addRules(out *apiext.JSONSchemaProps, s *source) {
	add := func(rule, message string) {
		out.XValidations = append(out.XValidations, apiext.ValidationRule{Rule: rule, Message: message})
	}
	if any := (&source{AnyOf: s.AnyOf}); s.AnyOf != nil && s.Definitions == nil {
		if hidden(any, out.Properties) {
			out.AllOf = append(out.AllOf, logic(any))
		} else {
			add(cel(any), "expected one of "+join(s.AnyOf, "or"))
		}
	}
	if s.OneOf != nil {
		add(cel(&source{OneOf: s.OneOf}), "expected exactly one of "+join(s.OneOf, "or"))
	}
	if s.Not != nil && s.Not.AnyOf != nil {
		for _, pair := range s.Not.AnyOf {
			add(cel(&source{Not: pair}), strings.Join(pair.Required, " and ")+" exclude each other: leave one of them out")
		}
	}
	for _, c := range s.AllOf {
		if hidden(c.Then, out.Properties) {
			not := logic(c.If)
			out.AllOf = append(out.AllOf, apiext.JSONSchemaProps{AnyOf: []apiext.JSONSchemaProps{{Not: &not}, logic(c.Then)}})
			continue
		}
		mode := ""
		for name, p := range c.If.Properties {
			mode = name + " " + *p.Const
		}
		add(cel(c), fmt.Sprintf("%s needs %s", mode, join(alternatives(c.Then), "or")))
	}
	for _, name := range sortedKeys(s.Dependencies) {
		for _, other := range s.Dependencies[name] {
			add(fmt.Sprintf("!has(self.%s) || has(self.%s)", name, other), fmt.Sprintf("%s needs %s", name, other))
		}
	}
}

// hidden reports whether a rule is about a field that may have any type.
func hidden(s *source, fields map[string]apiext.JSONSchemaProps) bool {
	for _, name := range s.Required {
		if fields[name].Type == "" {
			return true
		}
	}
	return slices.ContainsFunc(s.AnyOf, func(a *source) bool { return hidden(a, fields) })
}

// logic is a rule as a part of a structural schema, which says nothing of types there.
func logic(s *source) apiext.JSONSchemaProps {
	out := apiext.JSONSchemaProps{Required: s.Required}
	for name, p := range s.Properties {
		if out.Properties == nil {
			out.Properties = map[string]apiext.JSONSchemaProps{}
		}
		field := apiext.JSONSchemaProps{MinLength: p.MinLength}
		if p.Const != nil {
			field.Enum = values(*p.Const)
		}
		out.Properties[name] = field
	}
	for _, a := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, logic(a))
	}
	return out
}

func alternatives(s *source) []*source {
	if s.AnyOf != nil {
		return s.AnyOf
	}
	return []*source{s}
}

// join lists the fields that alternatives want.
func join(alternatives []*source, word string) string {
	var names []string
	for _, a := range alternatives {
		names = append(names, strings.Join(a.Required, " and "))
	}
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " " + word + " " + names[len(names)-1]
}

// cel is the expression that holds where the schema does.
func cel(s *source) string {
	var all []string
	for _, name := range s.Required {
		all = append(all, "has(self."+name+")")
	}
	for _, name := range sortedKeys(s.Properties) {
		p := s.Properties[name]
		switch {
		case p.Const != nil:
			all = append(all, fmt.Sprintf("(!has(self.%[1]s) || self.%[1]s == '%[2]s')", name, *p.Const))
		case p.MinLength != nil:
			all = append(all, fmt.Sprintf("(!has(self.%[1]s) || size(self.%[1]s) >= %[2]d)", name, *p.MinLength))
		}
	}
	if s.AnyOf != nil {
		all = append(all, "("+strings.Join(each(s.AnyOf), " || ")+")")
	}
	if s.OneOf != nil {
		all = append(all, "["+strings.Join(each(s.OneOf), ", ")+"].exists_one(x, x)")
	}
	if s.Not != nil {
		all = append(all, "!("+cel(s.Not)+")")
	}
	if s.If != nil {
		all = append(all, "(!("+cel(s.If)+") || "+cel(s.Then)+")")
	}
	if len(all) == 0 {
		return "true"
	}
	return strings.Join(all, " && ")
}

func each(all []*source) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = cel(s)
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
