package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/mcpclients"
	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

var serverName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

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
	o := clientOptions{app: a}
	names := slices.Sorted(maps.Keys(mcpclients.All))
	cmd := &cobra.Command{
		Use:   "config CLIENT",
		Short: "Print or write the configuration that connects a client",
		Long: `Print the configuration that connects a client to 'toolctl serve': one that
starts it with the -f, -k, --store, -n, --locked, --lock-file and --allow-… flags given
here ($TOOLCTL_ALLOW_NETWORK becomes flags), or with --url one that reaches it over HTTP. With --authoring
it starts 'toolctl mcp authoring' instead. Where the configuration belongs is said on
stderr. CLIENT is one of ` + strings.Join(names, ", ") + `.

The variables that the manifests need, and the token of a server that is not on this
machine, are named in the client's own syntax: no value is printed. Claude Desktop
and Zed have none, so there a placeholder stands; --write puts in the values that
are set here.

With --write the server is merged into the client's file, after the difference was
shown and confirmed: all else in it stays, the file before is kept as FILE.bak, and
a file that holds values of variables is readable by you alone.`,
		Example: `  toolctl client config claude -f manifests/ > .mcp.json
  toolctl client config codex -f manifests/ --write
  toolctl client config cursor --authoring --write
  toolctl client config vscode --url https://tools.example.com/mcp --token-env TOOLS_TOKEN`,
		Args:      exactArgs(1, "one of "+strings.Join(names, ", ")),
		ValidArgs: names,
		RunE: func(cmd *cobra.Command, args []string) error {
			client, ok := mcpclients.All[args[0]]
			if !ok {
				return usagef("unknown client %q: expected one of %s", args[0], strings.Join(names, ", "))
			}
			o.tokenSet = cmd.Flags().Changed("token-env")
			if o.authoring && !cmd.Flags().Changed("name") {
				o.name = "toolctl-authoring"
			}
			return o.run(cmd.Context(), client)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.address, "url", "", "address of a 'toolctl serve --http' that runs, such as http://127.0.0.1:8080/mcp")
	f.StringVar(&o.name, "name", "toolctl", "name of the server in the configuration; with --authoring the default is toolctl-authoring")
	f.StringVar(&o.tokenEnv, "token-env", "TOOLCTL_TOKEN", "with --url, variable that holds the bearer token (default: none for this machine, elsewhere TOOLCTL_TOKEN)")
	f.BoolVar(&o.authoring, "authoring", false, "connect to 'toolctl mcp authoring' on the folder of -f (default: the current one), for an agent that writes manifests")
	f.BoolVar(&o.write, "write", false, "merge the server into the client's file")
	f.BoolVar(&o.yes, "yes", false, "with --write, do not ask")
	a.bindNetwork(f, "")
	return cmd
}

type clientOptions struct {
	*app
	address, name, tokenEnv         string
	tokenSet, write, yes, authoring bool
}

func (o *clientOptions) run(ctx context.Context, client mcpclients.Client) error {
	if !serverName.MatchString(o.name) {
		return usagef("--name %q: expected letters, digits, - and _", o.name)
	}
	s, err := o.server(ctx)
	if err != nil {
		return err
	}
	if s.URL != "" && client.StdioOnly {
		return usagef("%s starts its servers itself: leave --url out, or add the address under Settings, Connectors", client.Title)
	}
	file, err := client.Path()
	if err != nil {
		return err
	}
	if !o.write {
		text, err := client.Merge(nil, o.name, client.Entry(s, nil), s)
		if err != nil {
			return err
		}
		fmt.Fprintf(o.err, "for %s:\n", file)
		if client.Literal && len(s.Vars) > 0 {
			fmt.Fprintf(o.err, "put in the values of %s, or use --write\n", strings.Join(s.Vars, ", "))
		}
		fmt.Fprintf(o.out, "%s", text)
		return nil
	}
	var values func(string) (string, bool)
	if client.Literal {
		values = o.env
		for _, v := range s.Vars {
			if value, ok := o.env(v); !ok || value == "" {
				return usagef("%s has no syntax for variables, so their values are written into its file: set %s", client.Title, v)
			}
		}
	}
	return o.writeConfig(ctx, client, file, client.Entry(s, values), s)
}

