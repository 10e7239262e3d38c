package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

func newRenderCmd(a *app) *cobra.Command {
	var (
		flags    []string
		argsFile string
	)
	cmd := &cobra.Command{
		Use:   "render prompt NAME [-a key=value]...",
		Short: "Fill in a prompt of an MCP server and print its messages",
		Long: `Fill in a prompt of an MCP server and print its messages. NAME is
server__prompt, server.prompt, or the name of a prompt that only one server has;
'toolctl list prompts' lists them.

Output formats (-o): text, json, yaml.`,
		Example: `  toolctl render prompt everything__args-prompt -a city=Oslo
  toolctl render prompt/everything__simple-prompt -o json`,
		ValidArgsFunction: cobra.FixedCompletions([]string{"prompt"}, cobra.ShellCompDirectiveNoFileComp),
		RunE: func(cmd *cobra.Command, pos []string) error {
			format, err := a.format("text", "json", "yaml")
			if err != nil {
				return err
			}
			kind, names, err := resource(pos)
			if err != nil {
				return err
			}
			if kind != v1.KindPrompt || len(names) != 1 {
				return usagef("expected prompt NAME or prompt/NAME")
			}
			raw, err := a.callArgs(flags, argsFile)
			if err != nil {
				return err
			}
			args, err := promptArgs(raw)
			if err != nil {
				return err
			}
			w, err := a.open(cmd.Context(), workspaceOptions{})
			if err != nil {
				return err
			}
			defer w.Close()
			a.warnFaults(w)
			res, err := a.renderUpstream(cmd.Context(), w, names[0], args)
			if err != nil {
				return err
			}
			return a.printPrompt(format, res)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&flags, "arg", "a", nil, argsHelp)
	f.StringVar(&argsFile, "args-file", "", "file with a JSON or YAML object of arguments; - reads stdin")
	return cmd
}

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

// renderUpstream fills in a prompt of a server.
func (a *app) renderUpstream(ctx context.Context, w *workspace, name string, args map[string]string) (mcp.PromptResult, error) {
	if it, err := w.reg.Get(v1.KindPrompt, a.namespace, name); err == nil {
		return mcp.PromptResult{}, usagef("%s is a manifest: prompts of MCP servers can be rendered", objectName(it.Object.Head().Key()))
	}
	keys := w.mcp.named(a.namespace, name)
	if len(keys) == 0 {
		keys = w.mcp.in(a.namespace)
	}
	var states []mcp.ServerState
	if len(keys) > 0 {
		states = w.mcp.discover(ctx, keys...)
	}
	type hit struct {
		server v1.Key
		prompt mcp.Prompt
	}
	var hits []hit
	missing := &v1.NotFoundError{Kind: v1.KindPrompt, Name: name}
	var known []string
	local := name
	if ns, rest, ok := strings.Cut(name, "/"); ok && slices.ContainsFunc(keys, func(k v1.Key) bool { return k.Namespace == ns }) {
		local = rest
	}
	for _, s := range states {
		for _, p := range s.Prompts {
			full := s.Key.Name + "__" + p.Name
			known = append(known, full)
			if local == full || local == s.Key.Name+"."+p.Name || local == p.Name {
				hits = append(hits, hit{s.Key, p})
			}
		}
	}
	switch len(hits) {
	case 1:
		if err := missingArgs(hits[0].server.Name+"__"+hits[0].prompt.Name, hits[0].prompt, args); err != nil {
			return mcp.PromptResult{}, err
		}
		return w.mcp.GetPrompt(ctx, hits[0].server, hits[0].prompt.Name, args)
	case 0:
		for _, s := range states {
			if !s.Ready { // it may well be the one
				return mcp.PromptResult{}, stateError(s)
			}
		}
		if near := v1.Nearest(name, known); near != "" {
			missing.Candidates = []string{near}
		}
		return mcp.PromptResult{}, missing
	}
	missing.Ambiguous = true
	for _, h := range hits {
		missing.Candidates = append(missing.Candidates, h.server.Namespace+"/"+h.server.Name+"__"+h.prompt.Name)
	}
	return mcp.PromptResult{}, missing
}

// missingArgs says which required arguments are not there, and which that are there are unknown.
func missingArgs(name string, p mcp.Prompt, args map[string]string) error {
	var fs []v1.Fault
	var known []string
	for _, arg := range p.Arguments {
		known = append(known, arg.Name)
		if _, ok := args[arg.Name]; arg.Required && !ok {
			fs = append(fs, v1.Fault{Path: v1.Pointer("", arg.Name), Expected: "a value", Got: "nothing", Message: fmt.Sprintf("required argument %q is missing", arg.Name)})
		}
	}
	for k := range args {
		if !slices.Contains(known, k) {
			msg := fmt.Sprintf("unknown argument %q", k)
			if near := v1.Nearest(k, known); near != "" {
				msg += fmt.Sprintf("; did you mean %q?", near)
			}
			fs = append(fs, v1.Fault{Path: v1.Pointer("", k), Expected: "an argument of the prompt", Got: k, Message: msg})
		}
	}
	if fs == nil {
		return nil
	}
	slices.SortFunc(fs, func(a, b v1.Fault) int { return strings.Compare(a.Path, b.Path) })
	err := v1.NewValidationError(v1.ArgsInvalid, "", fs)
	return fmt.Errorf("prompt %q: %w", name, err)
}

func (a *app) printPrompt(format string, res mcp.PromptResult) error {
	switch format {
	case "json":
		return printJSON(a.out, res)
	case "yaml":
		return printYAML(a.out, res)
	}
	var errs []error
	for i, m := range res.Messages {
		if i > 0 {
			_, err := fmt.Fprintln(a.out)
			errs = append(errs, err)
		}
		_, err := fmt.Fprintf(a.out, "%s: %s\n", m.Role, partText(m.Content))
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// partText is the text of a part, or what it is in brackets.
func partText(p v1.Part) string {
	switch {
	case p.Type == v1.PartText:
		return p.Text
	case p.Type == v1.PartResource && p.Resource != nil && p.Resource.Blob == "":
		return fmt.Sprintf("[resource %s]\n%s", p.Resource.URI, p.Resource.Text)
	case p.Type == v1.PartResource && p.Resource != nil:
		return fmt.Sprintf("[resource %s, %s]", p.Resource.URI, p.Resource.MIMEType)
	case p.URI != "":
		return fmt.Sprintf("[%s %s]", p.Type, p.URI)
	}
	return fmt.Sprintf("[%s, %s]", p.Type, p.MIMEType)
}
