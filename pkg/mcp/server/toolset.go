package server

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"sync"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
)

// snapshot is what the server offers at one time. It never changes.
type snapshot struct {
	all      *offers            // all tools, which determine the names
	toolsets map[string]*offers // by Toolset.Name; "" is /mcp
}

func (s *Server) newSnapshot(c Contents) *snapshot {
	names := promptNames(c)
	next := &snapshot{newOffers(c.Tools, s.set.Load().all), map[string]*offers{}}
	next.all.spec.Discovery = cmp.Or(s.opts.Discovery, v1.DiscoveryList)
	for _, t := range c.Toolsets {
		if t.Name == "" {
			t.Spec.Discovery = cmp.Or(s.opts.Discovery, t.Spec.Discovery)
		}
		if s.opts.Finder == nil {
			t.Spec.Discovery = v1.DiscoveryList
		}
		next.toolsets[t.Name] = next.all.part(t, names)
	}
	if next.toolsets[""] == nil {
		next.all.only, next.all.library = onlyServer(c), newLibrary(c, names)
		next.toolsets[""] = next.all
	}
	return next
}

// part returns the offers of a toolset, which share the listings of all offers.
func (o *offers) part(t Toolset, prompts map[promptID]string) *offers {
	p := &offers{spec: t.Spec, views: o.views, byName: make(map[string]offered, len(t.Tools)), servers: map[v1.Key]bool{}}
	for name, known := range o.byName {
		if pinned, in := t.Tools[known.Name]; in {
			known.pinned = pinned
			p.add(name, known)
			if server, ok := known.Tool.Server(); ok {
				p.servers[server] = true
			}
		}
	}
	p.sort()
	for _, u := range t.Servers {
		p.servers[u.Key] = true
	}
	p.library = newLibrary(Contents{Servers: t.Servers, Prompts: t.Prompts, Resources: t.Resources}, prompts)
	return p
}

// none are the offers of a toolset that was removed while a request was being answered.
var none = &offers{library: &library{}}

// offers returns what a toolset offers now.
func (s *Server) offers(toolset string) *offers {
	if o := s.set.Load().toolsets[toolset]; o != nil {
		return o
	}
	return none
}

// admits reports whether a caller may use its toolset. A toolset that does not exist admits nobody.
func (s *snapshot) admits(c *caller) bool {
	o := s.toolsets[c.toolset]
	return o != nil && o.spec.Admits(c.Principal, c.Groups)
}

// missing answers a request for a toolset that does not exist, or that its sender may not use. The client cannot see
// which.
func missing(c admission.Caller) admission.Entry {
	return admission.Entry{Caller: c, Early: true, Answer: http.NotFound}
}

// streams holds the open streams, which end once their callers may no longer use their toolsets.
type streams struct {
	mu  sync.Mutex
	all map[*stream]bool
}

type stream struct {
	caller *caller
	end    context.CancelFunc
}

// allowed returns the request for a stream, which ends once its caller may no longer use its toolset.
func (s *Server) allowed(c *caller, r *http.Request) (_ *http.Request, stop func()) {
	ctx, end := context.WithCancel(r.Context())
	one := &stream{c, end}
	s.streams.mu.Lock()
	if s.streams.all == nil {
		s.streams.all = map[*stream]bool{}
	}
	s.streams.all[one] = true
	s.streams.mu.Unlock()
	if !s.set.Load().admits(c) { // since the request was admitted
		end()
	}
	return r.WithContext(ctx), func() {
		s.streams.mu.Lock()
		delete(s.streams.all, one)
		s.streams.mu.Unlock()
		end()
	}
}

// endRefused ends the sessions of toolsets that were removed, and the streams of callers that may no longer use their
// toolsets.
func (s *Server) endRefused(now *snapshot) {
	s.sessions.mu.Lock()
	gone := slices.Collect(maps.Keys(s.sessions.all))
	s.sessions.mu.Unlock()
	for _, n := range gone {
		if now.toolsets[n.toolset] == nil {
			n.end()
		}
	}
	s.streams.mu.Lock()
	defer s.streams.mu.Unlock()
	for one := range s.streams.all {
		if !now.admits(one.caller) {
			one.end()
		}
	}
}
