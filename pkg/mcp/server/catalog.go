package server

import (
	"context"
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
)

// Catalog is what a [Server] serves. All methods may be called by many goroutines
// at once.
type Catalog interface {
	// Contents returns what is known now. It does not wait.
	Contents() Contents
	// Settle returns when everything that is still being found out has been, such as
	// the tools of servers that start, or when ctx ends. With the name of a tool, as clients
	// know it, it waits for what may have that tool. It must return soon in any case.
	Settle(ctx context.Context, tool string)
	// Call carries out a call of the tool whose Offer.Name is call.Tool. The errors are
	// those of api/v1, and a result may come with an error. progress takes reports on the
	// call, one at a time and none after Call returned; it is nil when nobody asked.
	Call(ctx context.Context, call v1.Call, progress func(mcp.Progress)) (v1.Result, error)
	// GetPrompt fills in a prompt of its owner: a Prompt manifest, or an MCP server, which
	// is asked by its own name. Arguments that do not fit are a [v1.ValidationError].
	GetPrompt(ctx context.Context, owner v1.Key, name string, args map[string]string) (mcp.PromptResult, error)
	// ReadResource reads a resource of its owner: a manifest, or an MCP server.
	ReadResource(ctx context.Context, owner v1.Key, uri string) ([]v1.Part, error)
	// Complete returns the values that an argument may take, of a prompt or of a template.
	Complete(ctx context.Context, owner v1.Key, r mcp.CompletionRequest) (mcp.Completion, error)
	// Subscribe and Unsubscribe ask an MCP server to say when a resource changes, which
	// [Server.ResourceUpdated] is then told. Each Subscribe is taken back once.
	Subscribe(ctx context.Context, server v1.Key, uri string) error
	Unsubscribe(ctx context.Context, server v1.Key, uri string) error
	// RootsChanged, SetLogLevel and EndPeer tell the MCP servers of a client, by the key of
	// its [mcp.Peer], that its roots changed, which log messages it wants, and that it is gone.
	RootsChanged(peer string)
	SetLogLevel(peer, level string)
	EndPeer(peer string)
}

// Contents is what a [Catalog] has at one time.
type Contents struct {
	Tools []Offer
	// Servers are the MCP servers whose prompts and resources are served.
	Servers []Upstream
	// Prompts and Resources are those of manifests.
	Prompts   []Prompt
	Resources []Resource
}

// Offer is one tool of a [Catalog].
//
// Clients know it by metadata.name, in which every character that is no letter,
// digit, "_" or "-" becomes "_". Tools whose names are then equal go by
// namespace__name, all of them; a name that is still not the only one, or is longer
// than 64, is cut and ends in eight digits of a hash of Name. A tool whose
// metadata.name is legal as it is keeps it against those that had to be changed.
type Offer struct {
	// Tool is the tool as a manifest.
	Tool *v1.Tool
	// Name is what [Catalog.Call] takes for this tool and no other.
	Name string
	// Definition is the tool as an MCP server defined it, for what a manifest has no field
	// for, such as icons and _meta; empty for other tools.
	Definition json.RawMessage
	// Hidden tools are not listed: nobody can call them now. A client that knows one is
	// told why by Catalog.Call.
	Hidden bool
	// Audience says for whom the tool is listed when it is not hidden; nil is everyone.
	Audience Audience
}

// Upstream is one server of a [Catalog]. Its prompts are named server__prompt, with
// the rules of [Offer] for names that are equal; its resources keep their addresses,
// and of two servers that list the same address the first by namespace and name has it.
type Upstream struct {
	mcp.ServerState
	// Bare prompts keep the server's own names.
	Bare bool
}

// Prompt is one prompt of a [Catalog]. Clients know it by its name, with the rules
// of [Offer] for names that are equal.
type Prompt struct {
	// Key is of the kind Prompt.
	Key v1.Key
	mcp.Prompt
}

// Resource is one resource of a [Catalog]. An MCP server that lists its address
// too does not get it.
type Resource struct {
	// Owner is the manifest that declares it; not an MCPServer.
	Owner v1.Key
	mcp.Resource
}
