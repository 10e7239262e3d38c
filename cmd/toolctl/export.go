package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/store"
)

func newExportCmd(a *app) *cobra.Command {
	dir := ""
	cmd := &cobra.Command{
		Use:   "export --dir DIR",
		Short: "Write the applied manifests into a new folder",
		Long: `Write the manifests that the store holds, and the files that they name, into a new or
empty folder. 'toolctl apply -f .' in it finds all of them unchanged. An object is in the
file that it was applied from where that path is relative, and else in
NAMESPACE/KIND-NAME.yaml. Comments and the order of keys are kept.

Overrides of descriptions, approvals, counts and the audit are not manifests:
'toolctl store backup' copies those too.`,
		Example: `  toolctl export --dir backup
  toolctl export --dir backup -n payments -l team=pay`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if dir == "" {
				return usagef("name the folder to write with --dir")
			}
			has, err := a.selected()
			if err != nil {
				return err
			}
			s, err := a.openKept(cmd.Context())
			if err != nil {
				return err
			}
			defer a.closing(s)
			objects, err := action.Objects(cmd.Context(), s, store.ListOptions{Layout: true})
			if err != nil {
				return err
			}
			objects = slices.DeleteFunc(objects, func(o v1.Object) bool {
				return !has(o) || a.namespace != "" && o.Head().Namespace() != a.namespace
			})
			return a.export(dir, objects)
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "folder to write; it is made, or is empty")
	_ = cmd.MarkFlagDirname("dir")
	a.bindSelector(cmd.Flags(), "objects")
	return cmd
}

func (a *app) export(dir string, objects []v1.Object) error {
	if err := newFolder(dir); err != nil {
		return err
	}
	files, err := manifest.Export(objects)
	if err != nil {
		return err
	}
	if err := fileset.Write(dir, files); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.out, "%s in %s written to %s\n", count(len(objects), "object"), count(len(files), "file"), dir)
	return err
}

// newFolder refuses a folder that holds something.
func newFolder(dir string) error {
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return usagef("--dir %s: it is not empty: name a new folder", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return usagef("--dir %s: %w", dir, err)
	}
	return nil
}
