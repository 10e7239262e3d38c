package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:         "version",
		Short:       "Print the version",
		Long:        "Print the version of toolctl, of Go, and the platform.",
		Annotations: formats("table", "json", "yaml"),
		Example:     "  toolctl version -o json",
		Args:        exactArgs(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			v := buildVersion()
			if done, err := a.encoded(a.format(), v); done {
				return err
			}
			_, err := fmt.Fprintln(a.out, v)
			return err
		},
	}
}

type versionInfo struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (v versionInfo) String() string {
	return fmt.Sprintf("toolctl %s %s %s", v.Version, v.Go, v.Platform)
}

// buildVersion reads the version that the go command wrote into the program.
func buildVersion() versionInfo {
	v := versionInfo{Version: "devel", Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if m := info.Main.Version; m != "" && m != "(devel)" {
		v.Version = m
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			v.Revision = s.Value
		}
	}
	return v
}
