package action

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/fileset"
	"toolctl.dev/toolctl/internal/mcpclients"
	"toolctl.dev/toolctl/internal/netaddr"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/permit"
	"toolctl.dev/toolctl/pkg/store"
)

// Client makes the configuration that connects an MCP client to 'toolctl serve'.
type Client struct {
	*Config
	// Client is one of [ClientNames].
	Client string
	// Name is the name of the server in the configuration. Default: toolctl, with the name of the toolset if there is one.
	Name string
	// Toolset is the toolset to connect to. Default: all content.
	Toolset string
	// URL is the address of a running server. Default: the client starts one.
	URL string
	// TokenEnv is the variable with the token for URL, or "" if no token is needed. Default: "" for a loopback address,
	// otherwise TOOLCTL_TOKEN.
	TokenEnv *string
	// Authoring starts 'toolctl mcp authoring' instead.
	Authoring bool
	// Write merges the configuration into the client's file: see [ClientEntry.Write].
	Write bool
}

// ClientNames returns the names of the supported clients.
func ClientNames() []string { return slices.Sorted(maps.Keys(mcpclients.All)) }

// ClientEntry is the configuration of a client.
type ClientEntry struct {
	// Client is the title of the client, and File the path of its configuration.
	Client, File string
	// Missing are the variables whose values the user must insert into Text.
	Missing []string
	// Text is the new content of the file. Before is its present content if the file is to be written.
	Text, Before []byte
	// Difference shows the lines that change, without the values of variables.
	Difference string

	mode, modeBefore fs.FileMode // of the file; 0 if the file did not exist
}

const defaultTokenEnv = "TOOLCTL_TOKEN"

var clientServerName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// Run makes the configuration and writes nothing.
func (c *Client) Run(ctx context.Context) (*ClientEntry, error) {
	client, ok := mcpclients.All[c.Client]
	if !ok {
		if near := v1.Nearest(c.Client, ClientNames()); near != "" {
			return nil, usagef("unknown client %q; did you mean %q?", c.Client, near)
		}
		return nil, usagef("unknown client %q: expected one of %s", c.Client, strings.Join(ClientNames(), ", "))
	}
	name := c.Name
	if name == "" {
		if name = "toolctl"; c.Authoring {
			name = "toolctl-authoring"
		}
		if c.Toolset != "" {
			name += "-" + strings.ReplaceAll(c.Toolset, ".", "-")
		}
	}
	if !clientServerName.MatchString(name) {
		return nil, usagef("--name %q: expected letters, digits, - and _", name)
	}
	s, err := c.server(ctx)
	if err != nil {
		return nil, err
	}
	s.Name = name
	if s.URL != "" && client.StdioOnly {
		return nil, usagef("%s starts its servers itself: leave --url out, or add the address under Settings, Connectors", client.Title)
	}
	e := &ClientEntry{Client: client.Title, mode: 0o644}
	if e.File, err = client.Path(); err != nil {
		return nil, err
	}
	if !c.Write {
		if client.Literal {
			e.Missing = s.Vars
		}
		e.Text, err = client.Merge(nil, name, client.Entry(s, nil), s)
		return e, err
	}
	var values func(string) (string, bool)
	hidden := redact.New(nil)
	if client.Literal {
		values = c.env
		for _, v := range s.Vars {
			value, ok := c.env(v)
			if !ok || value == "" {
				return nil, usagef("%s has no syntax for variables, so their values are written into its file: set %s", client.Title, v)
			}
			hidden.Add(value)
		}
	}
	if err := e.read(); err != nil {
		return nil, err
	}
	if client.Literal && len(s.Vars) > 0 {
		e.mode = 0o600
	}
	if e.Text, err = client.Merge(e.Before, name, client.Entry(s, values), s); err != nil {
		return nil, usagef("%s: %w", e.File, err)
	}
	e.Difference = hidden.Values(lineDiff(string(e.Before), string(e.Text)))
	return e, nil
}

// server returns the description of the server that the client needs.
func (c *Client) server(ctx context.Context) (s mcpclients.Server, err error) {
	switch {
	case c.Authoring && c.URL != "":
		return s, usagef("--authoring and --url cannot be used together: the client starts 'toolctl mcp authoring' itself")
	case c.Authoring && c.Toolset != "":
		return s, usagef("--authoring and --toolset cannot be used together: the tools for manifests are in no toolset")
	case c.Toolset != "" && !v1.IsName(c.Toolset):
		return s, usagef("--toolset %q: expected the name of a toolset", c.Toolset)
	case c.URL != "":
		return c.remote()
	case c.Authoring:
		dir, err := c.AuthoringFolder()
		if err != nil {
			return s, err
		}
		only := *c.Config
		only.Files, only.DSN, c.Config = []string{dir}, "", &only
		return c.command()
	}
	if s, err = c.command(); err == nil {
		s.Vars, err = c.variables(ctx)
	}
	return s, err
}

