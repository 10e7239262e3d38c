package main

import (
	"errors"

	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/pkg/action"
)

// dryRunMode is the value of --dry-run, as in kubectl.
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

// on reports whether nothing may change. Verbs that read only the store do not distinguish the two modes.
func (m dryRunMode) on() bool { return action.DryRun(m) != action.DryRunNone }

func bindDryRun(f *pflag.FlagSet, m *dryRunMode, usage string) {
	f.Var(m, "dry-run", usage)
	f.Lookup("dry-run").NoOptDefVal = string(action.DryRunServer)
}
