package main

import (
	"embed"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"toolctl.dev/toolctl/pkg/action"
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
	files, err := fs.Sub(starter, "starter")
	if err != nil {
		return err
	}
	written, err := (&action.Init{Dir: dir, Files: files}).Run()
	for _, path := range written {
		fmt.Fprintf(a.out, "wrote %s\n", path)
	}
	if err != nil {
		return err
	}
	where := ""
	if dir != "." {
		where = "cd " + dir + " && "
	}
	fmt.Fprintf(a.err, "Next: %stoolctl call -f . get-weather -a location=Oslo\n", where)
	return nil
}
