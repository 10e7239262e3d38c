// Package executors does the work of tools: one file for each kind of executor.
//
// An executor takes a tool of the registry and checked arguments, and gives back
// content, parts or an error. It knows nothing of policies, schemas or the store;
// timeouts come to it as the context.
package executors

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"runtime"
	"sync"
	"weak"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/envref"
)

// Options holds what executors need from outside. The zero value works.
type Options struct {
	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// AllowEnv lists the variables that manifests may read, by names and by prefixes that end in *.
	// Example: CRM_*. Default: all but the program's own (TOOLCTL_*, PG*, OTEL_*), which they never may.
	AllowEnv []string
	// Logger takes what a person may want to know of attempts and retries; it is
	// given no secrets. Default: nothing is logged.
	Logger *slog.Logger
	// AllowPrivateNetwork permits every tool to reach loopback, link-local, private
	// and metadata addresses, as spec.http.allow_private_network does for one. Default: false.
	AllowPrivateNetwork bool
	// AllowNetwork permits every tool to reach these besides the public internet: CIDR or
	// HOST, each with :PORT or without. Example: 10.0.0.0/8, db.internal:5432. Default: none.
	AllowNetwork []string
	// Propagate adds the headers of the trace that ctx carries (W3C Trace Context: traceparent,
	// tracestate; W3C Baggage: baggage) to a request. Default: none are added.
	Propagate func(ctx context.Context, header http.Header)
	// Upstream calls tools of MCP servers. Default: tools of mode mcp have no executor.
	Upstream Upstream
}

func (o Options) environment() envref.Env {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	return envref.Env{Lookup: o.Env, Allow: o.AllowEnv}
}

// Executor does the work of one executor kind; pkg/registry says what is expected of it.
type Executor = interface {
	Name() string
	Execute(ctx context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error)
}

// All returns one executor of each kind. It is the only list of them.
func All(o Options) []Executor {
	all := []Executor{
		newMock(),
		NewHTTP(o),
		newCommand(o),
	}
	if o.Upstream != nil {
		all = append(all, mcp{o.Upstream})
	}
	return all
}

// perTool keeps what is made of tools as long as the tools live: a reload brings new tools, and what was made
// of the old ones goes with them. It must not point to its tool, or the tool would never go.
type perTool[T any] struct{ made sync.Map } // weak.Pointer[v1.Tool] -> T

func (p *perTool[T]) of(tool *v1.Tool, prepare func() T) T {
	key := weak.Make(tool)
	made, known := p.made.Load(key)
	if !known {
		if made, known = p.made.LoadOrStore(key, prepare()); !known {
			runtime.AddCleanup(tool, func(key weak.Pointer[v1.Tool]) { p.made.Delete(key) }, key)
		}
	}
	return made.(T)
}
