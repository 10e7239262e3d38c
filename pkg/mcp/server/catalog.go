package server

import (
	"context"
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// Catalog provides the content of a [Server]. All methods are safe for concurrent use.
type Catalog interface {
	// Contents returns the content known now, without waiting.
	Contents() Contents
	// Settle waits until pending discoveries have finished, such as the tools of servers that are starting, or
	// until ctx ends. With the name of a tool, as clients know it, it waits only for servers that may have that
	// tool. It must always return soon.
	Settle(ctx context.Context, tool string)
	// Call calls the tool whose Offer.Name is call.Tool. The errors are those of api/v1, and a result may come
	// with an error. progress receives reports on the call, one at a time, and only before Call returns; it is
	// nil if the client wants no reports.
	Call(ctx context.Context, call v1.Call, progress func(mcp.Progress)) (v1.Result, error)
	// GetPrompt fills in a prompt of its owner: a Prompt manifest, or an MCP server with its own name for the
	// prompt. Arguments that do not match cause a [v1.ValidationError].
	GetPrompt(ctx context.Context, owner v1.Key, name string, args map[string]string) (mcp.PromptResult, error)
	// ReadResource reads a resource of its owner: a manifest, or an MCP server.
	ReadResource(ctx context.Context, owner v1.Key, uri string) ([]v1.Part, error)
	// Complete returns the possible values for an argument of a prompt or of a template.
	Complete(ctx context.Context, owner v1.Key, r mcp.CompletionRequest) (mcp.Completion, error)
	// Subscribe subscribes to the changes of a resource at an MCP server, which are reported to
	// [Server.ResourceUpdated]. Each Subscribe is undone by one Unsubscribe.
	Subscribe(ctx context.Context, server v1.Key, uri string) error
	Unsubscribe(ctx context.Context, server v1.Key, uri string) error
	// RootsChanged, SetLogLevel and EndPeer notify the MCP servers of a client, identified by the key of its
	// [mcp.Peer], that its roots changed, which log messages it wants, and that it has gone.
	RootsChanged(peer string)
	SetLogLevel(peer, level string)
	EndPeer(peer string)
}

// Contents is the content of a [Catalog] at one time.
type Contents struct {
	Tools []Offer
	// Servers are the MCP servers whose prompts and resources are served.
	Servers []Upstream
	// Prompts and Resources are those of manifests.
	Prompts   []Prompt
	Resources []Resource
	// Toolsets are parts of the content with addresses of their own.
	Toolsets []Toolset
}

// Toolset is a part of the content of a [Catalog] at /mcp/NAME. Its tools and prompts have the same names there as at
// /mcp. Sessions, streams, subscriptions and suspended calls belong to one toolset.
type Toolset struct {
	// Name is the part of the address after /mcp/. "" makes the toolset the content of /mcp, which otherwise is all
	// content.
	Name string
	// Spec says who may use the toolset over HTTP, and what its clients see. Spec.Include and Spec.Exclude have no
	// effect here.
	Spec v1.ToolsetSpec
	// Tools are the tools, by Offer.Name. The value is true for a tool that clients always see.
	Tools map[string]bool
	// Servers, Prompts and Resources are parts of those in [Contents].
	Servers   []Upstream
	Prompts   []Prompt
	Resources []Resource
}

// Offer is one tool of a [Catalog].
//
// Clients know a tool by metadata.name, in which every character except letters, digits, "_" and "-"
// becomes "_". If that makes several names equal, all these tools are named namespace__name. A name that is
// still not unique, or longer than 64 characters, is cut and ends in eight digits of a hash of Name. A tool
// whose metadata.name is valid unchanged keeps it; only the tools with changed names get longer names.
type Offer struct {
	// Tool is the tool as a manifest.
	Tool *v1.Tool
	// Name identifies the tool for [Catalog.Call].
	Name string
	// Definition is the tool as an MCP server defined it. It provides the fields that a manifest lacks, such as
	// icons and _meta. It is empty for other tools.
	Definition json.RawMessage
	// Hidden tools are not listed, because they cannot be called now. A client that knows such a tool gets the
	// reason from Catalog.Call.
	Hidden bool
	// Audience decides who sees the tool in lists, unless it is hidden; nil means everyone.
	Audience Audience
}

// Upstream is one server of a [Catalog]. Its prompts are named server__prompt, with the rules of [Offer]
// for equal names. Its resources keep their addresses; if several servers list the same address, the first
// by namespace and name serves it.
type Upstream struct {
	mcp.ServerState
	// Bare means that prompts keep the server's own names.
	Bare bool
}

// Prompt is one prompt of a [Catalog]. Clients know it by its name, with the rules of [Offer] for equal
// names.
type Prompt struct {
	// Key has the kind Prompt.
	Key v1.Key
	mcp.Prompt
}

// Resource is one resource of a [Catalog]. It takes precedence over an MCP server that lists the same
// address.
type Resource struct {
	// Owner is the manifest that declares the resource; it is not an MCPServer.
	Owner v1.Key
	mcp.Resource
}
