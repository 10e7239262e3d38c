package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
)

// sourceText says where an object comes from: a file, or a server.
func sourceText(it registry.Item) string {
	if it.Server != (v1.Key{}) {
		return objectName(it.Server)
	}
	return cmp.Or(it.Object.Head().Source.String(), "-")
}

// stateCells are the cells of a server that was asked.
func (o *listOptions) stateCells(key v1.Key) []string {
	for _, s := range o.states {
		if s.Key == key {
			return []string{statusText(s), cmp.Or(s.ProtocolVersion, "-"), toolCount(s), latencyText(s)}
		}
	}
	return []string{"Unknown", "-", "-", "-"}
}

func statusText(s mcp.ServerState) string {
	if s.Ready {
		return "Ready"
	}
	return "NotReady"
}

func toolCount(s mcp.ServerState) string {
	if s.LastSeen.IsZero() && !s.Ready {
		return "-"
	}
	return strconv.Itoa(len(s.Tools))
}

func latencyText(s mcp.ServerState) string {
	if s.Latency <= 0 {
		return "-"
	}
	return clip.Duration(s.Latency)
}

// upstreamResource is a resource of a server or a manifest, as list resources -o json prints it.
type upstreamResource struct {
	Namespace   string          `json:"namespace"`
	Server      string          `json:"server,omitempty"`
	URI         string          `json:"uri,omitempty"`
	URITemplate string          `json:"uri_template,omitempty"`
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	MIMEType    string          `json:"mime_type,omitempty"`
	Size        *int64          `json:"size,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	// Manifest is what declares the resource, as KIND/NAME; empty for those of servers.
	Manifest string `json:"manifest,omitempty"`
}

// listResources lists the resources that manifests declare, and the resources and
// resource templates of the MCP servers.
func (o *listOptions) listResources(ctx context.Context) error {
	a := o.app
	sel, err := registry.ParseSelector(o.selector)
	if err != nil {
		return usageIf(err)
	}
	format := a.format()
	if err := checkTemplate(format); err != nil {
		return err
	}
	w, err := a.open(ctx)
	if err != nil {
		return err
	}
	defer w.Close()
	a.warnViolations(w)
	owners := map[v1.Key]bool{} // the objects that have the labels
	for _, obj := range w.Registry.Objects() {
		owners[obj.Head().Key()] = sel.Matches(obj.Head().Metadata.Labels)
	}
	var states []mcp.ServerState
	if keys := slices.DeleteFunc(w.Servers(a.conf.Namespace), func(k v1.Key) bool { return !owners[k] }); len(keys) > 0 {
		states = w.Discover(ctx, keys...)
	}
	for _, s := range states {
		if !s.Ready {
			fmt.Fprintf(a.err, "warning: %s is not ready: %s\n", objectName(s.Key), reasonText(s))
		}
	}
	list := a.declaredResources(w, owners)
	for _, s := range states {
		for _, r := range s.Resources {
			list = append(list, upstreamResource{s.Key.Namespace, s.Key.Name, r.URI, "", r.Name, r.Title, r.Description, r.MIMEType, r.Size, r.Annotations, ""})
		}
		for _, r := range s.ResourceTemplates {
			list = append(list, upstreamResource{s.Key.Namespace, s.Key.Name, "", r.URITemplate, r.Name, r.Title, r.Description, r.MIMEType, nil, r.Annotations, ""})
		}
	}
	switch {
	case strings.HasPrefix(format, jsonPathFormat), strings.HasPrefix(format, goTemplateFormat):
		return a.printTemplate(format, list)
	case strings.HasPrefix(format, columnsFormat):
		return printColumns(o.app, format, list, o.headless)
	case format == "json":
		return printJSON(a.out, list)
	case format == "yaml":
		return printYAML(a.out, list)
	case format == "name":
		for _, r := range list {
			if r.URI != "" {
				fmt.Fprintln(a.out, clip.Line(r.URI))
			}
		}
		return nil
	}
	if len(list) == 0 {
		fmt.Fprintln(a.err, "no resources found")
		return nil
	}
	head := []string{"NAMESPACE", "OWNER", "URI", "TYPE", "NAME"}
	if format == "wide" {
		head = append(head, "SIZE", "DESCRIPTION")
	}
	t := newTable(a.out, head...)
	for _, r := range list {
		cells := []string{r.Namespace, cmp.Or(r.Server, r.Manifest), inspect.Show(cmp.Or(r.URI, r.URITemplate)), cmp.Or(r.MIMEType, "-"), clip.Words(inspect.Show(cmp.Or(r.Title, r.Name)), 60)}
		if format == "wide" {
			size := "-"
			if r.Size != nil {
				size = strconv.FormatInt(*r.Size, 10)
			}
			cells = append(cells, size, cmp.Or(clip.Words(inspect.Show(r.Description), 80), "-"))
		}
		t.row(cells...)
	}
	return t.Flush()
}
