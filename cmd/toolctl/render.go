package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/prompt"
)

type renderOptions struct {
	*app
	name     string
	args     []string
	argsFile string
}

func newRenderCmd(a *app) *cobra.Command {
	o := &renderOptions{app: a}
	cmd := &cobra.Command{
		Use:   "render NAME [-a key=value]...",
		Short: "Render a prompt and print its messages",
		Long: `Render a prompt and print its messages, without sending them to a model. NAME is the name
of a Prompt manifest, or a prompt of an MCP server as server__prompt, server.prompt, or a
bare name that only one server has; 'toolctl list prompts' lists them. "prompt NAME"
and "prompt/NAME" mean the same.

toolctl coerces the variables and validates them against the prompt's input; a missing
variable is an error. If the input is not an object, -a gives the whole value.`,
		Annotations: formats("text", "json", "yaml"),
		Example: `  toolctl render travel-advice -a city=Oslo -a days=3
  toolctl render travel-advice -a '{"city":"Oslo","days":3}' -o json
  toolctl render travel-advice -a @trip.yaml
  toolctl render summarize -a - < article.txt
  toolctl render everything__args-prompt -a city=Oslo`,
		ValidArgsFunction: a.completePrompts,
		RunE: func(cmd *cobra.Command, pos []string) error {
			var err error
			if o.name, err = promptName(pos); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&o.args, "arg", "a", nil, varsHelp)
	_ = cmd.RegisterFlagCompletionFunc("arg", a.completeVars)
	f.StringVar(&o.argsFile, "args-file", "", "file with a JSON or YAML object of variables; - reads stdin")
	a.bindNetwork(f, "")
	return cmd
}

// promptName reads NAME, prompt NAME or prompt/NAME.
func promptName(pos []string) (string, error) {
	switch {
	case len(pos) == 1 && !isKind(pos[0]):
		word, _, slash := strings.Cut(pos[0], "/")
		if !slash || !isKind(word) {
			return pos[0], nil
		}
	case len(pos) == 0:
		return "", usagef("expected the name of one prompt")
	}
	kind, names, err := resource(pos)
	switch {
	case err != nil:
		return "", err
	case kind != v1.KindPrompt || len(names) != 1:
		return "", usagef("expected the name of one prompt: NAME, prompt NAME or prompt/NAME")
	}
	return names[0], nil
}

func (o *renderOptions) run(ctx context.Context) error {
	format := o.format()
	if err := o.stdinOnce(o.args, o.argsFile); err != nil {
		return err
	}
	w, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer o.closing(w)
	o.warnViolations(w)
	it, err := w.Registry.Get(v1.KindPrompt, o.conf.Namespace, o.name)
	var missing *v1.NotFoundError
	if errors.As(err, &missing) && !missing.Ambiguous {
		return w.OtherKind(v1.KindPrompt, o.conf.Namespace, o.name, o.upstream(ctx, w, format))
	}
	if err != nil {
		return err
	}
	p, err := action.CompilePrompt(it)
	if err != nil {
		return err
	}
	vars, err := o.promptVars(ctx, p, o.args, o.argsFile)
	if err != nil {
		return err
	}
	messages, err := p.Render(ctx, vars)
	o.warnUnused(p.Unused(vars), err)
	if err != nil {
		return fmt.Errorf("prompt %q: %w", p.Object().Metadata.Name, err)
	}
	return o.print(format, p, messages)
}

// warnUnused warns of variables that are likely a slip, unless the error tells of them.
func (a *app) warnUnused(violations []v1.Violation, err error) {
	var invalid *v1.ValidationError
	errors.As(err, &invalid)
	for _, f := range violations {
		if invalid == nil || !slices.ContainsFunc(invalid.Violations, func(told v1.Violation) bool { return told.Path == f.Path }) {
			fmt.Fprintf(a.err, "warning: %s\n", f.Message)
		}
	}
}

// rendered is what render -o json prints of a manifest.
type rendered struct {
	Description string          `json:"description,omitempty"`
	Messages    prompt.Messages `json:"messages"`
}

func (o *renderOptions) print(format string, p *prompt.Prompt, messages prompt.Messages) error {
	all := rendered{p.Object().Spec.Description, messages}
	if done, err := o.encoded(format, all); done {
		return err
	}
	for i, m := range messages {
		if i > 0 {
			fmt.Fprintln(o.out)
		}
		fmt.Fprintf(o.out, "%s: %s\n", m.Role, screenText(o.out, m.Content))
	}
	return nil
}

// upstream fills in a prompt of an MCP server.
func (o *renderOptions) upstream(ctx context.Context, w *action.Workspace, format string) error {
	raw, err := o.callArgs(ctx, o.args, o.argsFile)
	if err != nil {
		return err
	}
	args, err := promptArgs(raw)
	if err != nil {
		return err
	}
	res, err := w.ServerPrompt(ctx, o.conf.Namespace, o.name, args)
	if err != nil {
		return err
	}
	return o.printPrompt(format, res)
}

func (a *app) printPrompt(format string, res mcp.PromptResult) error {
	if done, err := a.encoded(format, res); done {
		return err
	}
	var errs []error
	for i, m := range res.Messages {
		if i > 0 {
			_, err := fmt.Fprintln(a.out)
			errs = append(errs, err)
		}
		_, err := fmt.Fprintf(a.out, "%s: %s\n", m.Role, screenText(a.out, partText(m.Content)))
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
