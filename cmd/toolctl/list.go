package main

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

type listOptions struct {
	*app
	requests []request
	selector string
	limit    int
	offset   int
	offline  bool
	labels   bool // a column for them
	headless bool // tables without their head
	sortBy   string
	watch    bool
	headed   map[string]bool // the kinds whose head was printed; nil prints it each time
	event    string          // what happened to what is printed, of a watch

	watchOnly, events bool
	shows             bool // the status of each object

	states []mcp.ServerState // of the servers that were asked
}

func newListCmd(a *app) *cobra.Command {
	o := &listOptions{app: a}
	cmd := &cobra.Command{
		Use:     "list [KIND [NAME...] | KIND/NAME...]",
		Aliases: []string{"get", "ls"},
		Short:   "List objects",
		Long: `List objects: all of them, those of one kind, or some by name. A name may end
in "*". An object that cannot be used is listed as not ready; -o wide shows why.

'list tools' and 'list prompts' also query the MCP servers for their tools and prompts, and
'list mcpservers -o wide' queries their state, unless you pass --no-discover.
'list resources' lists the resources that 'toolctl read' can read.

Output formats (-o): table, wide, json, yaml, name, jsonpath=TEMPLATE,
go-template=TEMPLATE and custom-columns=TITLE:PATH,... as in kubectl. json and yaml print the
manifests as they were written, yaml with comments and the order of keys; tables mask
anything that looks like a secret. Objects of the store also have a status, which apply
ignores: set, revision, commit, source, and the conditions Ready, Degraded and Drifted.
With -f, only templates that name status get it, such as {.status.conditions}.`,
		Annotations: formats("table", "wide", "json", "yaml", "name", "jsonpath=", "go-template=", "custom-columns="),
		Example: `  toolctl list
  toolctl list tools -l team=payments -o wide
  toolctl list tool/get-weather -o yaml
  toolctl list tool/get-weather toolpolicy/careful
  toolctl list -f manifests/ tools -o name
  toolctl get tools -A --show-labels
  toolctl get tools -o jsonpath='{range .items[*]}{.metadata.name}{"\n"}{end}'
  toolctl get tools -o custom-columns=NAME:.metadata.name,URL:.spec.http.url
  toolctl get tools --sort-by=.metadata.name --no-headers
  toolctl get tools --watch
  toolctl list mcpservers -o wide
  toolctl list resources`,
		ValidArgsFunction: a.completeResources,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if len(args) > 0 && (args[0] == "resources" || args[0] == "resource") {
				if o.watch || o.watchOnly {
					return usagef("--watch is about objects, not about resources")
				}
				if len(args) > 1 {
					return usagef("list resources takes no names: see 'toolctl read'")
				}
				return o.listResources(cmd.Context())
			}
			if o.requests, err = requests(args); err != nil {
				return a.meant(cmd, err)
			}
			return o.run(cmd)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.selector, "selector", "l", "", "labels that objects must have, such as team=pay,tier!=old")
	f.BoolVar(&o.labels, "show-labels", false, "add a column with the labels")
	f.BoolVar(&o.headless, "no-headers", false, "print tables without a header")
	f.StringVar(&o.sortBy, "sort-by", "", "sort objects by this field, such as .metadata.name (default: by kind, namespace and name)")
	f.BoolVarP(&o.watch, "watch", "w", false, "print objects again when they change, until interrupted")
	f.BoolVar(&o.watchOnly, "watch-only", false, "watch, and skip the objects that exist at the start")
	f.BoolVar(&o.events, "output-watch-events", false, "with --watch or --watch-only: print the type of each event: ADDED, MODIFIED, DELETED")
	f.IntVar(&o.limit, "limit", 0, "maximum number of objects to list (default: all)")
	f.IntVar(&o.offset, "offset", 0, "number of objects to skip")
	f.BoolVar(&o.offline, "no-discover", false, "do not query MCP servers")
	a.bindNetwork(f, "")
	return cmd
}

