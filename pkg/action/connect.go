package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/internal/mcpconfig"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/importer"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/store"
)

// connectedSet is the set of the servers that were connected by hand. No apply prunes it.
const connectedSet = "mcp-connect"

const notServers = "-f does not apply here: 'mcp connect' adds servers to the store"

// ServerWords describe an MCP server as a person does: a command with arguments, or a URL.
type ServerWords struct {
	Words []string
	// Name is the name of the manifest. Default: the name of the package, the program or the host.
	Name string
	// Transport is the transport of a URL. Default: streamable_http.
	Transport string
	// Env are variables of the command as NAME=VALUE, or NAME to pass on the present value.
	Env []string
}

// manifest returns the manifest of the server, and notes on the secrets that variables replace in it.
func (s *ServerWords) manifest() (*v1.MCPServer, []string, error) {
	if s.Name != "" && !v1.IsName(s.Name) {
		return nil, nil, usagef("--name %q is not a legal name: expected lower-case letters, digits, '-', '_' and '.'", s.Name)
	}
	server, notes, err := mcpconfig.Server(s.Name, s.Words)
	if err != nil {
		return nil, nil, &InvalidError{err}
	}
	server.Spec.Transport = s.Transport
	for _, e := range s.Env {
		name, value, given := strings.Cut(e, "=")
		if !given {
			value = "${" + name + "}"
		}
		if server.Spec.Env == nil {
			server.Spec.Env = map[string]string{}
		}
		server.Spec.Env[name] = value
	}
	if errs := v1.Errors(server.Validate()); len(errs) > 0 {
		return nil, nil, usagef("%s", errs[0].Message)
	}
	return server, notes, nil
}

// asked returns the server with the original values that the person gave. The manifest may have variables in their
// place.
func (s *ServerWords) asked(server *v1.MCPServer) *v1.MCPServer {
	asked := *server
	if asked.Spec.Command == "" {
		asked.Spec.URL = s.Words[0]
		return &asked
	}
	asked.Spec.Args = nil
	for _, w := range s.Words[1:] {
		asked.Spec.Args = append(asked.Spec.Args, strings.ReplaceAll(w, "${", "$${"))
	}
	return &asked
}

