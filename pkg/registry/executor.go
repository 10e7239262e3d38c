package registry

import (
	"context"
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Executor does the work of one executor kind. Execute may be called by many
// goroutines at once and must return soon after ctx ends. The arguments have
// been coerced and validated, and must not be changed. A tool that reports
// failure is a Result with Status "failed" and an error; what the executor could
// not do is an error alone. An executor that holds connections also implements
// [io.Closer].
//
// It is an alias of a plain interface, so that whoever carries out calls need not
// import this package.
type Executor = interface {
	// Name is the executor's name, such as "mock", "http" or "mcp".
	Name() string
	// Execute runs the tool once. It fills Content, Parts, Status and Attempts.
	Execute(ctx context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error)
}
