package main

import (
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

// variablesText lists the variables of a prompt: city (required), days (default 3).
func variablesText(p *prompt.Prompt) string {
	if !p.TakesObject() {
		return p.Input()
	}
	var all []string
	for _, a := range p.Arguments() {
		text := a.Name
		switch {
		case a.Required:
			text += " (required)"
		case len(a.Default) > 0:
			text += fmt.Sprintf(" (default %s)", clip.Words(string(a.Default), 40))
		}
		all = append(all, text)
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}

// toolsText lists the tools that a prompt names now; servers are not asked for theirs.
func toolsText(reg *registry.Registry, m *v1.Prompt) string {
	var all []string
	seen := map[string]bool{}
	for _, want := range m.Spec.Tools {
		found := gateway.ToolsNamed(reg, m.Namespace(), want)
		if len(found) == 0 {
			note := " (none known)"
			if _, err := reg.Get(v1.KindPrompt, m.Namespace(), want); err == nil {
				note = " (prompt)"
			}
			all = append(all, want+note)
		}
		for _, it := range found {
			name := it.Tool().Metadata.Name
			if it.Tool().Namespace() != m.Namespace() {
				name = it.FullName
			}
			if !it.Ready {
				name += " (not ready)"
			}
			if !seen[it.FullName] {
				seen[it.FullName] = true
				all = append(all, name)
			}
		}
	}
	if len(all) == 0 {
		return "-"
	}
	return strings.Join(all, ", ")
}
