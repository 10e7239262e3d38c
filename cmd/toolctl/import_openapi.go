package main

import (
	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
)

func newImportOpenAPICmd(a *app) *cobra.Command {
	i := &importing{app: a, into: []string{"table", "json", "name"}, shown: 20}
	from := &action.ImportOpenAPI{}
	cmd := &cobra.Command{
		Use:   "openapi FILE|URL|-",
		Short: "Generate Tool manifests from an OpenAPI document",
		Long: `Generate Tool manifests from an OpenAPI 3.0 or 3.1 document, one for each operation:
as a YAML stream on stdout, or with --out as one file per tool.

The manifests read credentials from environment variables; toolctl prints their names to
stderr. A document may refer to other files in its folder; only the given URL is
fetched. toolctl reports to stderr what a manifest cannot express.

Importing into the same folder again keeps your edits: the file openapi-import.lock in it
records what was generated last, and changes of the document are merged field by field.
If you and the document both changed a field, the file keeps your value, toolctl
reports the conflict, and the exit code is 1. Flags that you leave out have the values
of the last import into the folder.

Filters are KEY=GLOB with a KEY of tag, path, method or operation. * matches text
without a slash, ** matches any text. An operation must match one GLOB of every KEY
that is given.

Output formats (-o): yaml (the default, without --out); table (the default),
json or name (with --out).`,
		Annotations: formats("yaml", "table", "json", "name"),
		Example: `  toolctl import openapi petstore.yaml --out tools/petstore
  toolctl import openapi https://api.example.com/openapi.json --include tag=pets --exclude method=DELETE
  toolctl import openapi api.yaml --server http://localhost:8080 | toolctl validate -f -`,
		Args: exactArgs(1, "one file or URL of an OpenAPI document"),
		RunE: func(cmd *cobra.Command, args []string) error {
			from.Source, from.Given = args[0], cmd.Flags().Changed
			return i.run(cmd.Context(), from)
		},
	}
	f := cmd.Flags()
	f.StringVar(&i.Dir, "out", "", "folder for the files, one per tool (default: print to stdout)")
	f.StringArrayVar(&from.Include, "include", nil, "import only operations that match KEY=GLOB; may be repeated")
	f.StringArrayVar(&from.Exclude, "exclude", nil, "skip operations that match KEY=GLOB; may be repeated")
	f.StringVar(&from.Server, "server", "", "URL that replaces the servers of the document")
	f.StringVar(&from.Prefix, "prefix", "", "prefix of each tool name, such as github-")
	f.StringVar(&from.EnvPrefix, "env-prefix", "", "prefix of the environment variable names (default: the title of the API)")
	f.BoolVar(&from.AllowPrivateNetwork, "allow-private-network", false, "set allow_private_network in the tools, so that they may reach loopback and private addresses")
	f.BoolVar(&i.Prune, "prune", false, "delete the files of removed operations, unless you have edited them")
	f.BoolVar(&i.DryRun, "dry-run", false, "print what would change in --out without writing it")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}
