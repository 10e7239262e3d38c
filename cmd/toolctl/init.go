package main

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// starter is the repository that init writes.
//
//go:embed all:starter
var starter embed.FS

func newInitCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "init [DIR]",
		Short: "Write a starter repository",
		Long: `Write a starter repository to DIR, by default the current folder: a mock tool,
a policy that limits it, and a scenario that tests both. If one of the files
exists already, the command fails and writes nothing.`,
		Example: `  toolctl init my-tools
  cd my-tools && toolctl validate && toolctl call -f . get-weather -a location=Oslo`,
		Args: upToOne("one folder"),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := "."
			if len(args) == 1 {
				dir = args[0]
			}
			return a.writeStarter(dir)
		},
	}
}

func (a *app) writeStarter(dir string) error {
	root, err := fs.Sub(starter, "starter")
	if err != nil {
		return err
	}
	var files, clash []string
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files = append(files, path)
		if _, err := os.Lstat(target(dir, path)); err == nil {
			clash = append(clash, target(dir, path))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(clash) > 0 {
		return usagef("nothing written: %s exist already", strings.Join(clash, ", "))
	}
	for _, f := range files {
		data, err := fs.ReadFile(root, f)
		if err != nil {
			return err
		}
		path := target(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "wrote %s\n", path)
	}
	where := ""
	if dir != "." {
		where = "cd " + dir + " && "
	}
	fmt.Fprintf(a.err, "Next: %stoolctl call -f . get-weather -a location=Oslo\n", where)
	return nil
}

// target returns the path for a file of the starter. The ignore file has another name in the repository of
// toolctl, where it would otherwise take effect.
func target(dir, path string) string {
	if path == "gitignore" {
		path = ".gitignore"
	}
	return filepath.Join(dir, filepath.FromSlash(path))
}
