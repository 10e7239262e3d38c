package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

func newImportCmd(a *app) *cobra.Command {
	cmd := group(&cobra.Command{
		Use:   "import",
		Short: "Make manifests of what others describe",
		Long:  "Make manifests of what others describe: configurations of MCP clients, MCP servers,\nOpenAPI documents and PromptPack files.",
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

// importerOf guesses the subcommand that was left out before a file or an address; "" when there is none.
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

// maxGuessed is the largest file whose kind is guessed, in bytes.
const maxGuessed = 50 << 20

// manifestWriter writes manifests: one stream to stdout, or a file each into a folder.
type manifestWriter struct {
	*app
	dir   string
	force bool
}

func (m *manifestWriter) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&m.dir, "out", "", "folder to write a file for each manifest into (default: all to stdout)")
	cmd.Flags().BoolVar(&m.force, "force", false, "overwrite files that are there")
	_ = cmd.MarkFlagDirname("out")
}

// convert reads a file of at most limit bytes, or stdin, and writes the manifests that it becomes.
func (m *manifestWriter) convert(ctx context.Context, file string, limit int, read func([]byte) ([]v1.Object, []string, error)) error {
	data, err := m.readInput(ctx, file, limit)
	switch {
	case err != nil:
		return err
	case len(data) > limit:
		return usagef("%s: over %d bytes", file, limit)
	}
	objects, notes, err := read(data)
	m.printNotes(notes)
	if err != nil {
		return invalidInput(err)
	}
	return m.write(objects)
}

// write writes all or nothing: a file that is there is an error before any is written.
func (m *manifestWriter) write(objects []v1.Object) error {
	texts := make([][]byte, len(objects))
	for i, o := range objects {
		if m.namespace != "" {
			o.Head().Metadata.Namespace = m.namespace
		}
		text, err := manifest.MarshalYAML(o)
		if err != nil {
			return err
		}
		texts[i] = text
	}
	if m.dir == "" {
		for i, text := range texts {
			if i > 0 {
				fmt.Fprintln(m.out, "---")
			}
			if _, err := m.out.Write(text); err != nil {
				return err
			}
		}
		return nil
	}
	if err := os.MkdirAll(m.dir, 0o755); err != nil {
		return err
	}
	paths := make([]string, len(objects))
	var there []string
	for i, o := range objects {
		paths[i] = filepath.Join(m.dir, o.Head().Metadata.Name+".yaml")
		if _, err := os.Lstat(paths[i]); err == nil && !m.force {
			there = append(there, paths[i]+" already exists: use --force to overwrite it")
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if len(there) > 0 {
		return statusError{exitFailed, strings.Join(there, "\n")}
	}
	for i, text := range texts {
		if err := os.WriteFile(paths[i], text, 0o644); err != nil {
			return err
		}
		fmt.Fprintln(m.out, paths[i])
	}
	return nil
}
