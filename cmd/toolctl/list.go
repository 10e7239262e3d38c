package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"
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
	action.List
	labels            bool // adds a column with the labels
	headless          bool // prints tables without a header
	watch             bool
	watchOnly, events bool
	// printed has the kinds and formats whose header a watch has printed. It is nil outside of a watch.
	printed map[string]bool
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
					return usagef("--watch is for objects, not for resources")
				}
				if len(args) > 1 {
					return usagef("list resources takes no names: see 'toolctl read'")
				}
				return o.listResources(cmd.Context())
			}
			if o.Requests, err = requests(args); err != nil {
				return a.meant(cmd, err)
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVarP(&o.Selector, "selector", "l", "", "labels that objects must have, such as team=pay,tier!=old")
	f.BoolVar(&o.labels, "show-labels", false, "add a column with the labels")
	f.BoolVar(&o.headless, "no-headers", false, "print tables without a header")
	f.StringVar(&o.SortBy, "sort-by", "", "sort objects by this field, such as .metadata.name (default: by kind, namespace and name)")
	f.BoolVarP(&o.watch, "watch", "w", false, "print objects again when they change, until interrupted")
	f.BoolVar(&o.watchOnly, "watch-only", false, "watch, and skip the objects that exist at the start")
	f.BoolVar(&o.events, "output-watch-events", false, "with --watch or --watch-only: print the type of each event: ADDED, MODIFIED, DELETED")
	f.IntVar(&o.Limit, "limit", 0, "maximum number of objects to list (default: all)")
	f.IntVar(&o.Offset, "offset", 0, "number of objects to skip")
	f.BoolVar(&o.Offline, "no-discover", false, "do not query MCP servers")
	a.bindNetwork(f, "")
	return cmd
}

func (o *listOptions) run(ctx context.Context) error {
	format := o.format()
	if o.Limit < 0 || o.Offset < 0 {
		return usagef("--limit and --offset must not be negative")
	}
	o.watch = o.watch || o.watchOnly
	if o.events && !o.watch {
		return usagef("--output-watch-events needs --watch or --watch-only")
	}
	if o.watch && (slices.Contains(o.conf.Files, "-") || o.Limit > 0 || o.Offset > 0 || o.SortBy != "") {
		return usagef("--watch reads files, folders or the store, and cannot be used with -f -, --limit, --offset or --sort-by")
	}
	err := checkTemplate(format)
	if err != nil {
		return err
	}
	o.Config = o.reaching(ctx)
	o.Layout = format == "yaml"
	o.States, o.Ready = format == "wide", format == "wide" || format == "table"
	o.Statuses = showsStatus(format, len(o.conf.Files) > 0)
	if o.watch {
		return o.follow(ctx, format)
	}
	r, err := o.Run(ctx)
	if err != nil {
		return err
	}
	if !o.Ready {
		single := len(o.Requests) == 1 && len(o.Requests[0].Names) == 1 && !strings.HasSuffix(o.Requests[0].Names[0], "*")
		return o.printObjects(objectsOf(r.Items), single, o.headless)
	}
	if err := o.printTables(r.Items, format == "wide"); err != nil {
		return err
	}
	if len(r.Items) > 0 && len(r.Items) < r.Total {
		fmt.Fprintf(o.err, "%d of %d shown\n", len(r.Items), r.Total)
	}
	return nil
}

// follow prints the objects that exist, and then each that changes, until ctx ends.
func (o *listOptions) follow(ctx context.Context, format string) error {
	o.lasting, o.printed = true, map[string]bool{}
	first := true
	return o.Watch(ctx, func(items []action.ListedItem) error {
		skipped := first && o.watchOnly
		first = false
		switch {
		case skipped:
			return nil
		case o.Ready:
			return o.printTables(items, format == "wide")
		}
		for i, object := range objectsOf(items) {
			if err := o.printEvent(format, items[i].Event, object); err != nil {
				return err
			}
			o.printed[format] = true
		}
		return nil
	}, func(err error) { fmt.Fprintf(o.err, "warning: %v\n", err) })
}

