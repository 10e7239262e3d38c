package console

import (
	"cmp"
	"context"
	"crypto/rand"
	"html/template"
	"log/slog"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel/metric"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/registry"
)

// Options configure a [Console]; the zero value works.
type Options struct {
	// Login is the name of the person at this machine, who signs in by the link of [Console.Link].
	// Default: "the console".
	Login string
	// Webhook receives a message for each call that starts to wait for approval. Default: none.
	Webhook *Webhook
	// URL is the public address of the console, for links in messages, such as
	// "https://tools.example.com/ui/". Default: set by [Console.Listening].
	URL string
	// Operators may see everything, including the calls of others, and may undo changes of manifests; so
	// may the person at this machine. Principals and Groups work as in the approvers of a policy.
	// Default: no one else.
	Operators v1.Approvers
	// TestReport is the file to which 'toolctl test' writes its report. Default: none.
	TestReport string
	// MeterProvider counts requests, sessions and streams. Default: nothing is counted.
	MeterProvider metric.MeterProvider
	// Logger receives errors. Default: nothing is logged.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Console serves the web pages of a gateway. Its methods are safe for concurrent use.
type Console struct {
	opts     Options
	feed     *feed
	sessions *sessions
	waits    waitingCalls
	name     string            // host name for the person at this machine, which no other program knows
	hook     *sender           // nil without a webhook
	files    map[string][]byte // embedded files by path
	pages    *template.Template

	mu  sync.Mutex
	url string

	// Attach sets these fields.
	gateway *gateway.Gateway
	access  server.Access
	cancel  context.CancelFunc
	tasks   sync.WaitGroup
}

// New returns a console without a gateway. Pass its Called and Waits methods in the options of the
// gateway to attach it to.
func New(o Options) *Console {
	o.Login = cmp.Or(o.Login, "the console")
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	c := &Console{opts: o, feed: newFeed(o.Now), sessions: newSessions(o.Now), name: strings.ToLower(rand.Text()[:16]) + ".localhost", url: o.URL}
	c.files, c.pages = mustAssets()
	return c
}

// Called records a finished call and never blocks: see gateway.Options.OnCall.
func (c *Console) Called(e registry.CallEvent) { c.feed.called(e) }

// Waits records a call that starts to wait for approval: see gateway.Options.OnPending.
func (c *Console) Waits(p v1.PendingCall) {
	c.changed()
	if c.hook != nil {
		c.hook.send(p)
	}
}

// Attach serves the console under /ui/ of a gateway, beside /mcp. Call it before the gateway serves
// requests.
func (c *Console) Attach(g *gateway.Gateway) {
	c.gateway = g
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	if c.opts.Webhook != nil {
		c.hook = newSender(*c.opts.Webhook, c.link, c.opts.Logger)
		c.tasks.Go(func() { c.hook.run(ctx) })
	}
	c.feed.remember(c.history(ctx))
	c.tasks.Go(func() { c.feed.run(ctx) })
	c.tasks.Go(func() { c.watchApprovals(ctx) })
	if c.opts.URL != "" {
		g.DecideAt(strings.TrimSuffix(c.opts.URL, "/") + "/approvals/")
	}
	g.Mount(func(a server.Access) []admission.Route {
		c.access = a
		a.Named(c.name)
		return c.entrances()
	})
}

// Listening sets the address of the console, such as "http://127.0.0.1:8080/ui/", unless Options.URL
// is set.
func (c *Console) Listening(url string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.opts.URL == "" {
		c.url = url
		c.gateway.DecideAt(url + "approvals/")
	}
}

// link returns the address of a page; empty if the address of the console is unknown.
func (c *Console) link(page string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.url == "" {
		return ""
	}
	return strings.TrimSuffix(c.url, "/") + "/" + page
}

// Close stops the background work and waits for it. Requests end with the gateway.
func (c *Console) Close() error {
	if c.cancel != nil {
		c.cancel()
	}
	c.tasks.Wait()
	return nil
}

// pageRoute is a page, or the target of a form on a page.
type pageRoute struct {
	pattern string
	show    func(*request) error
}

// pageRoutes returns the pages of the console.
func (c *Console) pageRoutes() []pageRoute {
	return []pageRoute{
		{"GET /{$}", c.tools},
		{"GET /tools/{namespace}/{name}", c.tool},
		{"GET /tools/{namespace}/{name}/try", c.try},
		{"POST /tools/{namespace}/{name}/try", c.try},
		{"GET /toolsets/{namespace}/{name}", c.toolset},
		{"GET /approvals", c.approvals},
		{"GET /approvals/{id}", c.approval},
		{"POST /approvals/{id}", c.decide},
		{"GET /activity", c.activity},
		{"GET /activity/{call}", c.call},
		{"GET /audit", c.audit},
		{"POST /audit", c.audit},
		{"GET /servers", c.servers},
		{"GET /prompts", c.prompts},
		{"GET /prompts/{namespace}/{owner}", c.prompt},
		{"POST /prompts/{namespace}/{owner}", c.prompt},
		{"GET /prompts/{namespace}/{owner}/{name}", c.prompt},
		{"POST /prompts/{namespace}/{owner}/{name}", c.prompt},
		{"GET /changes", c.changes},
		{"GET /changes/pending", c.changePending},
		{"GET /changes/revision", c.changeRevision},
		{"GET /changes/undo", c.changeUndo},
		{"POST /changes/undo", c.changeUndo},
		{"/", func(*request) error { return errNoPage }},
	}
}
