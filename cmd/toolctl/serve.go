package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/telemetry"
)

type serveOptions struct {
	*app
	endpointOptions
	uiOptions
	replicaOptions
	http         string
	insecure     bool
	tlsCert      string
	tlsKey       string
	hosts        []string
	origins      []string
	labels       string
	tools        []string
	prompts      []string
	watch        bool
	maxCalls     int
	delay, drain time.Duration
	turnIdle     time.Duration
	approvalWait time.Duration
	metricsAddr  string
	accessLog    string
	retention    string
	share        float64
	memory       string
	source       sourceOptions
}

func newServeCmd(a *app) *cobra.Command {
	o := &serveOptions{app: a}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the tools as one MCP server",
		Long: `Serve the tools of manifests and MCP servers as one MCP server, with the prompts of both.
toolctl coerces and validates the arguments of each call, checks the policies, validates
and masks the result, and audits the call. Tools that are not ready, or that a policy
always refuses, are not listed.

Without --http, serve speaks MCP over stdin and stdout to the client that starts it, and
ends when the client closes stdin. With --http, it listens: /mcp serves clients of all
protocol versions up to 2026-07-28, and /healthz and /readyz serve probes.

--ui serves the web console at /ui/: view tools, try calls, decide on approvals and follow
calls. 'toolctl ui' and SIGUSR1 print a new sign-in link. See docs/console.md.

--watch follows changes of the manifests. If the new manifests have errors, serve keeps the
previous set and says so in the log and at /readyz.

--replica-key-file makes this server one of several replicas on one store: a client may
send each request to another replica. See docs/replicas.md.

--source pulls manifests from a Git repository at every --interval, and at once on a webhook
call (POST /hooks/git, signed with the secret in --hook-secret-file). serve never serves a
commit with an error. See docs/gitops.md.

The log goes to stderr as JSON; with --http it has a line for each call (--access-log).
--metrics-addr serves /metrics for Prometheus. OTEL_ variables set the targets of traces
and metrics. See docs/observability.md.`,
		Example: `  toolctl serve -f manifests/
  toolctl serve --http 127.0.0.1:8080 --watch
  toolctl serve -l team=pay --tools 'invoice-*'
  toolctl serve --prompt travel-advice
  toolctl serve --http 127.0.0.1:8080 --source 'git+https://git.example.com/team/tools//prod?ref=main'
  toolctl serve --http :8443 --token-file tokens --tls-cert cert.pem --tls-key key.pem`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.http, "http", "", "address to listen on, such as 127.0.0.1:8080 (default: stdin and stdout)")
	o.bind(f)
	o.bindUI(f)
	o.bindReplica(f)
	f.BoolVar(&o.insecure, "insecure", false, "allow other machines to connect without authentication; needs --http")
	f.StringVar(&o.tlsCert, "tls-cert", "", "PEM file with the certificate for HTTPS; needs --http and --tls-key")
	f.StringVar(&o.tlsKey, "tls-key", "", "PEM file with the certificate's key")
	f.StringArrayVar(&o.hosts, "allowed-host", nil, "host name that clients may send in the Host header; may be repeated; needs --http")
	f.StringArrayVar(&o.origins, "allowed-origin", nil, "origin of web pages that may use the server, such as http://localhost:6274; may be repeated; needs --http")
	f.StringVarP(&o.labels, "selector", "l", "", "serve only tools with these labels, such as team=pay,tier!=old")
	f.StringVar(&o.labels, "select", "", "the same as --selector")
	_ = f.MarkHidden("select")
	f.StringArrayVar(&o.tools, "tools", nil, "serve only tools with this name, which may end in *; may be repeated")
	f.StringArrayVar(&o.prompts, "prompt", nil, "serve only prompts with this name, which may end in *, and their tools; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("tools", a.completeNames(v1.KindTool))
	_ = cmd.RegisterFlagCompletionFunc("prompt", a.completeNames(v1.KindPrompt))
	f.BoolVar(&o.watch, "watch", false, "follow changes of the files or the store")
	f.IntVar(&o.maxCalls, "max-calls", admission.DefaultMaxCalls, "maximum number of concurrent calls")
	f.Float64Var(&o.share, "principal-share", admission.DefaultPrincipalShare, "fraction of --max-calls and of the other limits that one principal may use; anonymous callers may use all of them")
	f.StringVar(&o.memory, "memory-budget", "256MiB", "memory for all decoded requests and results; a request that exceeds it waits briefly and is then refused")
	f.DurationVar(&o.turnIdle, "turn-idle", 60*time.Second, "end a session's unnamed turn after this long without calls")
	f.DurationVar(&o.approvalWait, "approval-wait", 0, "how long to hold a call for an approval decision before answering \"pending\"")
	f.DurationVar(&o.delay, "shutdown-delay", 0, "how long a stopping server still accepts requests while /readyz fails, so that load balancers can react (default: 5s with --replica-key-file, else 0s); needs --http")
	f.DurationVar(&o.drain, "drain-timeout", 10*time.Second, "maximum time for running calls to end after the server stops accepting new ones")
	f.StringVar(&o.metricsAddr, "metrics-addr", "", "address that serves /metrics for Prometheus, such as 127.0.0.1:9090 (default: none)")
	f.StringVar(&o.accessLog, "access-log", "", "format of the log line for each call on stderr: json, text or none (default: json with --http, else none)")
	_ = cmd.RegisterFlagCompletionFunc("access-log", cobra.FixedCompletions(accessLogs, noFiles))
	o.source.bind(f)
	f.StringVar(&o.source.hookSecret, "hook-secret-file", "", "with --source: file with the secret of the webhook at "+source.HookPath+" (default: $"+hookSecretVariable+"; without either there is no webhook); needs --http")
	a.bindAudit(cmd)
	bindRetention(f, &o.retention, "keep audit records this long, and delete older ones once an hour; replicas on one store share this work; needs a store")
	a.bindNetwork(f, "")
	cmd.SetUsageFunc(serveUsage)
	return cmd
}

