package store

import (
	"cmp"
	"context"
	"fmt"
	"iter"
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