func (o *listOptions) run(cmd *cobra.Command) error {
	ctx := cmd.Context()
	format := o.format()
	if o.limit < 0 || o.offset < 0 {
		return usagef("--limit and --offset must not be negative")
	}
	o.watch = o.watch || o.watchOnly
	if o.events && !o.watch {
		return usagef("--output-watch-events needs --watch or --watch-only")
	}
	if o.watch && (slices.Contains(o.conf.Files, "-") || o.limit > 0 || o.offset > 0 || o.sortBy != "") {
		return usagef("--watch reads files, folders or the store, and cannot be used with -f -, --limit, --offset or --sort-by")
	}
	if err := checkTemplate(format); err != nil {
		return err
	}
	c, err := o.reaching(ctx)
	if err != nil {
		return err
	}
	c.Layout = format == "yaml"
	w, err := c.Open(ctx)
	if err != nil {
		return err
	}
	defer o.closing(w)
	o.shows = showsStatus(format, w.OfFiles)
	if w.OfFiles && (format == "table" || format == "wide") {
		w.Registry.Check(ctx) // a store's objects were checked when they were applied
	}
	o.warnViolations(w)
	if o.watch {
		return o.follow(ctx, w, format)
	}
	r, err := o.verb(format).In(ctx, w)
	if err != nil {
		return err
	}
	return o.print(format, r)
}

// verb is what the flags ask for.
func (o *listOptions) verb(format string) *action.List {
	return &action.List{Config: &action.Config{Namespace: o.conf.Namespace}, Requests: actionRequests(o.requests), Selector: o.selector, Limit: o.limit, Offset: o.offset, SortBy: o.sortBy,
		Offline: o.offline, States: format == "wide", Statuses: o.shows, Asked: o.warnStates, Found: o.warnTexts}
}

// print prints what was found.
func (o *listOptions) print(format string, r *action.Listed) error {
	items, total, statuses := r.Items, r.Total, r.Statuses
	o.states = r.Servers
	switch format {
	case "table", "wide":
		if len(items) == 0 {
			fmt.Fprintln(o.err, "no objects found")
			return nil
		}
		if err := o.printTables(items, format == "wide"); err != nil {
			return err
		}
		if len(items) < total {
			fmt.Fprintf(o.err, "%d of %d shown\n", len(items), total)
		}
		return nil
	}
	objects := make([]v1.Object, len(items))
	for i, it := range items {
		objects[i] = it.Object
	}
	if statuses != nil {
		for i := range objects {
			if s, ok := statuses[objects[i].Head().Key()]; ok && items[i].Server == (v1.Key{}) {
				objects[i] = statedObject{objects[i], s}
			}
		}
	}
	single := len(o.requests) == 1 && len(o.requests[0].names) == 1 && !strings.HasSuffix(o.requests[0].names[0], "*")
	return o.printObjects(format, objects, single, o.headless)
}

func usageIf(err error) error {
	if err == nil {
		return nil
	}
	return usageError{err}
}

// printTables prints one table a kind.
func (o *listOptions) printTables(items []registry.Item, wide bool) error {
	several, printed := len(o.requests) != 1, false
	for _, kind := range v1.Kinds() {
		of := slices.DeleteFunc(slices.Clone(items), func(it registry.Item) bool { return it.Object.Head().Kind != kind })
		if len(of) == 0 {
			continue
		}
		if several && printed {
			fmt.Fprintln(o.out)
		}
		printed = true
		if err := o.printTable(kind, of, wide, several); err != nil {
			return err
		}
	}
	return nil
}

