package main

import (
	"fmt"
	"strings"

	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/prompt"
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
