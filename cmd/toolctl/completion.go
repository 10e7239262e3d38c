package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

func newCompletionCmd(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion (bash|zsh|fish|powershell)",
		Short: "Print the completion script of a shell",
		Long: `Print the completion script of a shell. Names of objects complete from the
store, or from the files given with -f.`,
		Example: `  source <(toolctl completion bash)
  toolctl completion zsh > "${fpath[1]}/_toolctl"
  toolctl completion fish > ~/.config/fish/completions/toolctl.fish`,
		ValidArgs: shells,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usagef("expected one shell: %s", strings.Join(shells, ", "))
			}
			if !slices.Contains(shells, args[0]) {
				return usagef("unknown shell %q: expected one of %s", args[0], strings.Join(shells, ", "))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			}
			return root.GenPowerShellCompletionWithDesc(a.out)
		},
	}
}

// items lists objects for a completion; what cannot be read completes nothing.
func (a *app) items(cmd *cobra.Command, q registry.Query) []registry.Item {
	w, err := a.open(cmd.Context())
	if err != nil {
		return nil
	}
	defer a.closing(w)
	p, err := w.reg.List(q)
	if err != nil {
		return nil
	}
	return p.Items
}

func (a *app) completeTools(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names(a.items(cmd, registry.Query{Kind: v1.KindTool, Namespace: a.namespace}), "", prefix), cobra.ShellCompDirectiveNoFileComp
}

// flagNames completes a flag that takes the name of an object.
func (a *app) flagNames(kind string) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return names(a.items(cmd, registry.Query{Kind: kind, Namespace: a.namespace}), "", prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeArgs completes -a: the names of the tool's properties, and behind "=" the
// values of an enum.
func (a *app) completeArgs(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const keep = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	if len(args) == 0 {
		return nil, keep
	}
	w, err := a.open(cmd.Context())
	if err != nil {
		return nil, keep
	}
	defer a.closing(w)
	it, err := w.reg.Lookup(a.namespace, args[0])
	if err != nil {
		return nil, keep
	}
	var schema struct {
		Properties map[string]struct {
			Enum []any `json:"enum"`
		} `json:"properties"`
	}
	if json.Unmarshal(it.Tool().Spec.InputSchema, &schema) != nil {
		return nil, keep
	}
	var out []string
	for name, p := range schema.Properties {
		if !strings.HasPrefix(prefix, name+"=") {
			out = append(out, name+"=")
			continue
		}
		for _, v := range p.Enum {
			out = append(out, fmt.Sprintf("%s=%v", name, v))
		}
	}
	out = slices.DeleteFunc(out, func(s string) bool { return !strings.HasPrefix(s, prefix) })
	slices.Sort(out)
	return out, keep
}

// completeResources completes KIND/NAME, or KIND and then NAME.
func (a *app) completeResources(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	q := registry.Query{Namespace: a.namespace}
	lead := ""
	switch before, _, slash := strings.Cut(prefix, "/"); {
	case slash:
		kind, err := parseKind(before)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		q.Kind, lead = kind, before+"/"
	case len(args) > 0 && !strings.Contains(args[0], "/"):
		kind, err := parseKind(args[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		q.Kind = kind
	default:
		var kinds []string
		for _, k := range v1.Kinds() {
			if p := plural(strings.ToLower(k)); strings.HasPrefix(p, prefix) {
				kinds = append(kinds, p)
			}
		}
		return kinds, cobra.ShellCompDirectiveNoFileComp
	}
	return names(a.items(cmd, q), lead, prefix), cobra.ShellCompDirectiveNoFileComp
}

func names(items []registry.Item, lead, prefix string) []string {
	var out []string
	for _, it := range items {
		n := lead + it.Object.Head().Metadata.Name
		if strings.HasPrefix(n, prefix) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

func (a *app) completeNamespaces(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var out []string
	for _, it := range a.items(cmd, registry.Query{}) {
		if ns := it.Object.Head().Namespace(); strings.HasPrefix(ns, prefix) && !slices.Contains(out, ns) {
			out = append(out, ns)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeServers completes names of MCP servers.
func (a *app) completeServers(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	return names(a.items(cmd, registry.Query{Kind: v1.KindMCPServer, Namespace: a.namespace}), "", prefix), cobra.ShellCompDirectiveNoFileComp
}

// completeSessions completes the sessions of the last calls in the audit.
func (a *app) completeSessions(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const calls = 500
	var out []string
	if s, err := a.openStore(cmd.Context(), false); err == nil {
		defer a.closing(s)
		lines, err := store.ListAudit(cmd.Context(), s, store.AuditFilter{Limit: calls})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, l := range slices.Backward(lines) { // the newest first
			if l.Session != "" && strings.HasPrefix(l.Session, prefix) && !slices.Contains(out, l.Session) {
				out = append(out, l.Session)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeSets completes the sets of the store that have a name; one that is named by its
// paths takes more than one line to name.
func (a *app) completeSets(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var out []string
	if s, err := a.openStore(cmd.Context(), false); err == nil {
		defer a.closing(s)
		list, err := s.List(cmd.Context(), store.ListOptions{})
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, r := range list.Records {
			if r.Set != "" && !strings.Contains(r.Set, "\n") && strings.HasPrefix(r.Set, prefix) && !slices.Contains(out, r.Set) {
				out = append(out, r.Set)
			}
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeSet completes one set that has revisions.
func (a *app) completeSet(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []string
	s, err := a.openStore(cmd.Context(), false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer a.closing(s)
	all, err := s.Revisions(cmd.Context(), store.RevisionQuery{Newest: true})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, r := range all {
		if name := rollout.Name(r.Set); strings.HasPrefix(name, prefix) {
			out = append(out, name)
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}

// completeRevisions completes the number of a revision, the newest first, each with what it is.
func (a *app) completeRevisions(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var out []string
	s, err := a.openStore(cmd.Context(), false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer a.closing(s)
	newest, err := a.setOf(cmd.Context(), s, args)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all, err := s.Revisions(cmd.Context(), store.RevisionQuery{Set: newest.Set})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, r := range slices.Backward(all) {
		if number := strconv.FormatInt(r.Number, 10); strings.HasPrefix(number, prefix) {
			out = append(out, number+"\t"+clip.Line(strings.TrimSpace(clock(r.Time)+" "+shortCommit(r.Commit))))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