func (o *listOptions) printTable(kind string, items []registry.Item, wide, prefix bool) error {
	detail, title := details(kind)
	head := []string{"NAMESPACE", "NAME", "READY", title}
	servers := kind == v1.KindMCPServer && wide && !o.offline
	sourced := !wide && slices.ContainsFunc(items, func(it registry.Item) bool { return it.Server != v1.Key{} })
	switch {
	case kind == v1.KindTool:
		head = []string{"NAMESPACE", "NAME", "MODE", "READY", title}
	case servers:
		head = []string{"NAMESPACE", "NAME", "READY", "STATUS", "PROTOCOL", "TOOLS", "LATENCY", title}
	}
	if sourced {
		head = append(head[:len(head)-1], "SOURCE", title)
	}
	if wide {
		head = append(head, "LABELS", "SOURCE", "REASON")
	} else if o.labels {
		head = append(head, "LABELS")
	}
	if o.events {
		head = append([]string{"EVENT"}, head...)
	}
	if o.headless || o.headed[kind] {
		head = nil
	} else if o.headed != nil {
		o.headed[kind] = true
	}
	t := newTable(o.out, head...)
	for _, it := range items {
		h := it.Object.Head()
		name := h.Metadata.Name
		if prefix {
			name = objectName(h.Key())
		}
		cells := []string{h.Namespace(), name}
		if tool := it.Tool(); tool != nil {
			cells = append(cells, tool.Mode())
		}
		if o.events {
			cells = append([]string{cmp.Or(o.event, "-")}, cells...)
		}
		if o.event == eventDeleted {
			cells = append(cells, "Deleted")
		} else {
			cells = append(cells, readyText(it))
		}
		if servers {
			cells = append(cells, o.stateCells(h.Key())...)
		}
		if sourced {
			cells = append(cells, sourceText(it))
		}
		cells = append(cells, clip.Words(inspect.Show(detail(it.Object)), 60))
		if wide {
			cells = append(cells, labelText(h.Metadata.Labels), sourceText(it), cmp.Or(clip.Words(inspect.Show(it.Reason()), 160), "-"))
		} else if o.labels {
			cells = append(cells, labelText(h.Metadata.Labels))
		}
		t.row(cells...)
	}
	return t.Flush()
}

func readyText(it registry.Item) string {
	if it.Ready {
		return "True"
	}
	return "False"
}

func labelText(labels map[string]string) string {
	if len(labels) == 0 {
		return "-"
	}
	var pairs []string
	for k, v := range labels {
		pairs = append(pairs, k+"="+v)
	}
	sort.Strings(pairs)
	return strings.Join(pairs, ",")
}

// details returns the last column of a kind's table.
func details(kind string) (func(v1.Object) string, string) {
	switch kind {
	case v1.KindTool:
		return func(o v1.Object) string { return firstParagraph(o.(*v1.Tool).Spec.Description) }, "DESCRIPTION"
	case v1.KindPrompt:
		return func(o v1.Object) string {
			s := o.(*v1.Prompt).Spec
			return cmp.Or(s.Description, s.Title, "-")
		}, "DESCRIPTION"
	case v1.KindMCPServer:
		return func(o v1.Object) string {
			s := o.(*v1.MCPServer).Spec
			return cmp.Or(redact.URL(s.URL), strings.Join(append([]string{s.Command}, redact.Args(s.Args)...), " "))
		}, "TARGET"
	case v1.KindToolPolicy:
		return func(o v1.Object) string { return strings.Join(ruleNames(&o.(*v1.ToolPolicy).Spec), ", ") }, "RULES"
	}
	return func(o v1.Object) string { return cmp.Or(o.(*v1.Scenario).Spec.Description, "-") }, "DESCRIPTION"
}

// firstParagraph is the text before the first empty line: in one line, what follows would run into it.
func firstParagraph(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n\n")
	return first
}

// ruleNames names the rules that a policy sets, each once.
func ruleNames(s *v1.ToolPolicySpec) []string {
	var names []string
	for _, rule := range policy.RulesOf(s) {
		name, _, _ := strings.Cut(rule, "[")
		names = append(names, name)
	}
	if len(names) == 0 {
		return []string{"-"}
	}
	return slices.Compact(names)
}
