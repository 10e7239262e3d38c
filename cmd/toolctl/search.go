package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/search"
)

type searchOptions struct {
	*app
	action.EvaluateSearch
	minRecall float64
}

func newSearchCmd(a *app) *cobra.Command {
	o := &searchOptions{app: a}
	cmd := &cobra.Command{
		Use:   "search QUERY... | search --eval FILE",
		Short: "Find tools by a request, and measure how well they are found",
		Long: `Find the tools that fit a request in plain words, the best first, as clients find them when
'toolctl serve' offers a search instead of a list. The search reads names, titles,
descriptions, parameters, labels, servers, spec.keywords and the ask of spec.examples. It
needs no network and no model.

With --eval, measure the search on the requests of a file. Each line is a request and the
tools that are right for it; any tool of an inner list is right:
  {"ask": "give Ann her money back", "right": [["refund-order"]]}
The result has recall@1, 3, 5 and 10 (the share of inner lists that the first 1, 3, 5 or 10
tools satisfy), nDCG@10, the tokens of the list and of the search in its place, and the
requests with a right tool that is not among the first five, the worst first. With
--min-recall, the exit code is 1 if recall@5 is lower.

With --embeddings-url, tools are found by their meaning too: see docs/search.md.`,
		Annotations: formats("table", "wide", "json", "yaml", "name"),
		Example: `  toolctl search -f manifests/ give a customer the money back
  toolctl search --toolset support refund -o wide
  toolctl search -f manifests/ --eval asks.jsonl --min-recall 0.8
  toolctl search suggest --since 7d`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Query = strings.Join(args, " ")
			if cmd.Flags().Changed("min-recall") && o.File == "" {
				return usagef("--min-recall needs --eval")
			}
			if o.minRecall < 0 || o.minRecall > 1 {
				return usagef("--min-recall %v: expected a number from 0 to 1", o.minRecall)
			}
			o.Config = o.reaching(cmd.Context())
			if o.File == "" {
				return o.find(cmd.Context())
			}
			if len(args) > 0 || cmd.Flags().Changed("limit") {
				return usagef("--eval takes the requests from its file: leave out QUERY and --limit")
			}
			return o.evaluate(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Limit, "limit", 10, "maximum number of tools")
	f.StringVar(&o.Toolset, "toolset", "", "only the tools of this toolset")
	f.StringVar(&o.Server, "server", "", "only tools of this MCP server")
	f.StringVarP(&o.Selector, "selector", "l", "", "only tools with these labels, such as team=pay,tier!=old; tools also have the labels of their servers")
	f.StringVar(&o.File, "eval", "", "file with a request and the right tools on each line; measure how well they are found")
	f.Float64Var(&o.minRecall, "min-recall", 0, "with --eval: exit with code 1 if recall@5 is below this number from 0 to 1")
	f.BoolVar(&o.Offline, "no-discover", false, "do not query MCP servers")
	a.bindEmbeddings(f)
	a.bindNetwork(f, "")
	_ = cmd.RegisterFlagCompletionFunc("toolset", a.completeNames(v1.KindToolset))
	_ = cmd.RegisterFlagCompletionFunc("server", a.completeNames(v1.KindMCPServer))
	cmd.AddCommand(newSearchSuggestCmd(a))
	return cmd
}

func (o *searchOptions) find(ctx context.Context) error {
	found, err := o.Search.Run(ctx)
	if err != nil {
		return err
	}
	return printList(o.app, listing[action.FoundTool]{
		items: found, name: func(t action.FoundTool) string { return t.Name }, empty: "no tool fits the request",
		columns: []string{"RANK", "NAME", "DESCRIPTION", "MATCHES"},
		row: func(t action.FoundTool) []string {
			return []string{strconv.Itoa(t.Rank), t.Name, clip.Words(inspect.Show(t.Description), 60), matchesText(t.Matches)}
		},
		wide: []string{"NAMESPACE", "TOOL", "SCORE"},
		more: func(t action.FoundTool) []string {
			return []string{t.Namespace, t.Tool, strconv.FormatFloat(t.Score, 'f', 2, 64)}
		},
	})
}

// matchesText lists the words of the query that a tool has, and where: refund (name, asks), order (description).
func matchesText(matches []search.Match) string {
	words := make([]string, len(matches))
	for i, m := range matches {
		words[i] = fmt.Sprintf("%s (%s)", m.Word, strings.Join(m.Fields, ", "))
	}
	return strings.Join(words, ", ")
}

func (o *searchOptions) evaluate(ctx context.Context) error {
	format, err := o.formatOf([]string{"table", "json", "yaml"})
	if err != nil {
		return err
	}
	r, err := o.EvaluateSearch.Run(ctx)
	if err != nil {
		return err
	}
	done, err := o.encoded(format, r)
	if !done && err == nil {
		err = o.printReport(r)
	}
	if err == nil && r.Recall5 < o.minRecall {
		return statusError{exitFailed, fmt.Sprintf("recall@5 is %.3f, below --min-recall %v", r.Recall5, o.minRecall)}
	}
	return err
}

func (o *searchOptions) printReport(r *action.SearchReport) error {
	fmt.Fprintf(o.out, "%s, %s\n", count(r.Cases, "request"), count(r.Tools, "tool"))
	t := newTable(o.out, "RECALL@1", "RECALL@3", "RECALL@5", "RECALL@10", "NDCG@10", "LIST", "MENU")
	share := func(f float64) string { return strconv.FormatFloat(f, 'f', 3, 64) }
	t.row(share(r.Recall1), share(r.Recall3), share(r.Recall5), share(r.Recall10), share(r.NDCG10), count(r.ListTokens, "token"), count(r.MenuTokens, "token"))
	if err := t.Flush(); err != nil || len(r.Misses) == 0 {
		return err
	}
	fmt.Fprintln(o.out)
	t = newTable(o.out, "RECALL@5", "MISSED", "RIGHT", "FOUND")
	for _, m := range r.Misses {
		t.row(strconv.FormatFloat(m.Recall5, 'f', 2, 64), clip.Words(inspect.Show(m.Ask), 60), rightText(&m), strings.Join(m.Found, ", "))
	}
	return t.Flush()
}

// rightText lists the right tools of a missed request, each with its rank: refund-order (12), pay|transfer (-).
func rightText(m *search.Miss) string {
	texts := make([]string, len(m.Right))
	for i, any := range m.Right {
		rank := "-"
		if m.Ranks[i] > 0 {
			rank = strconv.Itoa(m.Ranks[i])
		}
		texts[i] = fmt.Sprintf("%s (%s)", strings.Join(any, "|"), rank)
	}
	return strings.Join(texts, ", ")
}
