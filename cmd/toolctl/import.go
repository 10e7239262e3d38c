package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
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
			return usagef("import needs to know what %s is: write 'toolctl import %s %s'", args[0], from, args[0])
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
	data, err := readFile(args[0], maxGuessed)
	if err != nil || len(data) > maxGuessed {
		return ""
	}
	return manifest.ImportFrom(args[0], data)
}

// maxGuessed limits the size of a file whose format is guessed, in bytes.
const maxGuessed = 50 << 20

// manifestWriter writes manifests: as one stream to stdout, or as one file each to a folder.
type manifestWriter struct {
	*app
	dir   string
	force bool
}

func (m *manifestWriter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.dir, "out", "", "folder for the files, one per manifest (default: print to stdout)")
	cmd.Flags().BoolVar(&m.force, "force", false, "overwrite existing files")
	_ = cmd.MarkFlagDirname("out")
}

// convert converts a file or stdin into manifests and writes them.
func (m *manifestWriter) convert(ctx context.Context, file string, as action.Format) error {
	objects, err := (&action.Import{File: file, As: as, Read: m.readInput, Noted: m.printNotes}).Run(ctx)
	if err != nil {
		return err
	}
	return m.write(objects)
}

// write writes all manifests or none.
func (m *manifestWriter) write(objects []v1.Object) error {
	for _, o := range objects {
		if m.conf.Namespace != "" {
			o.Head().Metadata.Namespace = m.conf.Namespace
		}
	}
	if m.dir != "" {
		paths, err := action.WriteManifests(m.dir, objects, m.force)
		for _, path := range paths {
			fmt.Fprintln(m.out, path)
		}
		return err
	}
	for i, o := range objects {
		if i > 0 {
			fmt.Fprintln(m.out, "---")
		}
		if err := printYAML(m.out, o); err != nil {
			return err
		}
	}
	return nil
}
