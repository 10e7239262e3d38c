package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

// uiOptions are the flags for the console.
type uiOptions struct {
	ui, noBrowser bool
	person        bool // the command is "toolctl ui", which prints messages for a person
	uiURL         string
	hook          console.Webhook
	hookSecret    string
	operators     v1.Approvers
	testReport    string
}

func (o *uiOptions) bindTestReport(f *pflag.FlagSet) {
	f.StringVar(&o.testReport, "test-report", "", "file with the report of 'toolctl test' that the console shows (default: "+report.KeptFile+" beside the store)")
}

// openConsole creates the console and adds it to the server.
func (o *serveOptions) openConsole(ctx context.Context) error {
	hook, err := o.webhook()
	if err != nil {
		return err
	}
	at := o.testReport
	if dir := o.stored(ctx).StoreFolder(); at == "" && dir != "" {
		at = filepath.Join(dir, report.KeptFile)
	}
	pages := console.New(console.Options{
		Login: o.whoami(), Webhook: hook, URL: o.uiURL, Logger: o.log, MeterProvider: o.watched(ctx).MeterProvider(), TestReport: at, Operators: o.operators,
	})
	ended := func() {} // stops offering links
	g := &o.conf.Gateway
	g.OnCall, g.OnPending = pages.Called, pages.Waits
	g.HTTP.BothLoopbacks = o.uiURL == "" // the link to the console may use a name below localhost
	o.Opened = func(g *gateway.Gateway) func() {
		pages.Attach(g)
		return func() {
			ended()
			_ = pages.Close() // Close never fails
		}
	}
	o.Listening = func(at net.Addr, url string, authenticates bool) {
		url = cmp.Or(o.uiURL, url+"/ui/")
		pages.Listening(url)
		link := func() string { return pages.Link(url) }
		if authenticates {
			link = func() string { return url }
		}
		show := func(link string) {
			if o.person {
				fmt.Fprintf(o.err, "the console is at %s\n", link)
			} else {
				o.log.Info("the console", "url", link)
			}
		}
		ended = o.offerLinks(ctx, at, link, show)
		first := link()
		show(first)
		if o.person {
			fmt.Fprintln(o.err, "Ctrl-C ends it")
			if !o.noBrowser {
				tty.OpenBrowser(first)
			}
		}
	}
	return nil
}

func (o *serveOptions) consoles(ctx context.Context) *action.Consoles {
	return &action.Consoles{Config: o.stored(ctx), Source: o.Pull.Address}
}

// offerLinks gives this user new links to the console, for "toolctl ui" and SIGUSR1, until the returned function is
// called.
func (o *serveOptions) offerLinks(ctx context.Context, at net.Addr, link func() string, show func(string)) (ended func()) {
	quiet := tty.OnUserSignal(func() { show(link()) })
	stop, err := o.consoles(ctx).Offer(at, link)
	if err != nil {
		o.log.Debug("'toolctl ui' cannot ask for a new link to this console", slog.Any("error", err))
		return quiet
	}
	return func() { quiet(); stop() }
}

// webhook reads the secret of the webhook; it returns nil without a webhook.
func (o *uiOptions) webhook() (*console.Webhook, error) {
	if o.hook.URL == "" {
		return nil, nil
	}
	if o.hookSecret != "" {
		raw, err := regular.ReadFile(o.hookSecret)
		if err != nil {
			return nil, usagef("--approval-webhook-secret-file: %w", err)
		}
		if o.hook.Secret, err = console.WebhookSecret(raw); err != nil {
			return nil, usagef("--approval-webhook-secret-file: %w", err)
		}
	}
	if err := o.hook.Validate(); err != nil {
		return nil, usagef("--approval-webhook: %w", err)
	}
	return &o.hook, nil
}

func newUICmd(a *app) *cobra.Command {
	o := &serveOptions{app: a}
	port := 0
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Open the web console",
		Long: `Open the console in the browser: the tools with their schemas and policies, a form to
call each tool, pending approvals, and recent calls. It is the console of
'toolctl serve --ui', on a free port that only this machine can reach, and it ends
with the command.

The printed link signs in once. If this command or 'toolctl serve --ui' already serves the
console of these manifests, the command opens that console with a new link. In a folder without
manifests it prints a link to each console that you serve; --port selects one.`,
		Example: `  toolctl ui -f manifests/
  toolctl ui --port 8090 --no-browser`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return usagef("--port %d: expected 0 to 65535", port)
			}
			links, err := o.consoles(cmd.Context()).Links(port)
			if err != nil {
				o.logger().Debug("a console may already be running, but it does not answer", slog.Any("error", err))
			}
			if len(links) > 0 {
				for _, link := range links {
					fmt.Fprintf(o.err, "the console is already running at %s\n", link)
				}
				if len(links) == 1 && !o.noBrowser {
					tty.OpenBrowser(links[0])
				}
				return nil
			}
			o.Address = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			return o.run(cmd.Context())
		},
	}
	o.ui, o.person, o.AccessLog = true, true, "none"
	g := &a.conf.Gateway
	g.Server.DrainTimeout = time.Second
	f := cmd.Flags()
	f.IntVar(&port, "port", 0, "port to listen on, or port of a running console (default: a free port)")
	f.BoolVar(&o.noBrowser, "no-browser", false, "print the link without opening a browser")
	f.BoolVar(&g.Watch, "watch", false, "follow changes of the files or the store")
	o.bindTestReport(f)
	f.StringVarP(&g.Subset.Selector, "selector", "l", "", "only tools with these labels, such as team=pay,tier!=old")
	a.bindAudit(cmd)
	a.bindNetwork(f, "")
	return cmd
}
