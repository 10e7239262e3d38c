// Package action implements the verbs of toolctl, one in each file. A verb is a small type with its options as fields
// and a Run method, which returns plain data. The command line, the console, the operator, an MCP server for agents
// that write manifests, and Go programs call the verbs.
//
//	c := &action.Config{Files: []string{"manifests/"}}
//	r, err := (&action.Apply{Config: c, Selection: action.Selection{Prune: true}}).Run(ctx)
//
// All verbs share a [Config], which says where manifests and the store are. An error of a verb's options is a
// [UsageError]; those of manifests, policies and tools are the errors of api/v1.
package action

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/overlay"
	"toolctl.dev/toolctl/pkg/permit"
	"toolctl.dev/toolctl/pkg/search/embedding"
)

// Config has the options that all verbs share. The zero value uses the store of the current folder.
type Config struct {
	// Files are the files and folders of manifests; "-" is Stdin. Default: the store.
	Files []string
	// Overlays are the Files that toolctl builds from their kustomization.yaml.
	Overlays []string
	// Unbuilt is called with the folders that have a kustomization.yaml but are read file by file.
	Unbuilt func(folders []string)
	// Stdin is the input for "-" in Files. It is read once.
	Stdin io.Reader
	// DSN names the store, such as state.db or postgres://…. Default: TOOLCTL_STORE, or the store in .toolctl
	// of the current folder or the nearest parent that has one.
	DSN string
	// MaxStoreBytes and MaxStoreConnections limit the store; 0 means its default.
	MaxStoreBytes       int64
	MaxStoreConnections int
	// Namespace is the namespace of objects without a namespace. Default: "default".
	Namespace string
	// By is the name of the author of changes, for revisions and the audit log.
	By string
	// Layout keeps the comments and the order of keys of the manifests.
	Layout bool
	// Gateway has the environment, the permissions and the network access of the manifests. Its Source may
	// replace Files.
	Gateway gateway.Options
	// Permit has the permissions that the flags of a command line give. If it is set, it replaces Permit of Gateway,
	// and variables such as TOOLCTL_ALLOW_EXEC and TOOLCTL_ALLOW_NETWORK replace the flags that are not given.
	Permit *permit.Rules
	// Embeddings is the endpoint of embeddings for searches. Its key comes from [EmbeddingsKeyVariable], and the store of
	// the workspace keeps the vectors. Default: searches need no model.
	Embeddings embedding.Options
	// Opened is called with the open workspace of a verb that needs one. Asked is called with the answers of the MCP
	// servers that the verb queries. Found is called with a tool that an MCP server offers and that the caller of the
	// verb named.
	Opened func(*Workspace)
	Asked  func([]mcp.ServerState)
	Found  func(*v1.Tool)
	// Warned is called with a sentence about a likely mistake.
	Warned func(text string)
}

// UsageError reports options of a verb that contradict each other or name something that does not exist.
type UsageError struct{ Err error }

func (e *UsageError) Error() string { return e.Err.Error() }
func (e *UsageError) Unwrap() error { return e.Err }

// InvalidError reports invalid input other than manifests, such as a file of keys.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }
func (e *InvalidError) Unwrap() error { return e.Err }

func invalidf(format string, args ...any) error { return &InvalidError{fmt.Errorf(format, args...)} }

func usagef(format string, args ...any) error { return &UsageError{fmt.Errorf(format, args...)} }

func (c *Config) env(name string) (string, bool) {
	if c.Gateway.Env == nil {
		return os.LookupEnv(name)
	}
	return c.Gateway.Env(name)
}

// manifests returns the options for reading Files.
func (c *Config) manifests() manifest.Options {
	return manifest.Options{Stdin: c.Stdin, Build: func(ctx context.Context, path string) (*manifest.Built, error) {
		if !slices.Contains(c.Overlays, path) {
			return nil, nil
		}
		return overlay.Build(ctx, path, "")
	}}
}
