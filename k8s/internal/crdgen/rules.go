package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"toolctl.dev/toolctl/internal/schemagen"
)

type schema = schemagen.Schema

// addRules says in CEL what a structural schema cannot say, or says without a message that
// helps: which fields belong together. CEL does not see fields of any type, so what is said
// of them stays in the schema.
func addRules(out *apiext.JSONSchemaProps, s *schema) {
	add := func(rule, message string) {
		out.XValidations = append(out.XValidations, apiext.ValidationRule{Rule: rule, Message: message})
	}
	if any := (&schema{AnyOf: s.AnyOf}); s.AnyOf != nil {
		if hidden(any, out.Properties) {
			out.AllOf = append(out.AllOf, logic(any))
		} else {
			add(cel(any), "expected one of "+join(s.AnyOf, "or"))
		}
	}
	if s.OneOf != nil {
		add(cel(&schema{OneOf: s.OneOf}), "expected exactly one of "+join(s.OneOf, "or"))
	}
	if s.Not != nil && s.Not.AnyOf != nil {
		for _, pair := range s.Not.AnyOf {
			add(cel(&schema{Not: pair}), strings.Join(pair.Required, " and ")+" exclude each other: leave one of them out")
		}
	}
	for _, c := range s.AllOf {
		if c.If == nil {
			continue
		}
		if hidden(c.Then, out.Properties) {
			not := logic(c.If)
			out.AllOf = append(out.AllOf, apiext.JSONSchemaProps{AnyOf: []apiext.JSONSchemaProps{{Not: &not}, logic(c.Then)}})
			continue
		}
		mode := ""
		for _, p := range c.If.Properties.All() {
			mode = p.Name + " " + p.Schema.Const
		}
		add(cel(c), fmt.Sprintf("%s needs %s", mode, join(alternatives(c.Then), "or")))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Dependencies)) {
		for _, other := range s.Dependencies[name] {
			add(fmt.Sprintf("!has(self.%s) || has(self.%s)", name, other), fmt.Sprintf("%s needs %s", name, other))
		}
	}
}

// hidden reports whether a rule is about a field that may have any type.
func hidden(s *schema, fields map[string]apiext.JSONSchemaProps) bool {
	for _, name := range s.Required {
		if fields[name].Type == "" {
			return true
		}
	}
	return slices.ContainsFunc(s.AnyOf, func(a *schema) bool { return hidden(a, fields) })
}

// logic is a rule as a part of a structural schema, which says nothing of types there.
func logic(s *schema) apiext.JSONSchemaProps {
	out := apiext.JSONSchemaProps{Required: s.Required}
	for _, p := range s.Properties.All() {
		if out.Properties == nil {
			out.Properties = map[string]apiext.JSONSchemaProps{}
		}
		field := apiext.JSONSchemaProps{MinLength: count(p.Schema.MinLength)}
		if p.Schema.Const != "" {
			field.Enum = values(p.Schema.Const)
		}
		out.Properties[p.Name] = field
	}
	for _, a := range s.AnyOf {
		out.AnyOf = append(out.AnyOf, logic(a))
	}
	return out
}

func alternatives(s *schema) []*schema {
	if s.AnyOf != nil {
		return s.AnyOf
	}
	return []*schema{s}
}

// join lists the fields that alternatives want.
func join(alternatives []*schema, word string) string {
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
func cel(s *schema) string {
	var all []string
	for _, name := range s.Required {
		all = append(all, "has(self."+name+")")
	}
	for _, p := range s.Properties.All() {
		switch {
		case p.Schema.Const != "":
			all = append(all, fmt.Sprintf("(!has(self.%[1]s) || self.%[1]s == '%[2]s')", p.Name, p.Schema.Const))
		case p.Schema.MinLength > 0:
			all = append(all, fmt.Sprintf("(!has(self.%[1]s) || size(self.%[1]s) >= %[2]d)", p.Name, p.Schema.MinLength))
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

func each(all []*schema) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = cel(s)
	}
	return out
}
