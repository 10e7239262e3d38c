package gateway

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// Handler serves MCP over HTTP at /mcp, and /healthz and /readyz, while the gateway is open. All calls return the same
// server, which Serve and ServeStdio use too. Options.HTTP controls access: without Tokens or OAuth, anyone who can
// connect has access.
func (g *Gateway) Handler() http.Handler {
	s := g.start()
	g.handling.Do(func() { g.handler = s.Handler(g.http) })
	return g.handler
}

// Serve serves Handler with the limits and the TLS configuration of Options until ctx ends: see [server.Server.Serve].
// It closes the listener, which must come from [server.Listen].
func (g *Gateway) Serve(ctx context.Context, ln net.Listener) error {
	leave, err := g.join(ctx, ln.Addr())
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	defer leave()
	s := g.start()
	g.noteToolsets()
	defer g.leave(ctx, s)()
	return s.Serve(ctx, ln, g.http)
}

// leave hands over what only this replica has, once ctx ends: first its sessions, before the server refuses requests,
// and then its MCP servers. The returned function waits for that, and starts it if it has not started.
func (g *Gateway) leave(ctx context.Context, s *server.Server) (wait func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	all.Go(func() {
		<-ctx.Done()
		if g.replica != nil {
			half := time.NewTimer(g.opts.Server.ShutdownDelay / 2) // the other half is for the other replicas to notice
			defer half.Stop()
			select {
			case <-half.C:
			case <-s.Stopping():
			}
			g.replica.Drain()
		}
		<-s.Stopping()
		g.stop()
		within, done := context.WithTimeout(context.WithoutCancel(ctx), max(0, cmp.Or(g.opts.Server.DrainTimeout, server.DefaultDrainTimeout)))
		defer done()
		all.Go(func() {
			select {
			case <-g.opts.Hurry:
				done()
			case <-within.Done():
			}
		})
		g.singles.handOver(within)
	})
	return func() { cancel(); all.Wait() }
}

// ServeStdio serves one client over a pair of streams, until the client closes its side or
// ctx ends: see [server.Server.ServeStdio].
func (g *Gateway) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	return g.start().ServeStdio(ctx, in, out)
}

// start returns the MCP server. The first call creates it and starts the tasks that keep it up to date.
func (g *Gateway) start() *server.Server {
	g.serving.Do(func() {
		o := g.opts.Server
		o.Name, o.Version = cmp.Or(o.Name, g.opts.Name), cmp.Or(o.Version, g.opts.Version)
		if o.Logger == nil {
			o.Logger = g.log
		}
		if o.TracerProvider == nil {
			o.TracerProvider = g.opts.TracerProvider
		}
		if o.MeterProvider == nil {
			o.MeterProvider = g.opts.MeterProvider
		}
		if o.Hurry == nil {
			o.Hurry = g.opts.Hurry
		}
		o.Replica, o.Admission = g.replica, g.admission
		o.Finder = newToolSearch(g.reg, g.opts.Embeddings)
		g.noteApprovals()
		g.noteTurns()
		g.reload.mu.Lock()
		var found warnings
		found.unset(g)
		g.reload.mu.Unlock()
		found.log(g.log)
		g.server.Store(server.New(g.catalog, o))
		g.servers.asked.await(g.servers.Servers())
		g.tasks.run(g.askServers)
		if e := g.opts.Embeddings; e != nil {
			g.tasks.run(e.Run)
		}
		if g.opts.Store != nil {
			g.tasks.run(g.followOverrides)
			g.tasks.run(g.followAudit)
			if g.opts.AuditRetention > 0 {
				g.tasks.run(g.keepAudit)
			}
		}
		if g.answered.Load() != nil {
			g.tasks.run(g.followStore)
		}
		for _, f := range g.files {
			g.tasks.run(f.follow)
		}
	})
	return g.server.Load()
}

// notReady returns why the gateway takes no calls, for /readyz.
func (g *Gateway) notReady() string {
	var why []string
	if !g.opts.AuditBestEffort {
		why = append(why, g.auditFailure())
	}
	why = append(why, g.storeSilence())
	if m := g.replica; m != nil {
		why = append(why, m.NotReady())
	}
	if f := g.opts.HTTP.NotReady; f != nil {
		why = append(why, f())
	}
	return joined(why)
}

// warning returns the problems that do not stop the gateway from taking calls, for /readyz.
func (g *Gateway) warning() string {
	var what []string
	if g.opts.AuditBestEffort {
		what = append(what, g.auditFailure())
	}
	what = append(what, g.behind())
	for _, f := range g.files {
		what = append(what, f.warning())
	}
	if f := g.opts.HTTP.Warning; f != nil {
		what = append(what, f())
	}
	return joined(what)
}

func joined(texts []string) string {
	var all []string
	for _, t := range texts {
		if t != "" {
			all = append(all, t)
		}
	}
	return strings.Join(all, "; ")
}
