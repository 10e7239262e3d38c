package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
)

func newClientCmd(a *app) *cobra.Command {
	return group(&cobra.Command{
		Use:   "client",
		Short: "Connect MCP clients to toolctl serve",
		Long:  "Connect MCP clients to 'toolctl serve'.",
		Example: `  toolctl client config vscode -f manifests/
  toolctl client config cursor --url http://127.0.0.1:8080/mcp`,
	}, newClientConfigCmd(a))
}

func newClientConfigCmd(a *app) *cobra.Command {
	o, tokenEnv := clientOptions{app: a}, ""
	names := action.ClientNames()
	cmd := &cobra.Command{
		Use:   "config CLIENT",
		Short: "Print or write the configuration of an MCP client",
		Long: `Print the configuration that connects a client to 'toolctl serve'. The client starts the
server with the -f, -k, --store, -n, --locked, --lock-file, --toolset and --allow-… flags
given here ($TOOLCTL_ALLOW_NETWORK becomes flags), or with --url connects to it over HTTP. With
--authoring it starts 'toolctl mcp authoring' instead. toolctl prints the target file to
stderr. CLIENT is one of ` + strings.Join(names, ", ") + `.

The configuration refers to the variables of the manifests, and to the token of a
server on another machine, in the client's own syntax: it contains no values. Claude
Desktop and Zed have no such syntax, so toolctl prints a placeholder; --write puts in
the values that are set here.

--write merges the server into the client's file after it has shown the difference and you
have confirmed it. The rest of the file stays, the previous file is kept as FILE.bak, and
a file with values of variables is readable only by you.`,
		Example: `  toolctl client config claude -f manifests/ > .mcp.json
  toolctl client config codex -f manifests/ --write
  toolctl client config cursor -f manifests/ --toolset support
  toolctl client config cursor --authoring --write
  toolctl client config vscode --url https://tools.example.com/mcp --token-env TOOLS_TOKEN`,
		Args:      exactArgs(1, "one of "+strings.Join(names, ", ")),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Client.Client = args[0]
			if cmd.Flags().Changed("token-env") {
				o.TokenEnv = &tokenEnv
			}
			if !cmd.Flags().Changed("name") {
				o.Name = ""
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.URL, "url", "", "address of a running 'toolctl serve --http', such as http://127.0.0.1:8080/mcp")
	f.StringVar(&o.Name, "name", "toolctl", "name of the server in the configuration; the default is toolctl-authoring with --authoring, and toolctl-NAME with --toolset")
	f.StringVar(&o.Toolset, "toolset", "", "connect to this toolset only")
	_ = cmd.RegisterFlagCompletionFunc("toolset", o.completeNames(v1.KindToolset))
	f.StringVar(&tokenEnv, "token-env", "TOOLCTL_TOKEN", "with --url: variable with the bearer token (default: none for a server on this machine, else TOOLCTL_TOKEN)")
	f.BoolVar(&o.Authoring, "authoring", false, "connect an agent that writes manifests to 'toolctl mcp authoring' on the folder given with -f (default: the current folder)")
	f.BoolVar(&o.Write, "write", false, "merge the server into the client's file")
	f.BoolVar(&o.yes, "yes", false, "with --write: do not ask for confirmation")
	a.bindNetwork(f, "")
	return cmd
}

type clientOptions struct {
	*app
	action.Client
	yes bool
}

func (o *clientOptions) run(ctx context.Context) error {
	o.Config = o.stored(ctx)
	e, err := o.Run(ctx)
	if err != nil {
		return err
	}
	switch {
	case !o.Write:
		fmt.Fprintf(o.err, "for %s:\n", e.File)
		if len(e.Missing) > 0 {
			fmt.Fprintf(o.err, "put in the values of %s, or use --write\n", strings.Join(e.Missing, ", "))
		}
		_, err := o.out.Write(e.Text)
		return err
	case !e.Changes():
		_, err := fmt.Fprintf(o.out, "%s unchanged\n", e.File)
		return err
	}
	fmt.Fprintf(o.err, "%s:\n%s", e.File, e.Difference)
	if !o.yes {
		if !o.canAsk() {
			return usagef("--write asks before it changes %s: pass --yes if nobody can answer", e.File)
		}
		if yes, err := o.confirm(ctx, "Write it?"); err != nil || !yes {
			return cmp.Or[error](err, statusError{exitFailed, "nothing was written"})
		}
	}
	if err := e.Write(); err != nil {
		return err
	}
	_, err = fmt.Fprintf(o.out, "%s written\n", e.File)
	return err
}
