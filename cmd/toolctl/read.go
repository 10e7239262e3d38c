package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/yosida95/uritemplate/v3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp"
)

func newReadCmd(a *app) *cobra.Command {
	var server string
	cmd := &cobra.Command{
		Use:   "read URI",
		Short: "Read a resource of an MCP server or a manifest",
		Long: `Read a resource and print its content as it is: a file that a manifest declares,
or what an MCP server gives. The server is the one that lists the resource, or has
a template for it; --server names it when several do, or when it reads what it
does not list.

Output formats (-o): content, json, yaml.`,
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
			if parts, ok := a.declaredResource(w, args[0]); ok && server == "" {
				return a.printResource(format, parts)
			}
			key, err := a.resourceServer(cmd.Context(), w, server, args[0])
			if err != nil {
				return err
			}
			parts, err := w.Upstreams().ReadResource(cmd.Context(), key, args[0])
			if err != nil {
				return err
			}
			return a.printResource(format, parts)
		},
	}
	cmd.Flags().StringVar(&server, "server", "", "MCP server to ask (default: the one that lists the resource)")
	_ = cmd.RegisterFlagCompletionFunc("server", a.completeServers)
	a.bindNetwork(cmd.Flags(), "")
	return cmd
}

// resourceServer finds the server that a resource belongs to.
func (a *app) resourceServer(ctx context.Context, w *workspace, server, uri string) (v1.Key, error) {
	if server != "" {
		it, err := w.reg.Get(v1.KindMCPServer, a.namespace, server)
		return keyOf(it.Object), err
	}
	keys := w.Servers(a.namespace)
	states := w.Discover(ctx, keys...)
	missing := &v1.NotFoundError{Kind: "Resource", Name: uri}
	var uris []string
	for _, r := range a.declared(w) {
		uris = append(uris, r.URI)
	}
	for _, fits := range []func(mcp.ServerState) bool{
		func(s mcp.ServerState) bool {
			return slices.ContainsFunc(s.Resources, func(r mcp.Resource) bool { uris = append(uris, r.URI); return r.URI == uri })
		},
		func(s mcp.ServerState) bool {
			return slices.ContainsFunc(s.ResourceTemplates, func(r mcp.ResourceTemplate) bool { return fitsTemplate(r.URITemplate, uri) })
		},
	} {
		var found []v1.Key
		for _, s := range states {
			if fits(s) {
				found = append(found, s.Key)
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
		for _, k := range found {
			missing.Ambiguous = true
			missing.Candidates = append(missing.Candidates, "--server "+k.Namespace+"/"+k.Name)
		}
		if missing.Ambiguous {
			return v1.Key{}, missing
		}
	}
	for _, s := range states {
		if !s.Ready { // it may well be the one
			return v1.Key{}, gateway.StateError(s)
		}
	}
	if near := v1.Nearest(uri, uris); near != "" {
		missing.Candidates = []string{near}
	}
	return v1.Key{}, missing
}

func keyOf(o v1.Object) v1.Key {
	if o == nil {
		return v1.Key{}
	}
	return o.Head().Key()
}

// fitsTemplate reports whether a template of a server (RFC 6570) may make a URI.
func fitsTemplate(template, uri string) bool {
	const longest = 2048 // a template becomes a regular expression
	if len(template) > longest || len(uri) > longest {
		return false
	}
	t, err := uritemplate.New(template)
	return err == nil && t.Match(uri) != nil
}

// printResource prints the contents of a resource one after the other.
func (a *app) printResource(format string, parts []v1.Part) error {
	switch format {
	case "json":
		return printJSON(a.out, parts)
	case "yaml":
		return printYAML(a.out, parts)
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
			fmt.Fprintf(a.err, "%s holds %d bytes of %s: send them to a file, or use -o json\n", oneLine(r.URI), len(data), oneLine(r.MIMEType))
			continue
		}
		if _, err := a.out.Write(data); err != nil {
			return err
		}
	}
	return nil
}