// remote returns a running server.
func (c *Client) remote() (s mcpclients.Server, err error) {
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return s, usagef("--url %q: expected an address such as http://127.0.0.1:8080/mcp", c.URL)
	}
	s.URL = c.URL
	if c.Toolset != "" {
		at := strings.TrimSuffix(c.URL, "/")
		if !strings.HasSuffix(u.Path, "/mcp") && !strings.HasSuffix(u.Path, "/mcp/") || u.RawQuery+u.Fragment != "" {
			return s, usagef("--url %q with --toolset: expected an address that ends in /mcp", c.URL)
		}
		s.URL = at + "/" + c.Toolset
	}
	token := ""
	if c.TokenEnv != nil {
		token = *c.TokenEnv
	} else if !netaddr.IsLoopbackHost(u.Hostname()) {
		token = defaultTokenEnv
	}
	if token != "" && !envref.IsName(token) {
		return s, usagef("--token-env %q: expected the name of a variable", token)
	}
	if s.Token = token; token != "" {
		s.Vars = []string{token}
	}
	return s, nil
}

// AuthoringFolder returns the one folder in Files, or the current folder without Files.
func (c *Config) AuthoringFolder() (string, error) {
	switch {
	case len(c.Files) > 1 || len(c.Overlays) > 0:
		return "", usagef("expected one folder with -f: name the folder that holds all manifests, without -k")
	case len(c.Files) == 0:
		return ".", nil
	}
	dir := c.Files[0]
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", usagef("-f %s: expected an existing folder", dir)
	}
	return dir, nil
}

// variables returns the environment variables that the manifests need: those without a fallback, and those with a
// fallback that are set here.
func (c *Client) variables(ctx context.Context) ([]string, error) {
	var objects []v1.Object
	if len(c.Files) > 0 {
		if err := Regular(c.Files); err != nil {
			return nil, err
		}
		set, err := manifest.Load(ctx, c.Files, c.manifests())
		if err != nil {
			return nil, &UsageError{err}
		}
		objects = set.Objects
	} else if err := c.withStore(ctx, false, func(s store.Store) (err error) {
		objects, err = Objects(ctx, s, store.ListOptions{})
		return err
	}); err != nil {
		return nil, err
	}
	if c.Toolset != "" && !slices.ContainsFunc(objects, func(o v1.Object) bool { return c.isToolset(o.Head()) }) {
		return nil, c.noToolset(objects)
	}
	names := map[string]bool{}
	record := func(name string) (string, bool) {
		if value, ok := c.env(name); ok && value != "" && name != "PATH" && name != "HOME" {
			names[name] = true
		}
		return "", false
	}
	for _, f := range Unset(objects, record) {
		names[strings.TrimPrefix(f.Expected, "environment variable ")] = true
	}
	return slices.Sorted(maps.Keys(names)), nil
}

// isToolset reports whether an object may be the toolset.
func (c *Client) isToolset(h *v1.Header) bool {
	name := h.Metadata.Name
	return h.Kind == v1.KindToolset && (c.Namespace == "" || h.Namespace() == c.Namespace) && (c.Toolset == name || c.Toolset == h.Namespace()+"."+name)
}

// noToolset returns the error for a toolset that does not exist.
func (c *Client) noToolset(objects []v1.Object) error {
	var names []string
	for _, o := range objects {
		if o.Head().Kind == v1.KindToolset {
			names = append(names, o.Head().Metadata.Name)
		}
	}
	missing := &v1.NotFoundError{Kind: v1.KindToolset, Name: c.Toolset}
	if near := v1.Nearest(c.Toolset, names); near != "" {
		missing.Candidates = []string{near}
	}
	return missing
}

