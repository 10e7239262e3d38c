package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/openapi"
)

type importOpenAPIOptions struct {
	*app
	action.ImportOpenAPI
}

// newImportOpenAPICmd creates the command import openapi.
func newImportOpenAPICmd(a *app) *cobra.Command {
	o := &importOpenAPIOptions{app: a}
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
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Dir, "out", "", "folder for the files, one per tool (default: print to stdout)")
	f.StringArrayVar(&o.Include, "include", nil, "import only operations that match KEY=GLOB; may be repeated")
	f.StringArrayVar(&o.Exclude, "exclude", nil, "skip operations that match KEY=GLOB; may be repeated")
	f.StringVar(&o.Tools.Server, "server", "", "URL that replaces the servers of the document")
	f.StringVar(&o.Tools.Prefix, "prefix", "", "prefix of each tool name, such as github-")
	f.StringVar(&o.Tools.EnvPrefix, "env-prefix", "", "prefix of the environment variable names (default: the title of the API)")
	f.BoolVar(&o.Tools.AllowPrivateNetwork, "allow-private-network", false, "set allow_private_network in the tools, so that they may reach loopback and private addresses")
	f.BoolVar(&o.Folder.Prune, "prune", false, "delete the files of removed operations, unless you have edited them")
	f.BoolVar(&o.Folder.DryRun, "dry-run", false, "print what would change in --out without writing it")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

func (o *importOpenAPIOptions) run(cmd *cobra.Command, source string) error {
	formats := []string{"yaml"}
	if o.Dir != "" {
		formats = []string{"table", "json", "name"}
	}
	format, err := o.formatOf(formats)
	if err != nil {
		return err
	}
	o.Config, o.Source, o.Given, o.Made = o.stored(cmd.Context()), source, cmd.Flags().Changed, o.explain
	o.Taken = func(flags []string) {
		fmt.Fprintf(o.err, "as in the last import into %s: %s\n", o.Dir, strings.Join(flags, " "))
	}
	r, err := o.Run(cmd.Context())
	switch {
	case err != nil:
		return err
	case r.Empty():
		return statusError{exitNotFound, o.nothing(r.Set)}
	case r.Report == nil:
		return r.WriteStream(o.out)
	}
	return o.printReport(format, r.Set, r.Report)
}

// nothing explains why a document has nothing to import.
func (o *importOpenAPIOptions) nothing(set *openapi.Set) string {
	if set.Operations == 0 {
		return set.Source + ": paths: the document has no operations"
	}
	text := fmt.Sprintf("%s: none of %s matches --include and --exclude", set.Source, count(set.Operations, "operation"))
	if len(set.Tags) > 0 {
		text += "; the tags are " + strings.Join(set.Tags, ", ")
	}
	return clip.Line(text)
}

// explain prints to stderr the skipped operations and the variables that the tools read.
func (o *importOpenAPIOptions) explain(set *openapi.Set) {
	const most = 20
	list := func(n int, what string, line func(int) string) {
		for i := range n {
			if i == most && !o.verbose {
				fmt.Fprintf(o.err, "… and %s; --verbose shows all\n", count(n-most, "more "+what))
				return
			}
			fmt.Fprintln(o.err, clip.Line(line(i)))
		}
	}
	list(len(set.Warnings), "warning", func(i int) string { return set.Warnings[i].String() })
	list(len(set.Skipped), "skipped operation", func(i int) string {
		return "skipped " + set.Skipped[i].Operation + ": " + set.Skipped[i].Reason
	})
	for _, host := range set.Private {
		fmt.Fprintf(o.err, "calls to %s will be refused, because it is not a public address: call and serve with --allow-network %s, or import with --allow-private-network\n", host, host)
	}
	for _, e := range set.Env {
		fmt.Fprintf(o.err, "the tools read %s and send it to %s\n", e.Variable, strings.Join(e.Hosts, ", "))
	}
}

// importReport is the output of import openapi --out -o json.
type importReport struct {
	Source   string           `json:"source"`
	Title    string           `json:"title"`
	Version  string           `json:"version"`
	Changes  []openapi.Change `json:"changes"`
	Skipped  []openapi.Skip   `json:"skipped"`
	Warnings []v1.Violation   `json:"warnings"`
	Env      []openapi.EnvUse `json:"env"`
	DryRun   bool             `json:"dry_run,omitempty"`
}

func (o *importOpenAPIOptions) printReport(format string, set *openapi.Set, r *openapi.Report) error {
	switch format {
	case "json":
		err := printJSON(o.out, importReport{
			Source: set.Source, Title: set.Title, Version: set.Version, DryRun: o.Folder.DryRun,
			Changes: orEmpty(r.Changes), Skipped: orEmpty(set.Skipped), Warnings: orEmpty(set.Warnings), Env: orEmpty(set.Env),
		})
		if err != nil {
			return err
		}
	case "name":
		for _, c := range r.Changes {
			fmt.Fprintln(o.out, c.File)
		}
	default:
		o.printChanges(r)
	}
	if n := r.Conflicts(); n > 0 {
		fmt.Fprintln(o.err, "edit the files where the document is right; the other values stay, and are not reported again")
		return statusError{exitFailed, fmt.Sprintf("%s to resolve in %s", count(n, "conflict"), o.Dir)}
	}
	return nil
}

// printChanges prints the changed files and the number of unchanged ones.
func (o *importOpenAPIOptions) printChanges(r *openapi.Report) {
	same, ordered := 0, 0
	t := newTable(o.out, "ACTION", "FILE", "OPERATION")
	for _, c := range r.Changes {
		if c.Action == openapi.ActionUnchanged && len(c.Conflicts) == 0 {
			same++
			continue
		}
		t.row(c.Action, c.File, c.Operation)
		if c.OrderOnly {
			ordered++
		}
	}
	if same < len(r.Changes) {
		_ = t.Flush()
	}
	suffix := ""
	if o.Folder.DryRun {
		suffix = " (dry run)"
	}
	fmt.Fprintf(o.out, "%s, %d unchanged%s\n", count(len(r.Changes), "file"), same, suffix)
	if ordered > 0 {
		fmt.Fprintf(o.err, "in %s, only the order of properties changed, to that of the document\n", count(ordered, "file"))
	}
	for _, c := range r.Changes {
		for _, k := range c.Conflicts {
			fmt.Fprintf(o.err, "conflict %s: %s: kept %s, the document has %s\n", c.File, v1.FieldPath(k.Path), shownValue(k.Ours), shownValue(k.Theirs))
		}
		for _, f := range c.Violations {
			fmt.Fprintln(o.err, f)
		}
		if c.Action == openapi.ActionRefused {
			fmt.Fprintf(o.err, "conflict %s: the file exists and is not from an import: kept\n", c.File)
		}
	}
}

// shownValue formats a value of a conflict on one line.
func shownValue(json string) string {
	if json == "" {
		return "nothing"
	}
	return clip.Line(clip.Words(json, 80))
}