// printEvent prints an object, or the event with the object if events are requested.
func (o *listOptions) printEvent(format, event string, object v1.Object) error {
	if format == "yaml" && o.printed[format] {
		fmt.Fprintln(o.out, "---")
	}
	headless := o.headless || o.printed[format]
	if !o.events || format == "name" {
		return o.printObjects([]v1.Object{object}, true, headless)
	}
	type typed struct {
		Type   string    `json:"type"`
		Object v1.Object `json:"object"`
	}
	v := typed{event, object}
	return printList(o.app, listing[typed]{items: []typed{v}, value: v, headless: headless})
}

// objectsOf returns the objects, each with its status if it has one.
func objectsOf(items []action.ListedItem) []v1.Object {
	objects := make([]v1.Object, len(items))
	for i, it := range items {
		if objects[i] = it.Object; it.Status != nil {
			objects[i] = statedObject{it.Object, *it.Status}
		}
	}
	return objects
}

// printTables prints one table for each kind.
func (o *listOptions) printTables(items []action.ListedItem, wide bool) error {
	if len(items) == 0 {
		fmt.Fprintln(o.err, "no objects found")
	}
	several, printed := len(o.Requests) != 1, false
	for _, kind := range v1.Kinds() {
		of := slices.DeleteFunc(slices.Clone(items), func(it action.ListedItem) bool { return it.Object.Head().Kind != kind })
		if len(of) == 0 {
			continue
		}
		if several && printed {
			fmt.Fprintln(o.out)
		}
		printed = true
		columns := o.columns(kind, of, wide, several)
		l := listing[action.ListedItem]{items: of, headless: o.headless || o.printed[kind], row: func(it action.ListedItem) (cells []string) {
			for _, c := range columns {
				cells = append(cells, c.cell(it))
			}
			return cells
		}}
		for _, c := range columns {
			l.columns = append(l.columns, c.title)
		}
		if o.printed != nil {
			o.printed[kind] = true
		}
		if err := printList(o.app, l); err != nil {
			return err
		}
	}
	return nil
}

// listColumn is a column of the table of one kind.
type listColumn struct {
	title string
	shown bool
	cell  func(action.ListedItem) string
}

func (o *listOptions) columns(kind string, items []action.ListedItem, wide, several bool) []listColumn {
	servers := kind == v1.KindMCPServer && wide && !o.Offline
	sourced := !wide && slices.ContainsFunc(items, func(it action.ListedItem) bool { return it.Server != v1.Key{} })
	title := map[string]string{v1.KindMCPServer: "TARGET", v1.KindToolPolicy: "RULES"}[kind]
	source := func(it action.ListedItem) string { return sourceText(it.Item) }
	all := []listColumn{
		{"EVENT", o.events, func(it action.ListedItem) string { return it.Event }},
		{"NAMESPACE", true, func(it action.ListedItem) string { return it.Object.Head().Namespace() }},
		{"NAME", !several, func(it action.ListedItem) string { return it.Object.Head().Metadata.Name }},
		{"NAME", several, func(it action.ListedItem) string { return objectName(it.Object.Head().Key()) }},
		{"MODE", kind == v1.KindTool, func(it action.ListedItem) string { return it.Tool().Mode() }},
		{"READY", true, func(it action.ListedItem) string {
			if it.Event == action.EventDeleted {
				return "Deleted"
			}
			return readyText(it.Ready)
		}},
		{"STATUS", servers, func(it action.ListedItem) string { return statusText(it.State) }},
		{"PROTOCOL", servers, func(it action.ListedItem) string { return cmp.Or(it.State, &mcp.ServerState{}).ProtocolVersion }},
		{"TOOLS", servers, func(it action.ListedItem) string { return toolCount(it.State) }},
		{"LATENCY", servers, func(it action.ListedItem) string { return latencyText(it.State) }},
		{"SOURCE", sourced, source},
		{cmp.Or(title, "DESCRIPTION"), true, func(it action.ListedItem) string { return clip.Words(inspect.Show(detail(it.Object)), 60) }},
		{"LABELS", wide || o.labels, func(it action.ListedItem) string { return labelText(it.Object.Head().Metadata.Labels) }},
		{"SOURCE", wide, source},
		{"REASON", wide, func(it action.ListedItem) string { return clip.Words(inspect.Show(it.Reason()), 160) }},
	}
	return slices.DeleteFunc(all, func(c listColumn) bool { return !c.shown })
}

