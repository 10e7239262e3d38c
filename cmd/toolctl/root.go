package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"toolctl.dev/toolctl/pkg/store"
)

func newRootCmd(a *app) *cobra.Command {
	var everywhere bool // the flag -A
	root := &cobra.Command{
		Use:   "toolctl",
		Short: "kubectl for the tools that AI agents use",
		Long: `toolctl manages the tools, prompts and policies of AI agents as YAML manifests.

With -f, commands read manifests from files and folders, as in kubectl. Without -f, they use
the store:
.toolctl/state.db in this folder or the nearest parent with .toolctl/. --store or
TOOLCTL_STORE overrides it.`,
		Example: `  # call a tool that a file declares
  toolctl call -f manifests/weather.yaml get-weather -a location=Oslo

  # apply a folder of manifests to the store, and list the objects in it
  toolctl apply -f manifests/
  toolctl list`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usagef("unknown command %s%s", quoted(args[0]), nearestCommand(cmd, args[0]))
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Version = buildVersion().String()
	root.SetVersionTemplate("{{.Version}}\n")
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(flagError)
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if everywhere {
			a.conf.Namespace = ""
		}
		a.conf.Files = append(a.conf.Files, a.conf.Overlays...)
		return a.checkFormat(cmd, args)
	}
	p := root.PersistentFlags()
	p.StringArrayVarP(&a.conf.Files, "filename", "f", nil, "file or folder of manifests, or - for stdin; may be repeated")
	p.StringArrayVarP(&a.conf.Overlays, "kustomize", "k", nil, "folder with a kustomization.yaml to build and use as -f; may be repeated")
	p.StringVar(&a.conf.DSN, "store", "", "store to use (default: $TOOLCTL_STORE, else .toolctl/state.db; none where -f, -k or --source names manifests)")
	p.Int64Var(&a.conf.MaxStoreBytes, "store-max-bytes", 4<<30, "maximum store size in bytes; 0 means no limit")
	p.IntVar(&a.conf.MaxStoreConnections, "store-max-connections", 0, "maximum number of connections of this process to a PostgreSQL store (default: pool_max_conns of its address, else "+strconv.Itoa(store.DefaultConnections)+")")
	p.StringVarP(&a.conf.Namespace, "namespace", "n", "", "namespace (default: all)")
	p.BoolVarP(&everywhere, "all-namespaces", "A", false, "all namespaces; overrides -n")
	p.StringVarP(&a.output, "output", "o", "", "output format; the help of each command lists its formats")
	p.BoolVar(&a.conf.Gateway.Locked, "locked", false, "refuse tools of MCP servers that differ from toolctl.lock")
	p.StringVar(&a.conf.Gateway.LockFile, "lock-file", "", "lock file (default: toolctl.lock in this folder or the nearest parent)")
	p.BoolVarP(&a.verbose, "verbose", "v", false, "log progress to stderr")
	_ = root.RegisterFlagCompletionFunc("namespace", a.completeNamespaces)
	_ = root.RegisterFlagCompletionFunc("output", completeFormats)

	root.AddGroup(
		&cobra.Group{ID: "use", Title: "Use tools:"},
		&cobra.Group{ID: "keep", Title: "Manage manifests:"},
		&cobra.Group{ID: "help", Title: "Help:"},
	)
	add := func(group string, cmds ...*cobra.Command) {
		for _, c := range cmds {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	add("use",
		newCallCmd(a),
		newRunCmd(a),
		newRunsCmd(a),
		newTestCmd(a),
		newVerifyCmd(a),
		newRecordCmd(a),
		newMockCmd(a),
		newListCmd(a),
		newSearchCmd(a),
		newDescribeCmd(a),
		newReadCmd(a),
		newRenderCmd(a),
		newWaitCmd(a),
		newPolicyCmd(a),
		newApprovalsCmd(a),
		newAuditCmd(a),
		newServeCmd(a),
		newStatusCmd(a),
		newUICmd(a),
		newClientCmd(a),
		newMCPCmd(a),
	)
	add("keep",
		newInitCmd(a),
		newValidateCmd(a),
		newLintCmd(a),
		newBuildCmd(a),
		newSchemaCmd(a),
		newDiffCmd(a),
		newApplyCmd(a),
		newReconcileCmd(a),
		newRolloutCmd(a),
		newExportCmd(a),
		newPackageCmd(a),
		newEditCmd(a),
		newDeleteCmd(a),
		newImportCmd(a),
		newLockCmd(a),
		newOverrideCmd(a),
		newStoreCmd(a),
	)
	add("help",
		newExplainCmd(a),
		newAPIResourcesCmd(a),
		newCompletionCmd(a),
		newVersionCmd(a),
	)
	complete(root)
	root.SetHelpCommandGroupID("help")
	root.SetHelpCommand(newHelpCmd())
	return root
}

// flagError adds the most similar flag to an error about an unknown flag.
func flagError(cmd *cobra.Command, err error) error {
	msg := err.Error()
	value, _ := errors.AsType[*pflag.InvalidValueError](err)
	if expected, ok := errors.AsType[*expectedError](err); ok && value != nil {
		return usagef("--%s %q: expected %w", value.GetFlag().Name, value.GetValue(), expected)
	}
	if name, ok := strings.CutPrefix(msg, "unknown flag: --"); ok {
		if near := nearestFlag(cmd, name); near != "" {
			msg += "; did you mean --" + near + "?"
		} else if cmd.Flags().Lookup("http") != nil && slices.Contains([]string{"port", "listen", "addr", "address", "host", "bind"}, name) {
			msg += ": pass the address to listen on with --http, as in --http 127.0.0.1:8080"
		} else if name == "all" && cmd.Name() == "delete" {
			msg += ": choose objects by their labels with -l, or name the files that have them with -f"
		} else if cmd.Flags().Lookup("arg") != nil {
			msg += ": arguments are given with -a, as in -a " + name + "=VALUE"
		}
	}
	return usagef("%s", msg)
}
