package registry

import (
	"context"
	"encoding/json"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Executor executes the calls of one kind of tool. Execute must be safe for concurrent use and must return soon after
// ctx ends. The arguments have been coerced and validated, and must not be changed. For a tool that reports failure,
// Execute returns a Result with Status "failed" and an error; for its own failures it returns only an error. An
// executor that holds connections also implements [io.Closer].
//
// It is an alias of a plain interface, so that implementations need not import this package.
type Executor = interface {
	// Name returns the executor's name, such as "mock", "http" or "mcp".
	Name() string
	// Execute runs the tool once. It fills Content, Parts, Status and Attempts.
	Execute(ctx context.Context, tool *v1.Tool, args json.RawMessage) (v1.Result, error)
}
