package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/validate"
)

const varsHelp = "variable as key=value, key:=JSON, or all of them as a JSON object, @FILE or - for stdin; may be repeated"

// promptVars makes the variables of a prompt from --args-file and the -a flags. They
// are those of a call, and -a @FILE reads a JSON or YAML object. Where the input of the
// prompt is no object there is one value: JSON, @FILE, - for stdin, or a text as it is
// where the prompt takes one.
func (a *app) promptVars(ctx context.Context, p *prompt.Prompt, flags []string, file string) (json.RawMessage, error) {
	if p.TakesObject() {
		return a.objectVars(ctx, flags, file)
	}
	if file != "" {
		flags = append(slices.Clone(flags), "@"+file)
		if file == "-" {
			flags[len(flags)-1] = "-"
		}
	}
	switch len(flags) {
	case 0:
		return nil, nil // the prompt says what it takes
	case 1:
	default:
		return nil, usagef("prompt %q takes one value, not variables by name: give -a once", p.Object().Metadata.Name)
	}
	text, name := []byte(flags[0]), flags[0]
	isFile := name == "-" || strings.HasPrefix(name, "@")
	if isFile {
		name = strings.TrimPrefix(name, "@")
		var err error
		if text, err = a.argsInput(ctx, name); err != nil {
			return nil, err
		}
	}
	return oneValue(p, text, name, isFile)
}

// oneValue reads the whole input of a prompt.
func oneValue(p *prompt.Prompt, text []byte, name string, isFile bool) (json.RawMessage, error) {
	if isYAML(name) && isFile {
		return yamlValue(name, text)
	}
	_, notJSON := validate.Decode(text)
	takesText := p.Takes("string")
	switch {
	case notJSON == nil && (!takesText || p.Takes(v1.JSONKind(text))):
		return text, nil
	case takesText:
		if isFile { // files and pipes end in a line break that nobody means
			text = []byte(strings.TrimSuffix(strings.TrimSuffix(string(text), "\n"), "\r"))
		}
		return json.Marshal(string(text))
	}
	return nil, usagef("prompt %q takes %s: %q is not JSON: %w", p.Object().Metadata.Name, p.Input(), clip.Words(name, 60), notJSON)
}

// objectVars merges what makes up an object, the file first.
func (a *app) objectVars(ctx context.Context, flags []string, file string) (json.RawMessage, error) {
	var rest []string
	args := map[string]json.RawMessage{}
	if file != "" {
		if err := a.readArgs(ctx, file, args); err != nil {
			return nil, err
		}
	}
	for _, f := range flags {
		if name, ok := strings.CutPrefix(f, "@"); ok {
			if err := a.readArgs(ctx, name, args); err != nil {
				return nil, err
			}
			continue
		}
		rest = append(rest, f)
	}
	raw, err := a.callArgs(ctx, rest, "")
	if err != nil {
		return nil, err
	}
	if err := mergeObject(raw, args); err != nil {
		return nil, err
	}
	return json.Marshal(args)
}

func yamlValue(name string, data []byte) (json.RawMessage, error) {
	raw, violations := manifest.ToJSON(name, data)
	for _, f := range violations {
		if !f.IsWarning() {
			return nil, usagef("%s", f)
		}
	}
	return raw, nil
}

// completePrompts completes NAME, prompt NAME and prompt/NAME.
func (a *app) completePrompts(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const word = "prompt"
	if len(args) > 1 || len(args) == 1 && !isKind(args[0]) {
		return nil, noFiles
	}
	lead := ""
	if strings.HasPrefix(prefix, word+"/") {
		lead = word + "/"
	}
	all := names(a.items(cmd, registry.Query{Kind: v1.KindPrompt, Namespace: a.namespace}), lead, prefix)
	if len(args) == 0 && strings.HasPrefix(word, prefix) {
		all = append(all, word)
	}
	return all, noFiles
}

// completeVars completes -a: the names of the prompt's variables, and behind "=" the
// values of an enum.
func (a *app) completeVars(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const keep = noFiles | cobra.ShellCompDirectiveNoSpace
	name, err := promptName(args)
	if err != nil {
		return nil, keep
	}
	w, err := a.open(cmd.Context())
	if err != nil {
		return nil, keep
	}
	defer a.closing(w)
	it, err := w.Registry.Get(v1.KindPrompt, a.namespace, name)
	if err != nil {
		return nil, keep
	}
	p, err := action.CompilePrompt(it)
	if err != nil {
		return nil, keep
	}
	var out []string
	if key, value, found := strings.Cut(prefix, "="); found {
		values, _, _ := p.Complete(key, value)
		for _, v := range values {
			out = append(out, key+"="+v)
		}
		return out, keep
	}
	for _, arg := range p.Arguments() {
		if strings.HasPrefix(arg.Name, prefix) {
			out = append(out, arg.Name+"=")
		}
	}
	return out, keep
}
