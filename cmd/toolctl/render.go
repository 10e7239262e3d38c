package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
)

func newRenderCmd(a *app) *cobra.Command {
	var verb action.Render
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
		RunE: func(cmd *cobra.Command, pos []string) (err error) {
			if verb.Prompt, err = promptName(pos); err != nil {
				return err
			}
			verb.Config = a.reaching(cmd.Context())
			res, err := verb.Run(cmd.Context())
			if err != nil {
				return err
			}
			return a.printRendered(res)
		},
	}
	a.bindArgs(cmd, v1.KindPrompt, &verb.Arguments)
	a.bindNetwork(cmd.Flags(), "")
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

func (a *app) printRendered(res *action.Rendered) error {
	var value any = res.Prompt
	var roles, texts []string
	if res.Server != nil {
		value = res.Server
		for _, m := range res.Server.Messages {
			roles, texts = append(roles, m.Role), append(texts, partText(m.Content))
		}
	} else {
		for _, m := range res.Prompt.Messages {
			roles, texts = append(roles, m.Role), append(texts, m.Content)
		}
	}
	if done, err := a.encoded(a.format(), value); done {
		return err
	}
	for i, role := range roles {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintf(a.out, "%s: %s\n", role, screenText(a.out, texts[i]))
	}
	return nil
}

// partText returns the text of a part, or its description in brackets.
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
