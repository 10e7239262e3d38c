package gateway

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/lock"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/registry"
)

// servers connects the sessions to MCP servers with the registry, and compares their tools with the lock.
type servers struct {
	*mcp.Upstreams
	// Fixed after attach.
	reg      *registry.Registry
	locked   bool
	lockFile string
	refresh  func() // called after the registry was updated

	// mu is held while the set changes and while the registry is updated from a server, but never while a server is
	// queried.
	mu  sync.Mutex
	set atomic.Pointer[serverSet]

	asked asked
}

// serverSet is the servers in one set of manifests, with the lock.
type serverSet struct {
	servers map[v1.Key]*oneServer
	lock    lock.File
	lockErr error // why there is no lock
}

// oneServer is the state of a server as long as its manifest stays the same.
type oneServer struct {
	manifest *v1.MCPServer
	held     bool          // its tools are compared with the lock
	asking   chan struct{} // holds a token while the server is queried
}

// newServers creates the sessions but starts nothing.
func newServers(objects []v1.Object, locked bool, lockFile string, refresh func(), o mcp.Options) *servers {
	u := &servers{locked: locked, lockFile: lockFile, refresh: refresh, asked: asked{open: map[v1.Key]time.Time{}, more: make(chan struct{})}}
	u.set.Store(u.read(objects, nil))
	o.OnChange = u.changed
	u.Upstreams = mcp.NewUpstreams(usable(objects), o)
	return u
}

// usable returns the MCPServer manifests without a violation.
func usable(objects []v1.Object) []*v1.MCPServer {
	var all []*v1.MCPServer
	for _, o := range objects {
		if s, ok := o.(*v1.MCPServer); ok && !s.Broken() {
			all = append(all, s)
		}
	}
	return all
}

// read builds the set of servers for objects. It reuses unchanged servers of old.
func (u *servers) read(objects []v1.Object, old *serverSet) *serverSet {
	next := &serverSet{servers: map[v1.Key]*oneServer{}}
	anyHeld := false
	for _, m := range usable(objects) {
		s := &oneServer{manifest: m, held: u.locked || m.Spec.Locked, asking: make(chan struct{}, 1)}
		if old != nil {
			if before := old.servers[m.Key()]; before != nil && sameServer(before.manifest, m) {
				s = before
			}
		}
		next.servers[m.Key()] = s
		anyHeld = anyHeld || s.held
	}
	if anyHeld {
		next.lock, next.lockErr = readLock(u.lockFile)
	}
	return next
}

// sameServer reports whether two manifests lead to the same session with the same tools.
func sameServer(a, b *v1.MCPServer) bool {
	return reflect.DeepEqual(a.Spec, b.Spec) && reflect.DeepEqual(a.Metadata, b.Metadata) && a.Source.File == b.Source.File && reflect.DeepEqual(a.Files, b.Files)
}

// attach connects the sessions with the registry. The declared tools of locked servers are refused until the server was
// queried.
func (u *servers) attach(reg *registry.Registry) {
	u.reg = reg
	for k, s := range u.set.Load().servers {
		if s.held {
			u.refuse(k)
		}
	}
}

// refuse refuses the tools of a locked server until it was queried.
func (u *servers) refuse(k v1.Key) {
	u.reg.SetDiscovered(k, registry.Discovery{Refused: u.refuseAll(k, &v1.MCPError{Server: k.Name, Message: "its tools were not compared with " + lock.Name + " yet"})})
}

// replace makes objects the set of the registry and its servers those of the sessions, and returns the new and changed
// servers. It waits for no server. At no time can a tool be called that must match the lock and was not compared with
// it.
func (u *servers) replace(objects []v1.Object) (changed []v1.Key) {
	u.mu.Lock()
	defer u.mu.Unlock()
	old := u.set.Load()
	next := u.read(objects, old)
	relocked := !reflect.DeepEqual(old.lock, next.lock) || (old.lockErr == nil) != (next.lockErr == nil)
	for k, s := range next.servers {
		if old.servers[k] != s || s.held && relocked {
			changed = append(changed, k)
		}
	}
	u.set.Store(next)
	refuse := func() {
		for _, k := range changed {
			if next.servers[k].held {
				u.refuse(k)
			}
		}
	}
	refuse() // for the removed objects
	u.reg.Replace(objects)
	refuse() // for the new objects; new servers have no sessions yet
	u.Replace(usable(objects))
	return changed
}