func (o *serveOptions) check(cmd *cobra.Command) error {
	if o.http == "" {
		for _, name := range append([]string{"insecure", "tls-cert", "tls-key", "allowed-host", "allowed-origin", "hook-secret-file", "shutdown-delay"}, slices.Concat(uiNeedsHTTP, endpointNeedsHTTP, replicaNeedsHTTP)...) {
			if cmd.Flags().Changed(name) {
				return usagef("--%s needs --http: over stdin and stdout the only client is the one that started this program", name)
			}
		}
		if slices.Contains(o.conf.Files, "-") {
			return usagef("-f - and serving over stdin cannot be used together: use files, or --http")
		}
	}
	if _, err := parseBytes(o.memory); err != nil {
		return usagef("--memory-budget %q: %w", o.memory, err)
	}
	if err := o.endpointOptions.check(cmd); err != nil {
		return err
	}
	if err := o.checkUI(cmd); err != nil {
		return err
	}
	if err := o.checkReplica(cmd); err != nil {
		return err
	}
	if o.keyFile != "" && !cmd.Flags().Changed("shutdown-delay") {
		o.delay = replicaShutdownDelay
	}
	if o.keyFile != "" && len(o.conf.Files) > 0 && o.conf.DSN == "" {
		return usagef("--replica-key-file needs a store that the replicas share: name it with --store")
	}
	if _, err := parseRetention(o.retention); err != nil {
		return err
	}
	if o.retention != "" && len(o.conf.Files) > 0 && o.conf.DSN == "" {
		return usagef("--audit-retention needs a store, which has the audit: name it with --store")
	}
	if err := o.source.check(cmd, o.conf.Files); err != nil {
		return err
	}
	if _, err := registry.ParseSelector(o.labels); err != nil {
		return usagef("-l: %w", err)
	}
	switch {
	case o.accessLog != "" && !slices.Contains(accessLogs, o.accessLog):
		return usagef("--access-log %q: expected one of %s", o.accessLog, strings.Join(accessLogs, ", "))
	case o.watch && slices.Contains(o.conf.Files, "-"):
		return usagef("--watch cannot follow -f -: name files or folders")
	case (o.tlsCert == "") != (o.tlsKey == ""):
		return usagef("--tls-cert and --tls-key belong together")
	case o.maxCalls < 1:
		return usagef("--max-calls %d: expected 1 or more", o.maxCalls)
	case !(o.share > 0 && o.share <= 1):
		return usagef("--principal-share %g: expected a number above 0 and at most 1, such as 0.25", o.share)
	case o.turnIdle <= 0:
		return usagef("--turn-idle %s: expected a time above 0, such as 60s", o.turnIdle)
	case o.approvalWait < 0:
		return usagef("--approval-wait %s: expected 0s or more", o.approvalWait)
	case o.delay < 0:
		return usagef("--shutdown-delay %s: expected 0s or more", o.delay)
	case o.drain < 0:
		return usagef("--drain-timeout %s: expected 0s or more", o.drain)
	}
	return nil
}

