package main

import (
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
)

func newReadCmd(a *app) *cobra.Command {
	var verb action.ReadResource
	cmd := &cobra.Command{
		Use:   "read URI",
		Short: "Read a resource of an MCP server or a manifest",
		Long: `Read a resource and print its content unchanged: a file that a manifest declares, or
a resource of an MCP server. toolctl reads from the server that lists the resource or
has a template for it; use --server if several servers do, or if none lists it.`,
		Annotations: formats("content", "json", "yaml"),
		Example: `  toolctl read file:///srv/docs/notes.txt
  toolctl read demo://resource/1 --server everything -o json`,
		Args:              exactArgs(1, "the URI of one resource"),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			verb.URI = args[0]
			verb.Config = a.reaching(cmd.Context())
			parts, err := verb.Run(cmd.Context())
			if err != nil {
				return err
			}
			return a.printResource(parts)
		},
	}
	cmd.Flags().StringVar(&verb.Server, "server", "", "MCP server to read from (default: the one that lists the resource)")
	_ = cmd.RegisterFlagCompletionFunc("server", a.completeNames(v1.KindMCPServer))
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

// printResource prints all parts of a resource.
func (a *app) printResource(parts []v1.Part) error {
	if done, err := a.encoded(a.format(), parts); done {
		return err
	}
	for _, p := range parts {
		r := p.Resource
		if r == nil {
			continue
		}
		if r.Blob == "" {
			text := r.Text
			if isTerminal(a.out) && !strings.HasSuffix(text, "\n") {
				text += "\n"
			}
			if _, err := fmt.Fprint(a.out, text); err != nil {
				return err
			}
			continue
		}
		data, err := base64.StdEncoding.DecodeString(r.Blob)
		if err != nil {
			return fmt.Errorf("%s: its content is not base64: %w", r.URI, err)
		}
		if isTerminal(a.out) {
			fmt.Fprintf(a.err, "%s holds %s of %s: send them to a file, or use -o json\n", clip.Line(r.URI), count(len(data), "byte"), clip.Line(r.MIMEType))
			continue
		}
		if _, err := a.out.Write(data); err != nil {
			return err
		}
	}
	return nil
}