// AskServer queries the tools, prompts and resources of one MCP server.
func (c *Config) AskServer(ctx context.Context, s *v1.MCPServer) (_ mcp.ServerState, err error) {
	o, err := c.reaching()
	if err != nil {
		return mcp.ServerState{}, err
	}
	o.Objects = []v1.Object{s}
	g, err := gateway.Open(ctx, o)
	if err != nil {
		return mcp.ServerState{}, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	return g.Discover(ctx, s.Key())[0], nil
}

// offered returns the usable tools of an MCP server, and notes on problems of its tools. left says what happens to tools
// that are not usable.
func (c *Config) offered(ctx context.Context, s *v1.MCPServer, left string) (usable []mcp.DiscoveredTool, notes []string, err error) {
	state, err := c.AskServer(ctx, s)
	switch {
	case err != nil:
		return nil, nil, err
	case !state.Ready && ctx.Err() != nil:
		return nil, nil, ctx.Err()
	case !state.Ready:
		return nil, nil, state.Failure()
	}
	for _, t := range state.Tools {
		if t.Problem != "" {
			notes = append(notes, fmt.Sprintf("tool %q %s: %s", inspect.Show(t.Remote), left, t.Problem))
			continue
		}
		usable = append(usable, t)
		for _, f := range inspect.Tool(t.Tool) {
			notes = append(notes, fmt.Sprintf("%s: %s: %s", ObjectName(t.Tool.Key()), v1.FieldPath(f.Path), f.Message))
		}
	}
	return usable, notes, nil
}

// ImportServer makes the manifest of one MCP server, and of its tools.
type ImportServer struct {
	ServerWords
	// Tools queries the server for its tools. Otherwise toolctl does not start the server.
	Tools bool
}

// Read makes the manifests.
func (i *ImportServer) Read(ctx context.Context, c *Config, _ string) (*importer.Result, error) {
	server, notes, err := i.manifest()
	if err != nil {
		return nil, err
	}
	r := imported(notes, server)
	if !i.Tools {
		return r, nil
	}
	offered, notes, err := c.offered(ctx, i.asked(server), "was left out")
	if err != nil {
		return r, err
	}
	r.Warn(notes...)
	taken := map[string]bool{server.Metadata.Name: true}
	for _, found := range offered {
		t := v1.NewObject(v1.KindTool).(*v1.Tool)
		t.Spec = found.Tool.Spec
		t.Metadata.Name = freeName(server.Metadata.Name+"__"+manifest.Name(found.Remote), taken)
		r.Manifests = append(r.Manifests, importer.Manifest{Origin: found.Remote, Object: t})
	}
	return r, nil
}

// freeName returns a name that no other manifest has, and reserves it.
func freeName(name string, taken map[string]bool) string {
	free := name
	for i := 2; taken[free]; i++ {
		free = fmt.Sprintf("%s-%d", name, i)
	}
	taken[free] = true
	return free
}

// Connect adds an MCP server to the store.
type Connect struct {
	*Config
	ServerWords
	// Unasked adds the server without querying it.
	Unasked bool
	// Replace replaces a server with the same name.
	Replace bool
}

// Connected is the result of a [Connect].
type Connected struct {
	Server v1.Key
	// Tools is the number of usable tools, or -1 if the server was not queried.
	Tools int
	// Notes name the variables that replace secrets, and problems of the tools.
	Notes []string
}

// Run queries the server and adds it. The result has Notes even if that fails.
func (c *Connect) Run(ctx context.Context) (done Connected, err error) {
	server, notes, err := c.manifest()
	if err != nil {
		return done, err
	}
	if server.Metadata.Namespace = c.Namespace; c.Namespace != "" && !v1.IsName(c.Namespace) {
		return done, usagef("-n %q is not a legal name of a namespace", c.Namespace)
	}
	done = Connected{server.Key(), -1, notes}
	if !c.Unasked {
		tools, notes, err := c.offered(ctx, server, "cannot be used")
		if err != nil {
			return done, err
		}
		done.Tools, done.Notes = len(tools), append(done.Notes, notes...)
	}
	o := store.ApplyOptions{Set: connectedSet, By: c.By, Command: "mcp connect"}
	if !c.Replace {
		o.Expect = map[v1.Key]int64{server.Key(): 0}
	}
	if err := c.noFiles(notServers); err != nil {
		return done, err
	}
	return done, c.withStore(ctx, true, func(s store.Store) error {
		_, err := s.Apply(ctx, []v1.Object{server}, o)
		if _, ok := errors.AsType[*store.ConflictError](err); ok {
			return usagef("server %q already exists: choose another --name or pass --replace", server.Metadata.Name)
		}
		return err
	})
}

// Disconnect removes MCP servers that were added by [Connect].
type Disconnect struct {
	*Config
	Names []string
}

// Run disconnects all named servers, or fails and changes nothing.
func (d *Disconnect) Run(ctx context.Context) (keys []v1.Key, err error) {
	err = d.withKept(ctx, notServers, func(s store.Store) error {
		for _, name := range d.Names {
			key := d.keyNamed(v1.KindMCPServer, name)
			rec, err := s.Get(ctx, key)
			if err != nil {
				return err
			}
			if rec.Set != connectedSet {
				return usagef("%[1]s came with 'toolctl apply', not with connect: remove its manifest, or use 'toolctl delete %[1]s'", ObjectName(key))
			}
			keys = append(keys, key)
		}
		_, err := s.Delete(ctx, keys, store.DeleteOptions{By: d.By, Command: "mcp disconnect"})
		return err
	})
	return keys, err
}

// Connections lists the MCP servers in the store without starting them.
type Connections struct{ *Config }

// Connection is an MCP server of the store.
type Connection struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
	// Source is "connect" or "apply".
	Source string `json:"source"`
	// Transport is stdio, streamable_http or sse, and Address the program or the URL without secrets.
	Transport string `json:"transport"`
	Address   string `json:"address"`
}

// Run reads the store.
func (c *Connections) Run(ctx context.Context) (all []Connection, err error) {
	all = []Connection{}
	err = c.withKept(ctx, notServers, func(s store.Store) error {
		list, err := s.List(ctx, store.ListOptions{Kind: v1.KindMCPServer, Namespace: c.Namespace})
		for _, r := range list.Records {
			m, ok := r.Object.(*v1.MCPServer)
			if !ok {
				continue
			}
			one := Connection{Name: m.Metadata.Name, Namespace: m.Namespace(), Source: "apply", Transport: "stdio", Address: m.Spec.Command}
			if r.Set == connectedSet {
				one.Source = "connect"
			}
			if m.Spec.URL != "" {
				one.Transport, one.Address = cmp.Or(m.Spec.Transport, v1.TransportStreamableHTTP), redact.URL(m.Spec.URL)
			}
			all = append(all, one)
		}
		return err
	})
	return all, err
}
