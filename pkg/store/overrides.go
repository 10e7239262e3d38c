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

// Overrides are tool descriptions that replace those in the manifests.
type Overrides interface {
	// SetOverride adds an override and returns it with its version and time. An empty Description removes the present
	// override. When SetOverride returns, the override is durable and has an audit record.
	SetOverride(ctx context.Context, o Override) (Override, error)
	// Overrides returns the current overrides, by namespace and tool.
	Overrides(ctx context.Context) ([]Override, error)
	// OverrideHistory returns every override that a tool ever had, newest first, including removals. An empty namespace
	// means all.
	OverrideHistory(ctx context.Context, namespace, tool string) ([]Override, error)
	// WatchOverrides yields the current overrides at once, and again after each change by any process, until ctx ends
	// or the loop ends. An error ends it.
	WatchOverrides(ctx context.Context) iter.Seq2[[]Override, error]
}

// Override is a description that replaces the one in a tool's manifest, or from the MCP server that offers the tool. An
// apply does not change it.
type Override struct {
	// Version numbers all overrides of the store, from 1; newer ones are larger.
	Version int64 `json:"version"`
	// Namespace and Tool name the tool; a tool of an MCP server is named server__tool.
	Namespace string `json:"namespace"`
	Tool      string `json:"tool"`
	// Description is the text; it is empty for a removal.
	Description string `json:"description"`
	// Author is the user who set it; Time is in microseconds.
	Author string    `json:"by,omitempty"`
	Time   time.Time `json:"time"`
}

// Drifts reports whether the override makes a served object differ from its manifest: a tool with another description,
// or an MCP server that offers the tool.
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

// String describes the override by its version and author.
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

// MaxDescription is the maximum length of the description of an [Override], in bytes.
const MaxDescription = 64 << 10

// Complete checks a new override and sets its time. Backends call it.
func (o Override) Complete(now time.Time) (Override, error) {
	if o.Tool == "" || len(o.Description) > MaxDescription {
		return o, fmt.Errorf("an override needs a tool and a description of at most %d bytes", MaxDescription)
	}
	o.Namespace = cmp.Or(o.Namespace, v1.DefaultNamespace)
	o.Time = time.UnixMicro(now.UnixMicro()).UTC()
	return o, nil
}
