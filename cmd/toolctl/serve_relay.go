package main

import (
	"context"

	v1 "toolctl.dev/toolctl/api/v1"
)

// onUpdate sets what is called with the address of a resource that changed.
func (u *upstream) onUpdate(f func(uri string)) { u.updated.Store(&f) }

// onListChanged sets what is called with the list that a server says has changed.
func (u *upstream) onListChanged(f func(list string)) { u.listed.Store(&f) }

func (c *catalog) Subscribe(ctx context.Context, server v1.Key, uri string) error {
	return c.w.mcp.Subscribe(ctx, server, uri)
}

func (c *catalog) Unsubscribe(ctx context.Context, server v1.Key, uri string) error {
	return c.w.mcp.Unsubscribe(ctx, server, uri)
}

func (c *catalog) RootsChanged(peer string) { c.w.mcp.RootsChanged(peer) }

func (c *catalog) SetLogLevel(peer, level string) { c.w.mcp.SetLogLevel(peer, level) }

func (c *catalog) EndPeer(peer string) { c.w.mcp.EndPeer(peer) }