// command returns the command that a client starts. Its paths are absolute, because clients start programs in a
// folder of their own.
func (c *Client) command() (mcpclients.Server, error) {
	program, err := os.Executable()
	if err != nil {
		return mcpclients.Server{}, err
	}
	e := mcpclients.Server{Command: program, Args: []string{"serve"}}
	if c.Authoring {
		e.Args = []string{"mcp", "authoring"}
	}
	paths := [][2]string{}
	for _, path := range c.Files {
		if path == "-" {
			return e, usagef("-f - cannot be part of a configuration: name files or folders")
		}
		flag := "-f"
		if slices.Contains(c.Overlays, path) {
			flag = "-k"
		}
		paths = append(paths, [2]string{flag, path})
	}
	if c.DSN != "" || len(c.Files) == 0 {
		dsn, err := c.StoreDSN(false)
		if err != nil {
			return e, err
		}
		if _, secret := store.Shown(dsn); secret {
			return e, usagef("the store URL contains a password, which would be written to the file: remove it, and use PGPASSWORD or ~/.pgpass")
		}
		paths = append(paths, [2]string{"--store", dsn})
	}
	if c.Gateway.LockFile != "" {
		paths = append(paths, [2]string{"--lock-file", c.Gateway.LockFile})
	}
	for _, p := range paths {
		if flag, path := p[0], p[1]; flag == "--store" && strings.Contains(path, ":") { // the store is an address, not a path
			e.Args = append(e.Args, flag, path)
		} else if path, err = filepath.Abs(path); err != nil {
			return e, err
		} else {
			e.Args = append(e.Args, flag, path)
		}
	}
	if c.Gateway.Locked {
		e.Args = append(e.Args, "--locked")
	}
	if c.Namespace != "" {
		e.Args = append(e.Args, "-n", c.Namespace)
	}
	if c.Toolset != "" {
		e.Args = append(e.Args, "--toolset", c.Toolset)
	}
	allowed, err := c.allowed()
	e.Args = append(e.Args, allowed...)
	return e, err
}

// allowed returns the --allow flags of the command.
func (c *Client) allowed() (args []string, err error) {
	get := c.reaching
	if c.Authoring { // it reaches no network
		get = c.permitted
	}
	o, err := get()
	if err != nil {
		return nil, err
	}
	if o.Permit != nil {
		for _, p := range permit.Flags() {
			if v := p.Value(o.Permit); v.Given() {
				args = append(args, "--"+p.Name+"="+v.String())
			}
		}
	}
	if o.AllowPrivateNetwork {
		args = append(args, "--"+permit.PrivateNetworkFlag)
	}
	if o.AllowEnv != nil {
		args = append(args, "--allow-env="+strings.Join(o.AllowEnv, ","))
	}
	if !c.Authoring {
		for _, where := range o.AllowNetwork {
			args = append(args, "--allow-network", where)
		}
	}
	return args, nil
}

// read reads the present file of the client.
func (e *ClientEntry) read() error {
	const most = 1 << 20 // the reader of comments recurses as deep as the file is nested
	if real, err := filepath.EvalSymlinks(e.File); err == nil {
		e.File = real
	}
	info, err := os.Stat(e.File)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return &UsageError{err}
	case !info.Mode().IsRegular():
		return usagef("%s is not a regular file", e.File)
	}
	e.mode, e.modeBefore = info.Mode().Perm(), info.Mode().Perm()
	if e.Before, err = regular.ReadUpTo(e.File, most); err != nil {
		return &UsageError{err}
	}
	if len(e.Before) > most {
		return usagef("%s is larger than %d bytes", e.File, most)
	}
	return nil
}

// Changes reports whether writing changes the file.
func (e *ClientEntry) Changes() bool { return !bytes.Equal(e.Before, e.Text) }

// Write writes the file, and keeps the previous one as FILE.bak.
func (e *ClientEntry) Write() error {
	if err := os.MkdirAll(filepath.Dir(e.File), 0o755); err != nil {
		return err
	}
	if e.modeBefore != 0 {
		if err := fileset.Replace(e.File+".bak", e.Before, e.modeBefore&e.mode); err != nil {
			return err
		}
	}
	return fileset.Replace(e.File, e.Text, e.mode)
}

// lineDiff returns the lines in which two texts differ: those between their common beginning and their common
// end.
func lineDiff(from, to string) string {
	a, b := strings.SplitAfter(from, "\n"), strings.SplitAfter(to, "\n")
	start := 0
	for start < len(a) && start < len(b) && a[start] == b[start] {
		start++
	}
	endA, endB := len(a), len(b)
	for endA > start && endB > start && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	var out strings.Builder
	show := func(sign string, lines []string) {
		for _, l := range lines {
			if l != "" {
				out.WriteString(sign + strings.TrimSuffix(l, "\n") + "\n")
			}
		}
	}
	show("- ", a[start:endA])
	show("+ ", b[start:endB])
	return out.String()
}
