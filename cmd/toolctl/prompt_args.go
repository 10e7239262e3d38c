package main

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

const varsHelp = "variable as key=value or key:=JSON, or all variables as a JSON object, @FILE or - for stdin; may be repeated"

// promptVars makes the variables of a prompt from --args-file and the -a flags.
func (a *app) promptVars(ctx context.Context, p *prompt.Prompt, flags []string, file string) (json.RawMessage, error) {
	return (&action.Arguments{Flags: flags, File: file, Read: a.readInput}).Vars(ctx, p)
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
	all := names(a.items(cmd, registry.Query{Kind: v1.KindPrompt, Namespace: a.conf.Namespace}), lead, prefix)
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
	it, err := w.Registry.Get(v1.KindPrompt, a.conf.Namespace, name)
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
