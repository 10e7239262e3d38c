package authoring

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// Serve serves the tools as an MCP server to the client that started the program.
type Serve struct {
	// Config names the folder in its Files, by default the current folder. The environment, the logger and the version are
	// those of its Gateway.
	*action.Config
	In  io.Reader
	Out io.Writer
}

// Run serves until ctx or In ends.
func (s *Serve) Run(ctx context.Context) (err error) {
	dir, err := s.AuthoringFolder()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return &action.UsageError{Err: fmt.Errorf("-f: %w", err)}
	}
	defer root.Close()
	check, err := s.Checking(action.Reading{})
	if err != nil {
		return err
	}
	g, err := gateway.Open(ctx, gateway.Options{
		Objects: Tools(Options{Root: root, Check: check, LockFile: s.Gateway.LockFile}), Env: s.Gateway.Env, Logger: s.Gateway.Logger,
		Version: s.Gateway.Version, Server: server.Options{Name: "toolctl-authoring", Instructions: Instructions},
		Limits: admission.Limits{MaxCalls: 256, MaxResultBytes: 1 << 20},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return g.ServeStdio(ctx, s.In, s.Out)
}
