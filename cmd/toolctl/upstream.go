package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/telemetry"
)

// upstream is the MCP side of a workspace: the sessions, and the lock that their
// tools are held to.
type upstream struct {
	*mcp.Upstreams
	reg  *registry.Registry
	set  atomic.Pointer[upstreamSet]
	read func([]v1.Object) *upstreamSet // makes the set of objects

	answered  answered
	asking    sync.Mutex                        // held while servers are asked and what they say is published
	published atomic.Pointer[func()]            // see onPublish
	updated   atomic.Pointer[func(uri string)]  // what onUpdate was told
	listed    atomic.Pointer[func(list string)] // what onListChanged was told
}

// upstreamSet is the servers of one set of manifests and what they are held to.
type upstreamSet struct {
	servers map[v1.Key]*v1.MCPServer
	held    map[v1.Key]bool // servers whose tools are held to the lock
	lock    lock.File
	lockErr error // why there is no lock
}

// onPublish sets what is called after the registry was given news of a server.
func (u *upstream) onPublish(f func()) { u.published.Store(&f) }

// notReady returns the servers that did not answer when they were last asked.
func (u *upstream) notReady() []v1.Key {
	var keys []v1.Key
	for _, k := range u.Servers() {
		if s, ok := u.State(k); ok && !s.Ready {
			keys = append(keys, k)
		}
	}
	return keys
}

// usableServers returns the MCPServer manifests without a violation.
func usableServers(objects []v1.Object) []*v1.MCPServer {
	var servers []*v1.MCPServer
	for _, o := range objects {
		if s, ok := o.(*v1.MCPServer); ok && !s.Broken() {
			servers = append(servers, s)
		}
	}
	return servers
}

// newUpstream makes the sessions; nothing is started.
func (a *app) newUpstream(objects []v1.Object) *upstream {
	u := &upstream{answered: answered{by: map[v1.Key]bool{}, more: make(chan struct{})}}
	u.read = func(objects []v1.Object) *upstreamSet {
		set := &upstreamSet{servers: map[v1.Key]*v1.MCPServer{}, held: map[v1.Key]bool{}}
		for _, s := range usableServers(objects) {
			set.servers[s.Key()] = s
			if a.locked || s.Spec.Locked {
				set.held[s.Key()] = true
			}
		}
		if len(set.held) > 0 {
			set.lock, set.lockErr = a.readLock()
		}
		return set
	}
	u.set.Store(u.read(objects))
	o := a.mcpOptions(func(k v1.Key) {
		if s, ok := u.State(k); ok {
			u.publish(s)
			if f := u.published.Load(); f != nil {
				(*f)()
			}
		}
	})
	o.OnUpdate = func(_ v1.Key, uri string) {
		if f := u.updated.Load(); f != nil {
			(*f)(uri)
		}
	}
	o.OnListChanged = func(_ v1.Key, list string) {
		if f := u.listed.Load(); f != nil {
			(*f)(list)
		}
	}
	u.Upstreams = mcp.NewUpstreams(usableServers(objects), o)
	return u
}

func (a *app) mcpOptions(onChange func(v1.Key)) mcp.Options {
	t := a.telemetry    // of a command that calls tools
	n, _ := a.network() // what cannot be read, nothing is reached with
	o := mcp.Options{Meta: telemetry.Meta, TracerProvider: t.TracerProvider(), MeterProvider: t.MeterProvider(), Env: a.env, Logger: a.logger(), Hurry: a.interrupted, AllowPrivateNetwork: n.private, AllowNetwork: n.allowed, OnChange: onChange, Name: "toolctl", Version: buildVersion().Version}
	if dir, err := os.UserConfigDir(); err == nil {
		o.ConfigDir = filepath.Join(dir, "toolctl")
	}
	if isTerminal(a.err) {
		o.OpenBrowser = func(_ context.Context, server v1.Key, address string) error {
			fmt.Fprintf(a.err, "to sign in to MCP server %s, open this address:\n  %s\n", server.Name, address)
			openBrowser(address)
			return nil
		}
	}
	return o
}

// openBrowser shows an address where there is a desktop; the person has it in text anyway.
func openBrowser(address string) {
	name, args := "xdg-open", []string{address}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", address}
	}
	cmd := exec.Command(name, args...)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // it outlives us when the person keeps it open
	}
}

// attach joins the sessions to the registry. A server that is held to the lock has
// its declared tools refused until it was asked.
func (u *upstream) attach(reg *registry.Registry) {
	u.reg = reg
	for k := range u.set.Load().held {
		u.refuse(k)
	}
}

// held reports whether the tools of a server are held to the lock.
func (u *upstream) held(server v1.Key) bool { return u.set.Load().held[server] }

