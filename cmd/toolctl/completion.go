package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

func newCompletionCmd(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:   "completion (bash|zsh|fish|powershell)",
		Short: "Print a shell completion script",
		Long: `Print a completion script for a shell. It completes the names of objects from the
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

// items lists objects for a completion. If they cannot be read, there are no completions.
func (a *app) items(cmd *cobra.Command, q registry.Query) []registry.Item {
	items, _ := a.reaching(cmd.Context()).Items(cmd.Context(), q)
	return items
}

// Directives for the shell: with noFiles it adds no file names, and with inOrder it does not sort the words either.
const (
	noFiles = cobra.ShellCompDirectiveNoFileComp
	inOrder = noFiles | cobra.ShellCompDirectiveKeepOrder
)

// completeNames completes names of objects of a kind.
func (a *app) completeNames(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return names(a.items(cmd, registry.Query{Kind: kind, Namespace: a.conf.Namespace}), "", prefix), noFiles
	}
}

// completeTools completes the name of one tool.
func (a *app) completeTools(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, noFiles
	}
	return a.completeNames(v1.KindTool)(cmd, args, prefix)
}

// withPrefix returns the words with a prefix, without duplicates.
func withPrefix(prefix string, words []string) []string {
	var out []string
	for _, w := range words {
		if strings.HasPrefix(w, prefix) && !slices.Contains(out, w) {
			out = append(out, w)
		}
	}
	return out
}

// completeArgs completes -a for a tool or a prompt: the names of its arguments, and behind "=" the values of an enum.
func (a *app) completeArgs(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		const keep = noFiles | cobra.ShellCompDirectiveNoSpace
		if len(args) == 0 {
			return nil, keep
		}
		name := args[0]
		if kind == v1.KindPrompt {
			var err error
			if name, err = promptName(args); err != nil {
				return nil, keep
			}
		}
		words, _ := a.reaching(cmd.Context()).ArgumentWords(cmd.Context(), kind, name, prefix)
		return withPrefix(prefix, words), keep
	}
}

// completePrompts completes NAME, prompt NAME and prompt/NAME.
func (a *app) completePrompts(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	const word = "prompt"
	if len(args) > 1 || len(args) == 1 && !isKind(args[0]) {
		return nil, noFiles
	}
	lead := ""
	if strings.HasPrefix(prefix, word+"/") {
		lead = word + "/"
	}
	all := names(a.items(cmd, registry.Query{Kind: v1.KindPrompt, Namespace: a.conf.Namespace}), lead, prefix)
	if len(args) == 0 && strings.HasPrefix(word, prefix) {
		all = append(all, word)
	}
	return all, noFiles
}

// completeResources completes KIND/NAME, or KIND and then NAME.
func (a *app) completeResources(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	q := registry.Query{Namespace: a.conf.Namespace}
	lead := ""
	switch before, _, slash := strings.Cut(prefix, "/"); {
	case slash:
		kind, err := parseKind(before)
		if err != nil {
			return nil, noFiles
		}
		q.Kind, lead = kind, before+"/"
	case len(args) > 0 && !strings.Contains(args[0], "/"):
		kind, err := parseKind(args[0])
		if err != nil {
			return nil, noFiles
		}
		q.Kind = kind
	default:
		var kinds []string
		for _, k := range v1.Kinds() {
			if p := plural(strings.ToLower(k)); strings.HasPrefix(p, prefix) {
				kinds = append(kinds, p)
			}
		}
		return kinds, noFiles
	}
	return names(a.items(cmd, q), lead, prefix), noFiles
}

func names(items []registry.Item, lead, prefix string) []string {
	var all []string
	for _, it := range items {
		all = append(all, lead+it.Object.Head().Metadata.Name)
	}
	return withPrefix(prefix, all)
}

func (a *app) completeNamespaces(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	var all []string
	for _, it := range a.items(cmd, registry.Query{}) {
		all = append(all, it.Object.Head().Namespace())
	}
	return withPrefix(prefix, all), noFiles
}

// fromStore completes with the words that list finds in the store. If the store cannot be read, there are no
// completions.
func (a *app) fromStore(found cobra.ShellCompDirective, list func(ctx context.Context, s store.Store, args []string) ([]string, error)) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		s, err := a.stored(cmd.Context()).OpenStore(cmd.Context(), false)
		if err != nil {
			return nil, noFiles
		}
		defer a.closing(s)
		words, err := list(cmd.Context(), s, args)
		if err != nil {
			return nil, noFiles
		}
		return withPrefix(prefix, words), found
	}
}

// sessions lists the sessions of the most recent calls in the audit log, newest first.
func sessions(ctx context.Context, s store.Store, _ []string) (words []string, err error) {
	const calls = 500
	lines, err := store.ListAudit(ctx, s, store.AuditFilter{Limit: calls})
	for _, l := range slices.Backward(lines) {
		if l.Session != "" {
			words = append(words, l.Session)
		}
	}
	return words, err
}

// namedSets lists the named sets of the store. The other sets are identified by their paths, one per line.
func namedSets(ctx context.Context, s store.Store, _ []string) (words []string, err error) {
	list, err := s.List(ctx, store.ListOptions{})
	for _, r := range list.Records {
		if r.Set != "" && !strings.Contains(r.Set, "\n") {
			words = append(words, r.Set)
		}
	}
	return words, err
}

// appliedSet lists the sets that have revisions, for the first argument.
func appliedSet(ctx context.Context, s store.Store, args []string) (words []string, err error) {
	if len(args) > 0 {
		return nil, nil
	}
	all, err := s.Revisions(ctx, store.RevisionQuery{Newest: true})
	for _, r := range all {
		words = append(words, rollout.Name(r.Set))
	}
	return words, err
}

// revisions lists the numbers of the revisions of a set, newest first, each with its time and commit.
func (a *app) revisions(ctx context.Context, _ store.Store, args []string) (words []string, err error) {
	set, err := setNamed(args)
	if err != nil {
		return nil, err
	}
	all, err := (&action.RolloutHistory{Config: a.stored(ctx), Set: set}).Run(ctx)
	if len(all) > 0 && all[0].Set != all[len(all)-1].Set {
		return nil, nil // several sets have revisions, so one must be named
	}
	for _, r := range slices.Backward(all) {
		words = append(words, strconv.FormatInt(r.Number, 10)+"\t"+clip.Line(strings.TrimSpace(clock(r.Time)+" "+shortCommit(r.Commit))))
	}
	return words, err
}
