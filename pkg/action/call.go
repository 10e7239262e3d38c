package action

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

// Call calls one tool, or reports what a call would do.
type Call struct {
	*Config
	// Call names the tool and the caller. Its Args are replaced by Arguments, and its Namespace by that of the Config.
	v1.Call
	Arguments Arguments
	// Save is a folder for the binary parts of the result. Default: they are not saved.
	Save string
	// Asker decides on calls that need approval. Default: such calls end pending.
	Asker registry.Asker
}

// Called is the result of a [Call].
type Called struct {
	v1.Result
	// Saved are the files that were written.
	Saved []SavedPart
	// Stored reports whether there is a store, which keeps a pending call.
	Stored bool
}

// Run makes the call. Once the tool is found, there is a result even if there is an error.
func (c *Call) Run(ctx context.Context) (called *Called, err error) {
	if c.Timeout < 0 {
		return nil, usagef("--timeout %s: expected a time above 0", c.Timeout)
	}
	err = c.prepared(ctx, func(w *Workspace, call v1.Call) error {
		if c.Asker != nil {
			ctx = registry.WithAsker(ctx, c.Asker)
		}
		var dir *saveDir
		if c.Save != "" {
			if dir, err = openSaveDir(c.Save); err != nil {
				return err
			}
			defer dir.Close()
		}
		called = &Called{Stored: w.Store != nil}
		called.Result, err = w.Registry.Execute(ctx, call)
		if dir != nil && err == nil && called.Status == v1.StatusComplete {
			called.Saved, err = dir.save(called.Result)
		}
		return err
	})
	return called, err
}

// Plan returns what the call would do, without making it.
func (c *Call) Plan(ctx context.Context) (plan registry.Plan, err error) {
	err = c.prepared(ctx, func(w *Workspace, call v1.Call) error {
		plan, err = w.Registry.Plan(ctx, call)
		return err
	})
	return plan, err
}

// Explain returns the decision of the policies on the call, without making it. It validates arguments only if there are any.
func (c *Call) Explain(ctx context.Context) (ex policy.Explanation, err error) {
	err = c.prepared(ctx, func(w *Workspace, call v1.Call) error {
		if len(c.Arguments.Flags) == 0 && c.Arguments.File == "" {
			call.Args = nil
		}
		ex, err = w.Registry.ExplainPolicy(ctx, call)
		return err
	})
	return ex, err
}

// prepared opens the workspace, and resolves the tool and the arguments of the call.
func (c *Call) prepared(ctx context.Context, do func(*Workspace, v1.Call) error) error {
	args, pairs, err := c.Arguments.Object(c.Config)
	if err != nil {
		return err
	}
	call := c.Call
	call.Args, call.Namespace = args, c.Config.Namespace
	return c.within(ctx, func(w *Workspace) error {
		call.Tool = toolName(w.Registry, call.Tool)
		named := call.Tool
		call, err := w.Find(ctx, call)
		if err != nil {
			return w.OtherKind(v1.KindTool, c.Config.Namespace, named, err)
		}
		if it, err := w.Registry.Lookup(call.Namespace, call.Tool); err == nil {
			if call.Args, err = nestedArgs(it.Tool(), call.Args, pairs); err != nil {
				return err
			}
			c.warn(misspelt(it.Tool(), call.Args)...)
		}
		return w.OtherKind(v1.KindTool, c.Config.Namespace, named, unwritten(do(w, call), pairs))
	}, func(g *gateway.Options) {
		if len(c.Files) == 0 {
			g.Source = gateway.StoredTool(g.Store, c.Config.Namespace, c.Tool)
		}
	})
}

// unwritten adds to an error about arguments how to write an argument that was given as text.
func unwritten(err error, pairs map[string]json.RawMessage) error {
	if invalid, ok := errors.AsType[*v1.ValidationError](err); ok && invalid.Type == v1.ArgsInvalid {
		if how := howWritten(invalid, pairs); how != "" {
			return fmt.Errorf("%w: %s", err, how)
		}
	}
	return err
}

// toolName also accepts tool/NAME, which 'toolctl list' prints, unless a namespace has the name of the kind.
func toolName(reg *registry.Registry, name string) string {
	word, rest, ok := strings.Cut(name, "/")
	if kind, known := v1.ParseKind(word); !ok || !known || kind != v1.KindTool {
		return name
	}
	if p, err := reg.List(registry.Query{Namespace: word, Limit: 1}); err != nil || p.Total > 0 {
		return name
	}
	return rest
}