// refuse refuses the tools of a server that is held to the lock until it was asked.
func (u *upstream) refuse(k v1.Key) {
	u.reg.SetDiscovered(k, registry.Discovery{Refused: u.refuseAll(k, &v1.MCPError{Server: k.Name, Message: "its tools were not compared with " + lock.Name + " yet"})})
}

// replace makes objects the set of the registry and its servers that of the sessions,
// and asks those that are new or changed. At no time can a tool be called that was not
// compared with the lock it is held to.
func (u *upstream) replace(ctx context.Context, objects []v1.Object) []mcp.ServerState {
	u.asking.Lock()
	defer u.asking.Unlock()
	old, next := u.set.Load(), u.read(objects)
	relocked := !reflect.DeepEqual(old.lock, next.lock) || (old.lockErr == nil) != (next.lockErr == nil)
	var changed []v1.Key
	for k, s := range next.servers {
		if before := old.servers[k]; before == nil || !sameServer(before, s) || next.held[k] && relocked {
			changed = append(changed, k)
		}
	}
	u.set.Store(next)
	again := func() {
		for _, k := range changed {
			if next.held[k] {
				u.refuse(k)
			}
		}
	}
	again() // for the objects that go
	u.reg.Replace(objects)
	again() // for those that came; sessions to new servers there are none yet
	u.Replace(usableServers(objects))
	if len(changed) == 0 {
		return nil
	}
	return u.ask(ctx, changed...)
}

// sameServer reports whether two manifests lead to the same session with the same tools.
func sameServer(a, b *v1.MCPServer) bool {
	return reflect.DeepEqual(a.Spec, b.Spec) && reflect.DeepEqual(a.Metadata, b.Metadata) && a.Source.File == b.Source.File && reflect.DeepEqual(a.Files, b.Files)
}

// refuseAll refuses the declared tools of a server: what cannot be compared is not called.
func (u *upstream) refuseAll(server v1.Key, err error) map[string]error {
	refused := map[string]error{}
	for _, t := range u.declared(server) {
		refused[t.RemoteName()] = err
	}
	return refused
}

// discover asks servers, all when none is named, and gives the registry what they offer.
func (u *upstream) discover(ctx context.Context, keys ...v1.Key) []mcp.ServerState {
	if len(u.set.Load().servers) == 0 {
		return nil
	}
	u.asking.Lock()
	defer u.asking.Unlock()
	return u.ask(ctx, keys...)
}

// ask is discover for those who hold asking.
func (u *upstream) ask(ctx context.Context, keys ...v1.Key) []mcp.ServerState {
	if len(keys) == 0 {
		keys = u.Servers()
	}
	states := make([]mcp.ServerState, len(keys))
	var all sync.WaitGroup
	for i, k := range keys {
		all.Go(func() { // one that is slow holds up no other
			states[i] = u.Discover(ctx, k)[0]
			u.publish(states[i])
			if f := u.published.Load(); f != nil {
				(*f)()
			}
			u.answered.note(k)
		})
	}
	all.Wait()
	return states
}

// answered is which servers were asked, be it in vain.
type answered struct {
	mu   sync.Mutex
	by   map[v1.Key]bool
	more chan struct{} // closed when there is one more
}

func (a *answered) note(k v1.Key) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.by[k] = true
	close(a.more)
	a.more = make(chan struct{})
}

// news returns what closes when one more server was asked.
func (u *upstream) news() <-chan struct{} {
	u.answered.mu.Lock()
	defer u.answered.mu.Unlock()
	return u.answered.more
}

// wasAsked reports whether a server was asked what it offers.
func (u *upstream) wasAsked(k v1.Key) bool {
	u.answered.mu.Lock()
	defer u.answered.mu.Unlock()
	return u.answered.by[k]
}

// publish gives the registry what is known of a server.
func (u *upstream) publish(s mcp.ServerState) {
	d := registry.Discovery{Refused: map[string]error{}}
	if !s.Ready {
		d.Err = s.Err
		if d.Err == nil {
			d.Err = &v1.MCPError{Server: s.Key.Name, Message: s.Reason}
		}
	}
	held := u.held(s.Key)
	if held && !s.Ready {
		d.Refused = u.refuseAll(s.Key, d.Err)
	}
	for _, t := range s.Tools {
		d.Tools = append(d.Tools, t.Tool)
		if !held {
			continue
		}
		if err := u.compare(s.Key, t); err != nil {
			d.Refused[t.Remote] = &v1.PolicyError{Tool: t.Tool.Metadata.Name, Policy: lock.Name, Rule: "locked", Message: err.Error()}
		}
	}
	u.reg.SetDiscovered(s.Key, d)
}

func (u *upstream) compare(server v1.Key, t mcp.DiscoveredTool) error {
	set := u.set.Load()
	if set.lockErr != nil {
		return set.lockErr
	}
	return set.lock.Check(server, definition(t))
}

