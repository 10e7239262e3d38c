package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Overrides are descriptions of tools that stand in for those of their manifests.
type Overrides interface {
	// SetOverride adds an override and returns it with its version and time. An empty
	// Description takes back what was there before. It is durable once SetOverride
	// returned, and a line of the audit.
	SetOverride(ctx context.Context, o Override) (Override, error)
	// Overrides returns the overrides that hold now, by namespace and tool.
	Overrides(ctx context.Context) ([]Override, error)
	// OverrideHistory returns every override that a tool ever had, the newest first, those
	// that took one back included. An empty namespace means all.
	OverrideHistory(ctx context.Context, namespace, tool string) ([]Override, error)
	// WatchOverrides yields the overrides that hold whenever one was made or taken back, by
	// any process, the first time at once; it waits for more until ctx ends or the loop is
	// left. An error ends it.
	WatchOverrides(ctx context.Context) iter.Seq2[[]Override, error]
}

// Override is a description that stands in for the one of a tool's manifest, or of the
// MCP server that offers the tool. It outlives every apply.
type Override struct {
	// Version counts all overrides of the store, from 1; a newer one is larger.
	Version int64 `json:"version"`
	// Namespace and Tool name the tool; of an MCP server's tool as server__tool.
	Namespace string `json:"namespace"`
	Tool      string `json:"tool"`
	// Description is the text; empty when the override was taken back.
	Description string `json:"description"`
	// Author says who made it; Time is when, to the microsecond.
	Author string    `json:"by,omitempty"`
	Time   time.Time `json:"time"`
}

// Drifts reports whether the override makes what is served of an object differ from its manifest: a tool
// with another description, or an MCP server that offers the tool.
func (o *Override) Drifts(obj v1.Object) bool {
	if obj.Head().Namespace() != o.Namespace {
		return false
	}
	switch obj := obj.(type) {
	case *v1.Tool:
		return obj.Metadata.Name == o.Tool && obj.Spec.Description != o.Description
	case *v1.MCPServer:
		return strings.HasPrefix(o.Tool, obj.Metadata.Name+"__")
	}
	return false
}

// String names the override by its version and author.
func (o *Override) String() string {
	return fmt.Sprintf("version %d by %s", o.Version, cmp.Or(o.Author, "nobody known"))
}

// Drift describes the effect of the override and how to remove it.
func (o *Override) Drift() string {
	name := o.Tool
	if o.Namespace != v1.DefaultNamespace {
		name = o.Namespace + "/" + name
	}
	return fmt.Sprintf("%s is served in place of the description of %s; 'toolctl override unset %s' removes it", o, name, name)
}

// MaxDescription is the longest description of an [Override], in bytes.
const MaxDescription = 64 << 10

// Complete checks an override that is new, and gives it its time. Backends do it.
func (o Override) Complete(now time.Time) (Override, error) {
	if o.Tool == "" || len(o.Description) > MaxDescription {
		return o, fmt.Errorf("an override needs a tool and a description of at most %d bytes", MaxDescription)
	}
	o.Namespace = cmp.Or(o.Namespace, v1.DefaultNamespace)
	o.Time = time.UnixMicro(now.UnixMicro()).UTC()
	return o, nil
}