// server gathers what a client has to know.
func (o *clientOptions) server(ctx context.Context) (mcpclients.Server, error) {
	if o.authoring && o.address != "" {
		return mcpclients.Server{}, usagef("--authoring and --url cannot be used together: the client starts 'toolctl mcp authoring' itself")
	}
	if o.address != "" {
		u, err := url.Parse(o.address)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return mcpclients.Server{}, usagef("--url %q: expected an address such as http://127.0.0.1:8080/mcp", o.address)
		}
		s := mcpclients.Server{Name: o.name, URL: o.address}
		if o.tokenEnv != "" && (o.tokenSet || !netaddr.IsLoopbackHost(u.Hostname())) {
			if !envref.IsName(o.tokenEnv) {
				return s, usagef("--token-env %q: expected the name of a variable", o.tokenEnv)
			}
			s.Token, s.Vars = o.tokenEnv, []string{o.tokenEnv}
		}
		return s, nil
	}
	if o.authoring {
		dir, err := o.authoringFolder()
		if err != nil {
			return mcpclients.Server{}, err
		}
		o.files, o.dsn = []string{dir}, ""
	}
	s, err := o.clientCommand()
	s.Name = o.name
	if err != nil || o.authoring {
		return s, err
	}
	s.Vars, err = o.variables(ctx)
	return s, err
}

// variables returns the names of the variables that the manifests need: those without a
// fallback, and of the others those that are set here.
func (o *clientOptions) variables(ctx context.Context) ([]string, error) {
	var objects []v1.Object
	if len(o.files) > 0 {
		if err := action.Regular(o.files); err != nil {
			return nil, err
		}
		set, err := manifest.Load(ctx, o.files, o.manifestOptions(ctx))
		if err != nil {
			return nil, usageError{err}
		}
		objects = set.Objects
	} else {
		s, err := o.openStore(ctx, false)
		if err != nil {
			return nil, err
		}
		defer o.closing(s)
		if objects, err = action.Objects(ctx, s, store.ListOptions{}); err != nil {
			return nil, err
		}
	}
	names := map[string]bool{}
	record := func(name string) (string, bool) {
		if value, ok := o.env(name); ok && value != "" && name != "PATH" && name != "HOME" {
			names[name] = true
		}
		return "", false
	}
	for _, f := range action.Unset(objects, record) {
		names[strings.TrimPrefix(f.Expected, "environment variable ")] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// clientCommand makes the command. A client starts programs in a folder of its own, so
// every path is absolute.
func (o *clientOptions) clientCommand() (mcpclients.Server, error) {
	program, err := os.Executable()
	if err != nil {
		return mcpclients.Server{}, err
	}
	e := mcpclients.Server{Command: program, Args: []string{"serve"}}
	if o.authoring {
		e.Args = []string{"mcp", "authoring"}
	}
	add := func(flag, path string) error {
		path, err := filepath.Abs(path)
		e.Args = append(e.Args, flag, path)
		return err
	}
	for _, path := range o.files {
		if path == "-" {
			return mcpclients.Server{}, usagef("-f - cannot be kept in a configuration: name files or folders")
		}
		flag := "-f"
		if slices.Contains(o.overlays, path) {
			flag = "-k"
		}
		if err := add(flag, path); err != nil {
			return mcpclients.Server{}, err
		}
	}
	if o.dsn != "" || len(o.files) == 0 {
		dsn, err := o.storeDSN()
		switch {
		case err != nil:
			return mcpclients.Server{}, err
		case strings.Contains(dsn, ":"): // no path
			if _, secret := store.Shown(dsn); secret {
				return mcpclients.Server{}, usagef("the address of the store holds a password, which would be written out: leave it out of the address, and give it by PGPASSWORD or ~/.pgpass")
			}
			e.Args = append(e.Args, "--store", dsn)
		default:
			if err := add("--store", dsn); err != nil {
				return mcpclients.Server{}, err
			}
		}
	}
	if o.lockFile != "" {
		if err := add("--lock-file", o.lockFile); err != nil {
			return mcpclients.Server{}, err
		}
	}
	if o.locked {
		e.Args = append(e.Args, "--locked")
	}
	if o.namespace != "" {
		e.Args = append(e.Args, "-n", o.namespace)
	}
	permits, err := o.permitArgs()
	if err != nil {
		return e, err
	}
	e.Args = append(e.Args, permits...)
	if o.authoring {
		return e, nil
	}
	reach, err := o.network()
	for _, where := range reach {
		e.Args = append(e.Args, "--allow-network", where)
	}
	return e, err
}
