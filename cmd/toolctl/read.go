package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
)

func newReadCmd(a *app) *cobra.Command {
	var server string
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
		RunE: func(cmd *cobra.Command, args []string) error {
			format := a.format()
			w, err := a.open(cmd.Context())
			if err != nil {
				return err
			}
			defer w.Close()
			a.warnViolations(w)
			parts, err := w.ReadResource(cmd.Context(), a.conf.Namespace, server, args[0])
			var missing *v1.NotFoundError
			if errors.As(err, &missing) && missing.Ambiguous && missing.Kind == "Resource" {
				for i, c := range missing.Candidates {
					missing.Candidates[i] = "--server " + c
				}
			}
			if err != nil {
				return err
			}
			return a.printResource(format, parts)
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "MCP server to read from (default: the one that lists the resource)")
	_ = cmd.RegisterFlagCompletionFunc("server", a.completeNames(v1.KindMCPServer))
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

// printResource prints the contents of a resource one after the other.
func (a *app) printResource(format string, parts []v1.Part) error {
	if done, err := a.encoded(format, parts); done {
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
