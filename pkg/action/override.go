package action

import (
	"context"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Override changes the description of a tool that MCP clients see, without changing its manifest. Set one of
// Text, Version and Unset.
type Override struct {
	*Config
	Tool string
	// Text is the new description.
	Text string
	// Version is the number of an earlier override, whose description is restored.
	Version string
	// Unset restores the description of the manifest.
	Unset bool
}

// OverrideResult is the result of an [Override].
type OverrideResult struct {
	Tool v1.Key
	// Override is nil if there was no override to remove.
	Override *store.Override
}

// Run stores a new override in the name of By.
func (o *Override) Run(ctx context.Context) (*OverrideResult, error) {
	text := strings.TrimSpace(o.Text)
	switch {
	case o.Unset, o.Version != "":
	case text == "":
		return nil, usagef("the description is empty: 'toolctl override unset' removes an override")
	case len(text) > store.MaxDescription:
		return nil, usagef("the description is longer than %d bytes", store.MaxDescription)
	}
	done := &OverrideResult{}
	err := o.withOverrides(ctx, o.Tool, func(s store.Store, tool v1.Key) (err error) {
		done.Tool = tool
		if o.Unset || o.Version != "" {
			all, err := s.OverrideHistory(ctx, tool.Namespace, tool.Name)
			if err != nil || o.Unset && (len(all) == 0 || all[0].Description == "") {
				return err
			}
			if o.Version != "" {
				if text, err = o.earlier(tool, all); err != nil {
					return err
				}
			}
		}
		set, err := s.SetOverride(ctx, store.Override{Namespace: tool.Namespace, Tool: tool.Name, Description: text, Author: o.By})
		done.Override = &set
		return err
	})
	return done, err
}

// earlier returns the description of an earlier override.
func (o *Override) earlier(tool v1.Key, all []store.Override) (string, error) {
	var known []string
	for _, e := range all {
		if fmt.Sprint(e.Version) == o.Version {
			return e.Description, nil
		}
		known = append(known, fmt.Sprint(e.Version))
	}
	if known == nil {
		return "", usagef("%s never had an override", ToolName(tool))
	}
	return "", usagef("%s has no version %q: it has %s", ToolName(tool), o.Version, strings.Join(known, ", "))
}

// ToolName returns the name of a tool for messages: tool/NAME, with the namespace unless it is the default.
func ToolName(tool v1.Key) string {
	if tool.Namespace == v1.DefaultNamespace {
		return "tool/" + tool.Name
	}
	return "tool/" + tool.Namespace + "/" + tool.Name
}

// Overrides lists the current overrides, or all overrides of one tool, newest first.
type Overrides struct {
	*Config
	// Tool selects the tool whose overrides are listed. Default: the current overrides of all tools.
	Tool string
}

// Run reads the store.
func (o Overrides) Run(ctx context.Context) (all []store.Override, err error) {
	if o.Tool == "" {
		err = o.withStore(ctx, false, func(s store.Store) (err error) {
			all, err = s.Overrides(ctx)
			return err
		})
		return all, err
	}
	err = o.withOverrides(ctx, o.Tool, func(s store.Store, tool v1.Key) (err error) {
		all, err = s.OverrideHistory(ctx, tool.Namespace, tool.Name)
		return err
	})
	return all, err
}

// withOverrides opens the store and finds the tool with a name.
func (c *Config) withOverrides(ctx context.Context, name string, do func(store.Store, v1.Key) error) error {
	if len(c.Files) > 0 {
		return usagef("-f does not apply to overrides: remove it, or select a store with --store")
	}
	return c.withStore(ctx, false, func(s store.Store) error {
		tool, err := overrideTool(ctx, s, c.Namespace, name)
		if err != nil {
			return err
		}
		return do(s, tool)
	})
}

// overrideTool finds a tool in a store by its name. It recognizes a tool of an MCP server by the name of that
// server, without starting it.
func overrideTool(ctx context.Context, s store.Objects, namespace, name string) (v1.Key, error) {
	reg, err := namesOf(ctx, s)
	if err != nil {
		return v1.Key{}, err
	}
	it, err := reg.Get(v1.KindTool, namespace, name)
	if err == nil {
		return it.Object.Head().Key(), nil
	}
	ns, local, whole := strings.Cut(name, "/")
	if !whole {
		ns, local = namespace, name
	}
	local = strings.TrimPrefix(local, v1.MCPPrefix)
	if server, _, ok := strings.Cut(local, "__"); ok {
		if found, serr := reg.Get(v1.KindMCPServer, ns, server); serr == nil {
			return v1.Key{Kind: v1.KindTool, Namespace: found.Object.Head().Namespace(), Name: local}, nil
		}
	}
	return v1.Key{}, err
}
