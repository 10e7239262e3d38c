package main

import (
	"errors"

	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/pkg/action"
)

// dryRunMode is --dry-run, with the values of kubectl.
type dryRunMode action.DryRun

func (m *dryRunMode) String() string { return string(*m) }
func (m *dryRunMode) Type() string   { return "server|client" }

func (m *dryRunMode) Set(text string) error {
	switch text {
	case string(action.DryRunServer), "true":
		*m = dryRunMode(action.DryRunServer)
	case string(action.DryRunClient):
		*m = dryRunMode(action.DryRunClient)
	case "none", "false":
		*m = dryRunMode(action.DryRunNone)
	default:
		return errors.New("expected server, client or none")
	}
	return nil
}

// on reports whether nothing is to be changed. The two modes are one for verbs that read only the store.
func (m dryRunMode) on() bool { return action.DryRun(m) != action.DryRunNone }

func bindDryRun(f *pflag.FlagSet, m *dryRunMode, usage string) {
	f.Var(m, "dry-run", usage)
	f.Lookup("dry-run").NoOptDefVal = string(action.DryRunServer)
}