// discover queries the given servers, or all if there are none, and updates the registry with the answers. A slow
// server does not delay others.
func (u *servers) discover(ctx context.Context, keys ...v1.Key) []mcp.ServerState {
	if len(keys) == 0 {
		keys = u.Servers()
	}
	states := make([]mcp.ServerState, len(keys))
	var all sync.WaitGroup
	for i, k := range keys {
		all.Go(func() { states[i] = u.ask(ctx, k) })
	}
	all.Wait()
	return states
}

// ask queries one server. It waits until a running query of the server has ended.
func (u *servers) ask(ctx context.Context, k v1.Key) mcp.ServerState {
	u.mu.Lock() // the set and the sessions must belong to the same manifests
	s := u.set.Load().servers[k]
	u.mu.Unlock()
	if s == nil {
		u.asked.note(k)
		return u.Discover(ctx, k)[0]
	}
	select {
	case s.asking <- struct{}{}:
		defer func() { <-s.asking }()
	case <-ctx.Done():
		return u.Discover(ctx, k)[0] // reports the timeout
	}
	state := u.Discover(ctx, k)[0]
	u.publish(k, s, state)
	return state
}

// unready returns the servers whose last query failed and that have no running query.
func (u *servers) unready() []v1.Key {
	var keys []v1.Key
	for k, s := range u.set.Load().servers {
		if state, ok := u.State(k); ok && !state.Ready && len(s.asking) == 0 {
			keys = append(keys, k)
		}
	}
	return keys
}

// changed updates the registry after a notification from a server.
func (u *servers) changed(k v1.Key) {
	u.mu.Lock()
	s := u.set.Load().servers[k]
	state, ok := u.State(k)
	if ok = ok && s != nil; ok {
		u.reg.SetDiscovered(k, u.discovery(s, state))
	}
	u.mu.Unlock()
	if ok {
		u.refresh()
	}
}

// publish updates the registry with the answer of a server, unless the manifest has changed in the meantime.
func (u *servers) publish(k v1.Key, s *oneServer, state mcp.ServerState) {
	u.mu.Lock()
	current := u.set.Load().servers[k] == s
	if current {
		u.reg.SetDiscovered(k, u.discovery(s, state))
	}
	u.mu.Unlock()
	if current {
		u.refresh()
		u.asked.note(k)
	}
}

// discovery returns the state of a server in the form of the registry.
func (u *servers) discovery(s *oneServer, state mcp.ServerState) registry.Discovery {
	d := registry.Discovery{Refused: map[string]error{}}
	if !state.Ready {
		d.Err = state.Failure()
	}
	if s.held && !state.Ready {
		d.Refused = u.refuseAll(state.Key, d.Err)
	}
	for _, t := range state.Tools {
		d.Tools = append(d.Tools, t.Tool)
		if !s.held {
			continue
		}
		if err := u.set.Load().compare(state.Key, t); err != nil {
			d.Refused[t.Remote] = &v1.PolicyError{Tool: t.Tool.Metadata.Name, Policy: lock.Name, Rule: "locked", Message: err.Error()}
		}
	}
	return d
}

// named returns the servers whose name is a prefix of a tool's name.
func (u *servers) named(namespace, name string) []v1.Key {
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

// in returns the servers of a namespace, sorted. An empty namespace means all.
func (u *servers) in(namespace string) []v1.Key {
	var keys []v1.Key
	for k := range u.set.Load().servers {
		if namespace == "" || k.Namespace == namespace {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b v1.Key) int { return strings.Compare(a.Namespace+"\x00"+a.Name, b.Namespace+"\x00"+b.Name) })
	return keys
}