func (o *serveOptions) run(ctx context.Context) error {
	h, err := o.httpOptions()
	if err != nil {
		return err
	}
	instructions, err := o.readInstructions()
	if err != nil {
		return err
	}
	level := slog.LevelInfo
	switch {
	case o.verbose:
		level = slog.LevelDebug
	case o.person:
		level = slog.LevelWarn
	}
	defer tty.KeepOnBrokenPipe()() // calls go on when nobody reads the log
	o.log = slog.New(telemetry.LogHandler(slog.NewJSONHandler(o.err, &slog.HandlerOptions{Level: level})))
	o.lasting = true
	var ln net.Listener // before anything is started
	if o.http != "" {
		if ln, err = server.Listen(ctx, o.http, h); err != nil {
			return notListening("http", err)
		}
		defer ln.Close() // the server closes it too
	}
	metrics, err := o.listenForMetrics(ctx)
	if err != nil {
		return err
	}
	if metrics != nil {
		defer metrics.Close() // its server closes it too
	}
	memory, _ := parseBytes(o.memory) // check read it
	o.limitMemory(memory)
	drain := o.drain
	if drain == 0 {
		drain = -1
	}
	o.conf.Gateway.Hurry = tty.Hurry(ctx, o.delay+o.drain+time.Second)
	pulled, err := o.pull(&h)
	if err != nil {
		return err
	}
	if pulled != nil {
		defer o.closing(pulled)
		o.conf.Gateway.Source = pulledFrom{pulled}
	}
	if err := o.openConsole(ctx); err != nil {
		return err
	}
	w, err := o.open(ctx, func(g *gateway.Options) {
		if o.console != nil {
			g.OnCall, g.OnPending = o.console.Called, o.console.Waits
		}
		g.Watch, g.HTTP, g.TokenFile = o.watch || pulled != nil, h, o.tokenFile
		g.AuditRetention, _ = parseRetention(o.retention) // check read it
		g.Replicas, g.ApprovalWait = o.replicas(), o.approvalWait
		g.Subset = gateway.Subset{Namespace: o.conf.Namespace, Selector: o.labels, Tools: o.tools, Prompts: o.prompts}
		g.Server = server.Options{AccessLog: o.newAccessLog(), ShutdownDelay: o.delay, DrainTimeout: drain, TurnIdle: o.turnIdle, Instructions: instructions}
		g.Limits = o.limits(memory)
	})
	if err != nil {
		return err
	}
	defer o.closing(w)
	if metrics != nil {
		defer o.serveMetrics(ctx, metrics, w.Admission())()
	}
	if o.console != nil {
		o.console.Attach(w.Gateway)
		defer func() { _ = o.console.Close() }() // it has no error; as an io.Closer it would link all that its methods mention
		defer func() {
			for _, end := range o.ended {
				end()
			}
		}()
	}
	if named, _ := o.env("TOOLCTL_STORE"); named != "" && w.Store == nil {
		o.log.Warn("TOOLCTL_STORE is not used: with -f, -k or --source there is a store only where --store names it")
	}
	o.logViolations(w)
	if o.http == "" {
		return w.ServeStdio(ctx, o.in, o.out)
	}
	return notListening("http", w.Serve(ctx, ln))
}

// pull opens the source, if there is one, and its webhook.
func (o *serveOptions) pull(h *server.HTTPOptions) (*source.Remote, error) {
	if o.source.address == "" {
		return nil, nil
	}
	check := func(ctx context.Context, set *manifest.Set) ([]v1.Violation, error) {
		c, err := o.config(ctx)
		if err != nil {
			return nil, err
		}
		check, err := c.Checking(action.Reading{})
		if err != nil {
			return nil, err
		}
		return check.Set(ctx, set)
	}
	remote, err := o.source.remote(o.app, true, manifest.Options{}, check)
	if err != nil || o.http == "" {
		return remote, err
	}
	hook, err := o.source.hook(o.app, remote)
	if hook != nil {
		h.Routes = append(h.Routes, admission.Route{Pattern: source.HookPath, MaxBody: source.MaxDelivery, Unbuffered: true, Enter: admission.Open(hook)})
	}
	return remote, err
}

// notListening makes wrong usage of an address that cannot be listened at.
func notListening(flag string, err error) error {
	var at *server.ListenError
	switch {
	case !errors.As(err, &at):
		return err
	case errors.Is(err, server.ErrExposed):
		return usagef("--%s: %w: add --token-file or --oauth-issuer, listen on 127.0.0.1, or pass --insecure to allow it", flag, at)
	case errors.Is(err, syscall.EADDRINUSE):
		return usagef("--%s: %w: end what listens there, or choose another port", flag, at)
	}
	return usagef("--%s: %w: expected an address of this machine with a port, such as 127.0.0.1:8080", flag, at)
}

func (o *serveOptions) httpOptions() (server.HTTPOptions, error) {
	h := server.HTTPOptions{Insecure: o.insecure, AllowedHosts: o.hosts, AllowedOrigins: o.origins}
	if err := o.apply(&h); err != nil {
		return h, err
	}
	scheme := "http"
	if o.tlsCert != "" {
		pair, err := loadKeyPair(o.tlsCert, o.tlsKey)
		if err != nil {
			return h, statusError{exitInvalid, fmt.Sprintf("--tls-cert %s, --tls-key %s: %s", o.tlsCert, o.tlsKey, err)}
		}
		h.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		scheme = "https"
	}
	authenticates := h.Tokens != nil || h.OAuth != nil
	h.BothLoopbacks = o.ui && !authenticates && scheme == "http" && o.uiURL == "" // where the link to the console has a name below localhost
	h.Listening = o.listens(scheme, authenticates)
	return h, nil
}

func loadKeyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := regular.ReadFile(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := regular.ReadFile(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}

// logViolations logs what is wrong with the manifests that are served all the same.
func (a *app) logViolations(w *action.Workspace) {
	for _, f := range w.Violations() {
		if !f.IsWarning() {
			a.log.Warn("manifest error", "error", f.String())
		}
	}
}
