package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/scenario/report"
)

// uiOptions are the flags of the console of "toolctl serve".
type uiOptions struct {
	ui         bool
	uiURL      string
	hook       string
	hookSecret string
	hookFormat string
	operators  []string
	groups     []string // of operators
	testReport string
	person     bool // "toolctl ui" runs, for the person who started it
	noBrowser  bool
	console    *console.Console // nil without --ui
	ended      []func()         // what ends with the console
}

// uiNeedsHTTP are the flags that mean nothing over stdin and stdout.
var uiNeedsHTTP = []string{"ui", "ui-url", "approval-webhook", "approval-webhook-secret-file", "approval-webhook-format", "ui-operator", "ui-operator-group", "test-report"}

func (o *uiOptions) bindUI(f *pflag.FlagSet) {
	f.BoolVar(&o.ui, "ui", false, "also serve the console at /ui/; needs --http")
	f.StringVar(&o.uiURL, "ui-url", "", "public address of the console, such as https://tools.example.com/ui/ (default: the listen address); needs --ui")
	f.StringArrayVar(&o.operators, "ui-operator", nil, "principal (or prefix*) that may view everyone's calls, server and change details, and undo changes; may be repeated; needs --ui")
	f.StringArrayVar(&o.groups, "ui-operator-group", nil, "group whose members may do the same; may be repeated; needs --ui")
	o.bindTestReport(f)
	f.StringVar(&o.hook, "approval-webhook", "", "URL to notify of each new pending call, with a link to decide; needs --ui")
	f.StringVar(&o.hookSecret, "approval-webhook-secret-file", "", "file with the HMAC key that signs the notifications")
	f.StringVar(&o.hookFormat, "approval-webhook-format", console.FormatJSON, "format of the notifications: json or slack")
}

func (o *uiOptions) bindTestReport(f *pflag.FlagSet) {
	f.StringVar(&o.testReport, "test-report", "", "file with the report of 'toolctl test' that the console shows (default: "+report.KeptFile+" beside the store)")
}

func (o *uiOptions) checkUI(cmd *cobra.Command) error {
	if o.ui {
		if o.hook == "" && (cmd.Flags().Changed("approval-webhook-secret-file") || cmd.Flags().Changed("approval-webhook-format")) {
			return usagef("--approval-webhook-secret-file and --approval-webhook-format need --approval-webhook")
		}
		if slices.Contains(slices.Concat(o.operators, o.groups), "") {
			return usagef("--ui-operator and --ui-operator-group: expected a name")
		}
		if o.uiURL != "" && !strings.HasPrefix(o.uiURL, "http://") && !strings.HasPrefix(o.uiURL, "https://") {
			return usagef("--ui-url %q: expected a URL such as https://tools.example.com/ui/", o.uiURL)
		}
		return nil
	}
	for _, name := range uiNeedsHTTP[1:] {
		if cmd.Flags().Changed(name) {
			return usagef("--%s needs --ui", name)
		}
	}
	return nil
}

// webhook reads the flags of the webhook; nil without.
func (o *uiOptions) webhook() (*console.Webhook, error) {
	if o.hook == "" {
		return nil, nil
	}
	w := &console.Webhook{URL: o.hook, Format: o.hookFormat}
	if o.hookSecret != "" {
		raw, err := regular.ReadFile(o.hookSecret)
		if err != nil {
			return nil, usagef("--approval-webhook-secret-file: %w", err)
		}
		w.Secret = bytes.TrimSpace(raw)
		if text, ok := strings.CutPrefix(string(w.Secret), "whsec_"); ok { // as Standard Webhooks writes keys
			if w.Secret, err = base64.StdEncoding.DecodeString(text); err != nil {
				return nil, usagef("--approval-webhook-secret-file: expected base64 after whsec_")
			}
		}
	}
	if err := w.Validate(); err != nil {
		return nil, usagef("--approval-webhook: %w", err)
	}
	return w, nil
}

// openConsole makes the console, when one is asked for.
func (o *serveOptions) openConsole(ctx context.Context) error {
	if !o.ui {
		return nil
	}
	hook, err := o.webhook()
	if err != nil {
		return err
	}
	at := o.testReport
	if dir := o.stored(ctx).StoreFolder(); at == "" && dir != "" {
		at = filepath.Join(dir, report.KeptFile)
	}
	o.console = console.New(console.Options{
		Login: o.whoami(), Webhook: hook, URL: o.uiURL, Logger: o.log, MeterProvider: o.watched(ctx).MeterProvider(), TestReport: at, Operators: v1.Approvers{Principals: o.operators, Groups: o.groups},
	})
	return nil
}

// listens says where the server is reached, and how to sign in to the console.
func (o *serveOptions) listens(scheme string, authenticates bool) func(net.Addr) {
	return func(at net.Addr) {
		url := scheme + "://" + at.String()
		o.log.Info("listening", "url", url+"/mcp")
		if o.console == nil {
			return
		}
		o.console.Listening(url + "/ui/")
		link := func() string {
			at := cmp.Or(o.uiURL, url+"/ui/")
			if authenticates {
				return at
			}
			return o.console.Link(at)
		}
		show := func(link string) {
			if o.person {
				fmt.Fprintf(o.err, "the console is at %s\n", link)
			} else {
				o.log.Info("the console", "url", link)
			}
		}
		o.offerLinks(at, link, show)
		first := link()
		show(first)
		if o.person {
			fmt.Fprintln(o.err, "Ctrl-C ends it")
			if !o.noBrowser {
				tty.OpenBrowser(first)
			}
		}
	}
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
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if port < 0 || port > 65535 {
				return usagef("--port %d: expected 0 to 65535", port)
			}
			if links := o.running(port); len(links) > 0 {
				for _, link := range links {
					fmt.Fprintf(o.err, "the console is already running at %s\n", link)
				}
				if len(links) == 1 && !o.noBrowser {
					tty.OpenBrowser(links[0])
				}
				return nil
			}
			o.http = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
			return o.run(cmd.Context())
		},
	}
	o.ui, o.person, o.accessLog = true, true, "none"
	o.memory, o.turnIdle, o.drain = "256MiB", time.Minute, time.Second
	f := cmd.Flags()
	f.IntVar(&port, "port", 0, "port to listen on, or port of a running console (default: a free port)")
	f.BoolVar(&o.noBrowser, "no-browser", false, "print the link without opening a browser")
	f.BoolVar(&o.watch, "watch", false, "follow changes of the files or the store")
	o.bindTestReport(f)
	f.StringVarP(&o.labels, "selector", "l", "", "only tools with these labels, such as team=pay,tier!=old")
	a.bindAudit(cmd)
	a.bindNetwork(f, "")
	return cmd
}
