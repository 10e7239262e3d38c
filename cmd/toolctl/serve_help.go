package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// serveFlagGroups is the order in which the help of "toolctl serve" lists the flags.
var serveFlagGroups = []struct {
	title string
	flags []string
}{
	{"Listening", []string{
		"http", "insecure", "tls-cert", "tls-key", "allowed-host", "allowed-origin", "stateless", "instructions", "shutdown-delay", "drain-timeout",
	}},
	{"Authentication", []string{
		"token-file", "oauth-issuer", "oauth-audience", "oauth-resource", "oauth-jwks-url", "oauth-scopes", "oauth-principal-claim", "oauth-groups-claim",
	}},
	{"Limits", []string{
		"max-calls", "principal-share", "memory-budget", "rate-limit", "rate-burst", "max-request-bytes", "max-result-bytes", "max-sessions", "session-idle",
		"turn-idle", "approval-wait",
	}},
	{"Sources", []string{
		"watch", "selector", "tools", "prompt", "source", "interval", "require-signed", "allow-rollback", "hook-secret-file",
	}},
	{"Permissions of manifests", []string{
		"allow-command", "allow-env", "allow-exec", "allow-network", "allow-private-network", "allow-unsandboxed",
	}},
	{"Replicas", []string{"replica-key-file", "replica-address"}},
	{"Console", []string{
		"ui", "ui-url", "ui-operator", "ui-operator-group", "approval-webhook", "approval-webhook-secret-file", "approval-webhook-format", "test-report",
	}},
	{"Observability", []string{"audit", "audit-retention", "access-log", "metrics-addr", "help"}},
}

// serveUsage prints the usage of "toolctl serve" with its flags in groups.
func serveUsage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
	for _, group := range serveFlagGroups {
		flags := pflag.NewFlagSet(group.title, pflag.ContinueOnError)
		flags.SortFlags = false
		for _, name := range group.flags {
			flags.AddFlag(cmd.Flags().Lookup(name))
		}
		fmt.Fprintf(w, "\n%s:\n%s", group.title, flags.FlagUsages())
	}
	_, err := fmt.Fprintf(w, "\nGlobal Flags:\n%s", cmd.InheritedFlags().FlagUsages())
	return err
}