// definition is what a server said of a tool.
func definition(t mcp.DiscoveredTool) lock.Definition {
	return lock.Definition{Name: t.Remote, Title: t.Title, Description: t.Description, Annotations: t.Annotations, InputSchema: t.InputSchema, OutputSchema: t.OutputSchema}
}

// declared returns the Tool manifests that bind tools of a server.
func (u *upstream) declared(server v1.Key) []*v1.Tool {
	var tools []*v1.Tool
	for _, o := range u.reg.Objects() {
		if t, ok := o.(*v1.Tool); ok && t.Mode() == v1.ModeMCP && t.Spec.MCP != nil && serverOf(t) == server {
			tools = append(tools, t)
		}
	}
	return tools
}

func serverOf(t *v1.Tool) v1.Key {
	return v1.Key{Kind: v1.KindMCPServer, Namespace: t.Namespace(), Name: t.Spec.MCP.Server}
}

// prepare discovers what a call of a tool needs: nothing for one that is declared,
// its server for server__tool, and all servers for a bare name that nothing has. It
// warns of what the tool's texts hide or order.
func (a *app) prepare(ctx context.Context, w *workspace, name string) {
	u := w.mcp
	it, err := w.reg.Lookup(a.namespace, name)
	var missing *v1.NotFoundError
	switch {
	case err == nil:
		if t := it.Tool(); t.Mode() == v1.ModeMCP && t.Spec.MCP != nil && u.held(serverOf(t)) {
			u.discover(ctx, serverOf(t))
		}
		return
	case errors.As(err, &missing) && missing.Ambiguous:
		return
	}
	if keys := u.named(a.namespace, name); len(keys) > 0 {
		u.discover(ctx, keys...)
	} else {
		u.discover(ctx, u.in(a.namespace)...)
	}
	if it, err := w.reg.Lookup(a.namespace, name); err == nil {
		a.warnTexts(it.Tool())
	}
}

// named returns the servers whose name a tool's name begins with.
func (u *upstream) named(namespace, name string) []v1.Key {
	var keys []v1.Key
	for _, k := range u.in(namespace) {
		local := name
		if ns, rest, ok := strings.Cut(name, "/"); ok {
			if ns != k.Namespace {
				continue
			}
			local = rest
		}
		if registry.NamesServer(local, k.Name) {
			keys = append(keys, k)
		}
	}
	return keys
}

// in returns the servers of a namespace, of all when it is empty, sorted.
func (u *upstream) in(namespace string) []v1.Key {
	var keys []v1.Key
	for k := range u.set.Load().servers {
		if namespace == "" || k.Namespace == namespace {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b v1.Key) int { return strings.Compare(a.Namespace+"\x00"+a.Name, b.Namespace+"\x00"+b.Name) })
	return keys
}

// warnStates says on stderr which servers are not ready, and what of their answers
// is left out or suspicious.
func (a *app) warnStates(states []mcp.ServerState) {
	for _, s := range states {
		if !s.Ready {
			fmt.Fprintf(a.err, "warning: %s is not ready: %s\n", objectName(s.Key), reasonText(s))
		}
		for _, text := range s.Warnings {
			fmt.Fprintf(a.err, "warning: %s: %s\n", objectName(s.Key), inspect.Show(text))
		}
		for _, t := range s.Tools {
			a.warnTexts(t.Tool)
		}
	}
}

// reasonText is why a server is not ready, where its name stands beside it.
func reasonText(s mcp.ServerState) string {
	return oneLine(inspect.Show(strings.TrimPrefix(s.Reason, fmt.Sprintf("mcp server %q: ", s.Key.Name))))
}

// warnTexts warns of what the texts of a tool hide or order.
func (a *app) warnTexts(t *v1.Tool) {
	for _, f := range inspect.Tool(t) {
		fmt.Fprintf(a.err, "warning: %s: %s: %s\n", objectName(t.Key()), v1.FieldPath(f.Path), f.Message)
	}
}

// lockPath is where the lock is: what --lock-file names, else the nearest one
// upwards, else, for a new one, the current folder.
func (a *app) lockPath() (string, error) {
	if a.lockFile != "" {
		return a.lockFile, nil
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		path := filepath.Join(dir, lock.Name)
		if _, err := os.Stat(path); err == nil {
			if rel, err := filepath.Rel(cwd, path); err == nil {
				return rel, nil
			}
			return path, nil
		}
		if dir == filepath.Dir(dir) {
			return lock.Name, nil
		}
	}
}

// readLock reads the lock that calls are held to.
func (a *app) readLock() (lock.File, error) {
	path, err := a.lockPath()
	if err != nil {
		return lock.File{}, err
	}
	f, err := lock.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("there is no %s here or above: make one with 'toolctl lock'", lock.Name)
		if a.lockFile != "" {
			err = fmt.Errorf("there is no %s: make it with 'toolctl lock --lock-file %s'", a.lockFile, a.lockFile)
		}
	}
	return f, err
}
