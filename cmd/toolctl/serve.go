package main

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/telemetry"
)

type serveOptions struct {
	*app
	action.Serve
	uiOptions
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

Each Toolset is served at /mcp/NAME, with its own tools, prompts and resources, for the callers
that it admits; --toolset serves one alone. Clients that would see more tools than they can
handle see two tools instead, find_tools and call_tool; --discovery list shows them all at
/mcp. See docs/toolsets.md and docs/search.md.

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
  toolctl serve --toolset support
  toolctl serve --http 127.0.0.1:8080 --source 'git+https://git.example.com/team/tools//prod?ref=main'
  toolctl serve --http :8443 --token-file tokens --tls-cert cert.pem --tls-key key.pem`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.check(cmd); err != nil {
				return err
			}
			return o.run(cmd.Context())
		},
	}
	o.bind(cmd)
	cmd.SetUsageFunc(serveUsage)
	return cmd
}

// bind declares the flags in the order of the help. Each flag of serveHeadings begins a group.
func (o *serveOptions) bind(cmd *cobra.Command) {
	f, g := cmd.Flags(), &o.conf.Gateway
	f.SortFlags = false

	f.StringVar(&o.Address, "http", "", "address to listen on, such as 127.0.0.1:8080 (default: stdin and stdout)")
	f.BoolVar(&g.HTTP.Insecure, "insecure", false, "allow other machines to connect without authentication; needs --http")
	f.StringVar(&o.TLSCert, "tls-cert", "", "PEM file with the certificate for HTTPS; needs --http and --tls-key")
	f.StringVar(&o.TLSKey, "tls-key", "", "PEM file with the certificate's key")
	f.StringArrayVar(&g.HTTP.AllowedHosts, "allowed-host", nil, "host name that clients may send in the Host header; may be repeated; needs --http")
	f.StringArrayVar(&g.HTTP.AllowedOrigins, "allowed-origin", nil, "origin of web pages that may use the server, such as http://localhost:6274; may be repeated; needs --http")
	f.BoolVar(&g.HTTP.Stateless, "stateless", false, "answer each request of clients with protocol 2025-11-25 or older without a session, for clients that send no Mcp-Session-Id; needs --http")
	f.StringVar(&o.Instructions, "instructions", "", "instructions for models, as text or @FILE (default: the instructions of the only MCP server, else a short text about calls)")
	f.DurationVar(&g.Server.ShutdownDelay, "shutdown-delay", 0, "how long a stopping server still accepts requests while /readyz fails, so that load balancers can react (default: 5s with --replica-key-file, else 0s); needs --http")
	f.DurationVar(&g.Server.DrainTimeout, "drain-timeout", 10*time.Second, "maximum time for running calls to end after the server stops accepting new ones")

	f.StringVar(&g.TokenFile, "token-file", "", "file with one bearer token per line, as NAME:HEX or NAME:HEX:GROUP,GROUP, where HEX is the SHA-256 of the token; toolctl reloads it when it changes; needs --http")
	f.StringVar(&o.OAuth.Issuer, "oauth-issuer", "", "authorization server whose access tokens (iss) are accepted; needs --http and --oauth-audience")
	f.StringSliceVar(&o.OAuth.Audiences, "oauth-audience", nil, "audience (aud) that tokens must have, such as https://tools.example.com/mcp; any one listed is enough")
	f.StringVar(&o.OAuth.Resource, "oauth-resource", "", "public address of /mcp (default: the first --oauth-audience that is a URL)")
	f.StringVar(&o.OAuth.JWKSURL, "oauth-jwks-url", "", "address of the issuer's keys (default: the address in its metadata)")
	f.StringSliceVar(&o.OAuth.Scopes, "oauth-scopes", nil, "scopes that a token must have (all of them), such as tools:call")
	f.StringVar(&o.OAuth.PrincipalClaim, "oauth-principal-claim", "sub", "claim with the name of the principal, such as email")
	f.StringVar(&o.OAuth.GroupsClaim, "oauth-groups-claim", "groups", "claim with the groups of the principal, for approvers of policies")

	f.IntVar(&g.Limits.MaxCalls, "max-calls", admission.DefaultMaxCalls, "maximum number of concurrent calls")
	f.Float64Var(&g.Limits.PrincipalShare, "principal-share", admission.DefaultPrincipalShare, "fraction of --max-calls and of the other limits that one principal may use; anonymous callers may use all of them")
	parsed(f, &g.Limits.MemoryBudget, "memory-budget", "256MiB", parseBytes, "memory for all decoded requests and results; a request that exceeds it waits briefly and is then refused")
	parsed(f, &g.Limits.Rate.PerSecond, "rate-limit", "", parseRate, "maximum request rate of one principal, or of one address if there is no authentication, such as 100/s, 600/m or 5000/h; needs --http")
	f.IntVar(&g.Limits.Rate.Burst, "rate-burst", 0, "number of requests that may exceed the rate in a burst (default: the number that --rate-limit allows in a second, at least 10)")
	f.Int64Var(&g.Limits.MaxBody, "max-request-bytes", admission.DefaultMaxBody, "maximum size of a request in bytes; needs --http")
	f.Int64Var(&g.Limits.MaxResultBytes, "max-result-bytes", admission.DefaultMaxResult, "maximum size of a result in bytes")
	f.IntVar(&g.HTTP.MaxSessions, "max-sessions", 0, "maximum number of sessions (of clients with protocol 2025-11-25 or older); at the limit a new session ends the one that was idle longest (default: a quarter of --memory-budget at 20 KiB each, which is 3276); needs --http")
	f.DurationVar(&g.HTTP.SessionTimeout, "session-idle", 30*time.Minute, "end a session after this long without requests and streams; needs --http")
	f.DurationVar(&g.Server.TurnIdle, "turn-idle", 60*time.Second, "end a session's unnamed turn after this long without calls")
	f.DurationVar(&g.ApprovalWait, "approval-wait", 0, "how long to hold a call for an approval decision before answering \"pending\"")

	f.BoolVar(&g.Watch, "watch", false, "follow changes of the files or the store")
	f.StringVarP(&g.Subset.Selector, "selector", "l", "", "serve only tools with these labels, such as team=pay,tier!=old")
	f.StringVar(&g.Subset.Selector, "select", "", "the same as --selector")
	_ = f.MarkHidden("select")
	f.StringArrayVar(&g.Subset.Tools, "tools", nil, "serve only tools with this name, which may end in *; may be repeated")
	f.StringArrayVar(&g.Subset.Prompts, "prompt", nil, "serve only prompts with this name, which may end in *, and their tools; may be repeated")
	f.StringVar(&g.Subset.Toolset, "toolset", "", "serve only this toolset, at /mcp too")
	f.StringVar(&g.Server.Discovery, "discovery", "", "how clients of /mcp find tools: list, search, or auto, which is search for more than 40 tools or 8000 tokens (default: auto, or that of --toolset)")
	o.bindEmbeddings(f)
	_ = cmd.RegisterFlagCompletionFunc("discovery", cobra.FixedCompletions(v1.Discoveries, noFiles))
	_ = cmd.RegisterFlagCompletionFunc("toolset", o.completeNames(v1.KindToolset))
	_ = cmd.RegisterFlagCompletionFunc("tools", o.completeNames(v1.KindTool))
	_ = cmd.RegisterFlagCompletionFunc("prompt", o.completeNames(v1.KindPrompt))
	bindPull(f, &o.Pull)
	f.StringVar(&o.HookSecret, "hook-secret-file", "", "with --source: file with the secret of the webhook at "+source.HookPath+" (default: $"+action.HookSecretVariable+"; without either there is no webhook); needs --http")

	o.bindNetwork(f, "")

	f.StringVar(&o.Replicas.KeyFile, "replica-key-file", "", "file with the shared key of all replicas on one store: a line of 64 hex digits, and a second line while you change keys; needs --http and a store")
	f.StringVar(&o.Replicas.Address, "replica-address", "", "address at which the other replicas reach this one, such as http://10.0.0.7:8080 (default: the listen address, or the first one that is not loopback if it listens on all)")

	f.BoolVar(&o.ui, "ui", false, "also serve the console at /ui/; needs --http")
	f.StringVar(&o.uiURL, "ui-url", "", "public address of the console, such as https://tools.example.com/ui/ (default: the listen address); needs --ui")
	f.StringArrayVar(&o.operators.Principals, "ui-operator", nil, "principal (or prefix*) that may view everyone's calls, server and change details, and undo changes; may be repeated; needs --ui")
	f.StringArrayVar(&o.operators.Groups, "ui-operator-group", nil, "group whose members may do the same; may be repeated; needs --ui")
	f.StringVar(&o.hook.URL, "approval-webhook", "", "URL to notify of each new pending call, with a link to decide; needs --ui")
	f.StringVar(&o.hookSecret, "approval-webhook-secret-file", "", "file with the HMAC key that signs the notifications")
	f.StringVar(&o.hook.Format, "approval-webhook-format", console.FormatJSON, "format of the notifications: json or slack")
	o.bindTestReport(f)

	o.bindAudit(cmd)
	bindRetention(f, &g.AuditRetention, "keep audit records this long, and delete older ones once an hour; replicas on one store share this work; needs a store")
	f.StringVar(&o.AccessLog, "access-log", "", "format of the log line for each call on stderr: json, text or none (default: json with --http, else none)")
	_ = cmd.RegisterFlagCompletionFunc("access-log", cobra.FixedCompletions(action.AccessLogs, noFiles))
	f.StringVar(&o.Metrics, "metrics-addr", "", "address that serves /metrics for Prometheus, such as 127.0.0.1:9090 (default: none)")
}

// serveHeadings has the title of each group of flags in the help, by the first flag of the group.
var serveHeadings = map[string]string{
	"http": "Listening", "token-file": "Authentication", "max-calls": "Limits", "watch": "Sources", "allow-exec": "Permissions of manifests",
	"replica-key-file": "Replicas", "ui": "Console", "audit": "Observability",
}

// serveUsage prints the usage of "toolctl serve" with its flags in groups.
func serveUsage(cmd *cobra.Command) error {
	w := cmd.OutOrStderr()
	fmt.Fprintf(w, "Usage:\n  %s\n\nExamples:\n%s\n", cmd.UseLine(), cmd.Example)
	var groups []*pflag.FlagSet
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if title := serveHeadings[f.Name]; title != "" {
			groups = append(groups, pflag.NewFlagSet(title, pflag.ContinueOnError))
			groups[len(groups)-1].SortFlags = false
		}
		groups[len(groups)-1].AddFlag(f)
	})
	for _, group := range groups {
		fmt.Fprintf(w, "\n%s:\n%s", group.Name(), group.FlagUsages())
	}
	_, err := fmt.Fprintf(w, "\nGlobal Flags:\n%s", cmd.InheritedFlags().FlagUsages())
	return err
}

// serveNeeds lists the flags that have no effect without another flag.
var serveNeeds = []need{
	{"http", ": over stdin and stdout the only client is the one that started this program", []string{
		"insecure", "tls-cert", "tls-key", "allowed-host", "allowed-origin", "hook-secret-file", "shutdown-delay", "ui", "ui-url", "approval-webhook",
		"approval-webhook-secret-file", "approval-webhook-format", "ui-operator", "ui-operator-group", "test-report", "token-file", "oauth-issuer",
		"oauth-audience", "oauth-resource", "oauth-jwks-url", "oauth-scopes", "oauth-principal-claim", "oauth-groups-claim", "rate-limit", "rate-burst",
		"max-request-bytes", "max-sessions", "session-idle", "stateless", "replica-key-file", "replica-address",
	}},
	{"ui", "", []string{"ui-url", "approval-webhook", "approval-webhook-secret-file", "approval-webhook-format", "ui-operator", "ui-operator-group", "test-report"}},
	{"oauth-issuer", ": the authorization server whose tokens are accepted", []string{
		"oauth-audience", "oauth-resource", "oauth-jwks-url", "oauth-scopes", "oauth-principal-claim", "oauth-groups-claim",
	}},
	{"rate-limit", "", []string{"rate-burst"}},
	{"replica-key-file", ": the key that the replicas share", []string{"replica-address"}},
	{"source", "", []string{"interval", "require-signed", "hook-secret-file", "allow-rollback"}},
}

// replicaShutdownDelay is the default of --shutdown-delay with replicas. It gives the other replicas, and a load
// balancer that queries /readyz once a second, time to notice that this replica stops.
const replicaShutdownDelay = 5 * time.Second

func (o *serveOptions) check(cmd *cobra.Command) error {
	f, g := cmd.Flags(), &o.conf.Gateway
	if err := checkNeeds(f, serveNeeds); err != nil {
		return err
	}
	if o.Replicas.KeyFile != "" && !f.Changed("shutdown-delay") {
		g.Server.ShutdownDelay = replicaShutdownDelay
	}
	if _, err := registry.ParseSelector(g.Subset.Selector); err != nil {
		return usagef("-l: %w", err)
	}
	if d := &g.Server.Discovery; *d == "" && g.Subset.Toolset == "" {
		*d = v1.DiscoveryAuto
	} else if *d != "" && !slices.Contains(v1.Discoveries, *d) {
		return usagef("--discovery %q: expected one of %s", *d, strings.Join(v1.Discoveries, ", "))
	}
	switch stdin := slices.Contains(o.conf.Files, "-"); {
	case stdin && o.Address == "":
		return usagef("-f - and serving over stdin cannot be used together: use files, or --http")
	case stdin && g.Watch:
		return usagef("--watch cannot follow -f -: name files or folders")
	case (o.TLSCert == "") != (o.TLSKey == ""):
		return usagef("--tls-cert and --tls-key belong together")
	case f.Changed("replica-key-file") && o.Replicas.KeyFile == "":
		return usagef("--replica-key-file: expected the path of a file")
	case o.hook.URL == "" && (f.Changed("approval-webhook-secret-file") || f.Changed("approval-webhook-format")):
		return usagef("--approval-webhook-secret-file and --approval-webhook-format need --approval-webhook")
	case slices.Contains(slices.Concat(o.operators.Principals, o.operators.Groups), ""):
		return usagef("--ui-operator and --ui-operator-group: expected a name")
	case o.uiURL != "" && !strings.HasPrefix(o.uiURL, "http://") && !strings.HasPrefix(o.uiURL, "https://"):
		return usagef("--ui-url %q: expected a URL such as https://tools.example.com/ui/", o.uiURL)
	}
	return checkLimits(f,
		limit{"rate-burst", g.Limits.Rate.Burst >= 0, "1 or more"},
		limit{"max-request-bytes", g.Limits.MaxBody >= 1, "1 or more"},
		limit{"max-sessions", g.HTTP.MaxSessions >= 1 || !f.Changed("max-sessions"), "1 or more"},
		limit{"session-idle", g.HTTP.SessionTimeout >= time.Second, "1s or more, such as 30m"},
		limit{"max-result-bytes", g.Limits.MaxResultBytes >= 1, "1 or more"},
		limit{"max-calls", g.Limits.MaxCalls >= 1, "1 or more"},
		limit{"principal-share", g.Limits.PrincipalShare > 0 && g.Limits.PrincipalShare <= 1, "a number above 0 and at most 1, such as 0.25"},
		limit{"turn-idle", g.Server.TurnIdle > 0, "a positive duration, such as 60s"},
		limit{"approval-wait", g.ApprovalWait >= 0, "0s or more"},
		limit{"shutdown-delay", g.Server.ShutdownDelay >= 0, "0s or more"},
		limit{"drain-timeout", g.Server.DrainTimeout >= 0, "0s or more"},
	)
}

func (o *serveOptions) run(ctx context.Context) error {
	level := slog.LevelInfo
	switch {
	case o.verbose:
		level = slog.LevelDebug
	case o.person:
		level = slog.LevelWarn
	}
	defer tty.KeepOnBrokenPipe()() // calls must continue even if nobody reads the log
	o.log = slog.New(telemetry.LogHandler(slog.NewJSONHandler(o.err, &slog.HandlerOptions{Level: level})))
	o.lasting, o.scraped = true, o.Metrics != ""
	g := &o.conf.Gateway
	g.Hurry = tty.Hurry(ctx, g.Server.ShutdownDelay+g.Server.DrainTimeout+time.Second)
	if g.Server.DrainTimeout == 0 {
		g.Server.DrainTimeout = -1 // calls are cancelled at once
	}
	g.Subset.Namespace = o.conf.Namespace
	if o.ui {
		if err := o.openConsole(ctx); err != nil {
			return err
		}
	}
	o.Config, o.In, o.Out, o.Log, o.Telemetry = o.reaching(ctx), o.in, o.out, o.err, o.telemetry
	return o.Serve.Run(ctx)
}
