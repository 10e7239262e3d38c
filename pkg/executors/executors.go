// Package executors has the executors of tools, one file for each kind.
//
// An executor receives a tool of the registry with validated arguments, and returns content, parts or an error. It
// knows nothing about policies, schemas or the store; timeouts reach it through the context.
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

// Options are the dependencies of executors. The zero value works.
type Options struct {
	// Env looks up an environment variable. Default: os.LookupEnv.
	Env func(name string) (value string, ok bool)
	// AllowEnv lists the variables that manifests may read, as names or prefixes that end in *, such as
	// CRM_*. Default: all except the program's own (TOOLCTL_*, PG*, OTEL_*), which manifests may never read.
	AllowEnv []string
	// Logger receives messages about attempts and retries, without secrets. Default:
	// nothing is logged.
	Logger *slog.Logger
	// AllowPrivateNetwork permits every tool to reach loopback, link-local, private
	// and metadata addresses, as spec.http.allow_private_network does for one. Default: false.
	AllowPrivateNetwork bool
	// AllowNetwork lists what every tool may reach besides the public internet: CIDR or HOST, each
	// with an optional :PORT, such as 10.0.0.0/8 or db.internal:5432. Default: none.
	AllowNetwork []string
	// Propagate adds the trace headers of ctx (W3C Trace Context: traceparent, tracestate; W3C
	// Baggage: baggage) to a request. Default: no headers are added.
	Propagate func(ctx context.Context, header http.Header)
	// Upstream calls tools of MCP servers. Default: tools with mode mcp have no executor.
	Upstream Upstream
}

func (o Options) environment() envref.Env {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	return envref.Env{Lookup: o.Env, Allow: o.AllowEnv}
}

// Executor executes the tools of one mode; pkg/registry documents its contract.
type Executor = interface {
	Name() string
	Execute(ctx context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error)
}

// All returns one executor of each kind. It is the only list of executors.
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

// perTool caches a value for each tool as long as the tool exists. A reload creates new tools, and the values of the
// old tools are freed with them. A value must not point to its tool, because then neither would be freed.
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
