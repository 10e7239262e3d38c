package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/importer"
	"toolctl.dev/toolctl/pkg/manifest"
)

func newImportCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "import",
		Short: "Generate manifests from OpenAPI documents, MCP servers and other sources",
		Long:  "Generate manifests from configurations of MCP clients, MCP servers, OpenAPI documents\nand PromptPack files.",
		Example: `  toolctl import mcp-config claude_desktop_config.json
  toolctl import mcp --tools -- npx -y @modelcontextprotocol/server-memory`,
	}, newImportMCPConfigCmd(a), newImportMCPCmd(a), newImportOpenAPICmd(a), newImportPromptPackCmd(a))
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if from := importerOf(args); from != "" {
			return usagef("the kind of %s is missing: write 'toolctl import %s %s'", args[0], from, args[0])
		}
		return noSubcommand(cmd, args)
	}
	return cmd
}

// importerOf guesses the missing subcommand before a file or an address; "" if it cannot.
func importerOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	if strings.HasPrefix(args[0], "https://") || strings.HasPrefix(args[0], "http://") {
		return manifest.ImportOpenAPI
	}
	if st, err := os.Stat(args[0]); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	data, err := regular.ReadUpTo(args[0], maxGuessed)
	if err != nil || len(data) > maxGuessed {
		return ""
	}
	return manifest.ImportFrom(args[0], data)
}

// maxGuessed limits the size of a file whose format is guessed, in bytes.
const maxGuessed = 50 << 20

// importing is a command that imports.
type importing struct {
	*app
	action.Import
	into  []string // output formats with --out; without it there is only yaml
	shown int      // maximum number of warnings without --verbose; 0 means all
}

// bindNew binds the flags of an importer that writes only new files.
func (i *importing) bindNew(cmd *cobra.Command) *cobra.Command {
	i.into = []string{"files"}
	cmd.Flags().StringVar(&i.Dir, "out", "", "folder for the files, one per manifest (default: print to stdout)")
	cmd.Flags().BoolVar(&i.Force, "force", false, "overwrite existing files")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// run imports, and prints the manifests, or what changed in the folder.
func (i *importing) run(ctx context.Context, from action.Importer) (err error) {
	if i.formats = i.into; i.Dir == "" {
		i.formats = []string{"yaml"}
	}
	if i.output, err = i.formatOf(i.formats); err != nil {
		return err
	}
	if i.From = from; i.Config == nil {
		i.Config = i.stored(ctx)
	}
	r, err := i.Run(ctx)
	if r != nil {
		i.explain(r)
	}
	if err == nil || i.output == "files" && r != nil {
		return errors.Join(err, i.print(r))
	}
	return err
}

// explain prints to stderr what the manifests do not express, and what they need.
func (i *importing) explain(r *importer.Result) {
	list := func(n int, what string, line func(int) string) {
		for at := range n {
			if at == i.shown && at > 0 && !i.verbose {
				fmt.Fprintf(i.err, "… and %s; --verbose shows all\n", count(n-at, "more "+what))
				return
			}
			fmt.Fprintln(i.err, clip.Line(inspect.Show(line(at))))
		}
	}
	if len(r.Reused) > 0 {
		fmt.Fprintf(i.err, "as in the last import into %s: %s\n", i.Dir, strings.Join(r.Reused, " "))
	}
	list(len(r.Warnings), "warning", func(n int) string { return r.Warnings[n].String() })
	list(len(r.Skipped), "skipped operation", func(n int) string { return "skipped " + r.Skipped[n].Operation + ": " + r.Skipped[n].Reason })
	for _, host := range r.Private {
		fmt.Fprintf(i.err, "calls to %s will be refused, because it is not a public address: call and serve with --allow-network %s, or import with --allow-private-network\n", host, host)
	}
	for _, e := range r.Env {
		fmt.Fprintf(i.err, "the tools read %s and send it to %s\n", e.Variable, strings.Join(e.Hosts, ", "))
	}
}

// print prints the result in the format of the command. Conflicts are its verdict.
func (i *importing) print(r *importer.Result) error {
	switch i.output {
	case "yaml":
		for n, m := range r.Manifests {
			if n > 0 {
				fmt.Fprintln(i.out, "---")
			}
			if err := printYAML(i.out, m.Object); err != nil {
				return err
			}
		}
	case "json":
		r.Skipped, r.Warnings, r.Env = orEmpty(r.Skipped), orEmpty(r.Warnings), orEmpty(r.Env)
		if err := printJSON(i.out, r); err != nil {
			return err
		}
	case "name":
		for _, c := range r.Changes {
			fmt.Fprintln(i.out, c.File)
		}
	case "files":
		for _, c := range r.Changes {
			fmt.Fprintln(i.out, filepath.Join(i.Dir, c.File))
		}
	default:
		i.printChanges(r)
	}
	if n := r.Conflicts(); n > 0 {
		fmt.Fprintln(i.err, "edit the files where the document is right; the other values stay, and are not reported again")
		return statusError{exitFailed, fmt.Sprintf("%s to resolve in %s", count(n, "conflict"), i.Dir)}
	}
	return nil
}

// printChanges prints the changed files and the number of unchanged ones.
func (i *importing) printChanges(r *importer.Result) {
	same, ordered := 0, 0
	t := newTable(i.out, "ACTION", "FILE", "OPERATION")
	for _, c := range r.Changes {
		if c.Action == importer.ActionUnchanged && len(c.Conflicts) == 0 {
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
	if r.DryRun {
		suffix = " (dry run)"
	}
	fmt.Fprintf(i.out, "%s, %d unchanged%s\n", count(len(r.Changes), "file"), same, suffix)
	if ordered > 0 {
		fmt.Fprintf(i.err, "in %s, only the order of properties changed, to that of the document\n", count(ordered, "file"))
	}
	for _, c := range r.Changes {
		for _, k := range c.Conflicts {
			fmt.Fprintf(i.err, "conflict %s: %s: kept %s, the document has %s\n", c.File, v1.FieldPath(k.Path), shownValue(k.Ours), shownValue(k.Theirs))
		}
		for _, f := range c.Violations {
			fmt.Fprintln(i.err, f)
		}
		if c.Action == importer.ActionRefused {
			fmt.Fprintf(i.err, "conflict %s: the file exists and is not from an import: kept\n", c.File)
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