func readyText(ready bool) string {
	if ready {
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

// detail returns the text of the last column for an object.
func detail(o v1.Object) string {
	switch o := o.(type) {
	case *v1.Tool: // further paragraphs would run into the first one on a single line
		first, _, _ := strings.Cut(strings.TrimSpace(o.Spec.Description), "\n\n")
		return first
	case *v1.Prompt:
		return cmp.Or(o.Spec.Description, o.Spec.Title)
	case *v1.MCPServer:
		return cmp.Or(redact.URL(o.Spec.URL), strings.Join(append([]string{o.Spec.Command}, redact.Args(o.Spec.Args)...), " "))
	case *v1.ToolPolicy:
		var names []string
		for _, rule := range policy.RulesOf(&o.Spec) {
			name, _, _ := strings.Cut(rule, "[")
			names = append(names, name)
		}
		return strings.Join(slices.Compact(names), ", ")
	case *v1.Toolset:
		return o.Spec.Description
	case *v1.Scenario:
		return o.Spec.Description
	}
	return ""
}

// sourceText returns the file or the MCP server from which an object comes.
func sourceText(it registry.Item) string {
	if it.Server != (v1.Key{}) {
		return objectName(it.Server)
	}
	return it.Object.Head().Source.String()
}

func statusText(s *mcp.ServerState) string {
	switch {
	case s == nil:
		return "Unknown"
	case s.Ready:
		return "Ready"
	}
	return "NotReady"
}

func toolCount(s *mcp.ServerState) string {
	if s == nil || s.LastSeen.IsZero() && !s.Ready {
		return ""
	}
	return strconv.Itoa(len(s.Tools))
}

func latencyText(s *mcp.ServerState) string {
	if s == nil || s.Latency <= 0 {
		return ""
	}
	return clip.Duration(s.Latency)
}

// listResources lists the resources of manifests and of MCP servers.
func (o *listOptions) listResources(ctx context.Context) error {
	if err := checkTemplate(o.format()); err != nil {
		return err
	}
	list, states, err := (&action.ListResources{Config: o.reaching(ctx), Selector: o.Selector}).Run(ctx)
	if err != nil {
		return err
	}
	for _, s := range states {
		if !s.Ready {
			fmt.Fprintf(o.err, "warning: %s is not ready: %s\n", objectName(s.Key), reasonText(s))
		}
	}
	l := listing[action.Resource]{
		items: list, value: list, headless: o.headless, empty: "no resources found", name: func(r action.Resource) string { return r.URI },
		columns: []string{"NAMESPACE", "OWNER", "URI", "TYPE", "NAME"},
		row: func(r action.Resource) []string {
			return []string{r.Namespace, cmp.Or(r.Server, r.Manifest), inspect.Show(cmp.Or(r.URI, r.URITemplate)), r.MIMEType, clip.Words(inspect.Show(cmp.Or(r.Title, r.Name)), 60)}
		},
		wide: []string{"SIZE", "DESCRIPTION"},
		more: func(r action.Resource) []string {
			size := ""
			if r.Size != nil {
				size = strconv.FormatInt(*r.Size, 10)
			}
			return []string{size, clip.Words(inspect.Show(r.Description), 80)}
		},
	}
	return printList(o.app, l)
}
