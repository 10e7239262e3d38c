package action

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/internal/seal"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp/server"
	"toolctl.dev/toolctl/pkg/replica"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/telemetry"
)

// Serve serves the tools of manifests as one MCP server, over stdin and stdout or over HTTP.
type Serve struct {
	// Config selects the manifests. Its Gateway selects the served objects and the clients that may use them, and the
	// fields below add to it.
	*Config
	// In and Out connect to the client that started the program. They are used if Address is empty.
	In  io.Reader
	Out io.Writer
	// Address is the address to listen on for HTTP, such as 127.0.0.1:8080. Default: Serve uses In and Out.
	Address string
	// OAuth accepts the access tokens of its Issuer. Default: none.
	OAuth server.OAuth
	// Replicas makes this server one of several replicas if it has a KeyFile. Default: none.
	Replicas gateway.Replicas
	// TLSCert and TLSKey are PEM files for HTTPS. Default: HTTP.
	TLSCert, TLSKey string
	// Instructions is a text for models, or @FILE.
	Instructions string
	// AccessLog is the format of the line for each call: json, text or none. Default: json with Address, else none.
	AccessLog string
	// Log receives these lines.
	Log io.Writer
	// Metrics is the address that serves /metrics of Telemetry for Prometheus. Default: none.
	Metrics   string
	Telemetry *telemetry.Telemetry
	// Pull is the repository to pull the manifests from, instead of Files. Default: none.
	Pull Pull
	// HookSecret is the file with the secret of the webhook. Default: [HookSecretVariable].
	HookSecret string
	// Listening is called with the address, the URL without a path, and whether clients must authenticate.
	Listening func(at net.Addr, url string, authenticates bool)
	// Opened is called with the gateway before it serves. The function that it returns is called at the end.
	Opened func(*gateway.Gateway) (end func())
}

// HookSecretVariable is the environment variable with the secret of the webhook if there is no file.
const HookSecretVariable = "TOOLCTL_HOOK_SECRET" //nolint:gosec // it is the name of one

// AccessLogs are the formats of [Serve.AccessLog].
var AccessLogs = []string{"json", "text", "none"}

// Run serves until ctx ends or, without Address, until In does.
func (s *Serve) Run(ctx context.Context) (err error) {
	g := &s.Gateway
	if err := s.check(g); err != nil {
		return err
	}
	if err := s.read(g); err != nil {
		return err
	}
	closing := func(c io.Closer) {
		if err := c.Close(); err != nil { // the caller already has the result
			g.Logger.Warn("closing failed", slog.Any("error", err))
		}
	}
	var ln net.Listener // a wrong address is reported before anything starts
	if s.Address != "" {
		if ln, err = server.Listen(ctx, s.Address, g.HTTP); err != nil {
			return notListening("http", err)
		}
		defer ln.Close() // the server also closes it
	}
	var metrics net.Listener
	if s.Metrics != "" {
		if metrics, err = new(net.ListenConfig).Listen(ctx, "tcp", s.Metrics); err != nil {
			return notListening("metrics-addr", &server.ListenError{Address: s.Metrics, Err: err})
		}
		defer metrics.Close() // its server also closes it
		g.Logger.Info("metrics", "url", "http://"+metrics.Addr().String()+"/metrics")
	}
	g.Server.AccessLog = s.accessLog()
	s.limitMemory(g.Limits.MemoryBudget)
	remote, err := s.pull(g)
	if err != nil {
		return err
	}
	if remote != nil {
		defer closing(remote)
		g.Source, g.Watch = remote, true
	}
	w, err := s.Open(ctx)
	if err != nil {
		return err
	}
	defer closing(w)
	if metrics != nil {
		defer s.Telemetry.Serve(metrics, func(metrics http.Handler) http.Handler {
			return w.Admission().Routes(admission.Route{Pattern: "GET /metrics", Kind: admission.Of(admission.KindProbe), Enter: admission.Open(metrics)})
		})()
	}
	if s.Opened != nil {
		defer s.Opened(w.Gateway)()
	}
	if named, _ := s.env("TOOLCTL_STORE"); named != "" && w.Store == nil {
		g.Logger.Warn("TOOLCTL_STORE is ignored: with -f, -k or --source, only --store selects a store")
	}
	for _, v := range v1.Errors(w.Violations()) { // the other manifests are served
		g.Logger.Warn("manifest error", "error", v.String())
	}
	if ln == nil {
		return w.ServeStdio(ctx, s.In, s.Out)
	}
	return notListening("http", w.Serve(ctx, ln))
}

// check refuses contradicting options.
func (s *Serve) check(g *gateway.Options) error {
	files := len(s.Files) > 0 && s.DSN == ""
	switch o := &s.OAuth; {
	case s.AccessLog != "" && !slices.Contains(AccessLogs, s.AccessLog):
		return usagef("--access-log %q: expected one of %s", s.AccessLog, strings.Join(AccessLogs, ", "))
	case s.Replicas.KeyFile != "" && files:
		return usagef("--replica-key-file needs a shared store: name it with --store")
	case g.AuditRetention != 0 && files:
		return usagef("--audit-retention needs a store for the audit log: name it with --store")
	case o.Issuer == "":
	case len(o.Audiences) == 0:
		return usagef("--oauth-issuer needs --oauth-audience: tokens for other servers must not be accepted; pass the audience (aud) of tokens for this server, such as https://tools.example.com/mcp")
	case o.Resource == "" && !strings.Contains(strings.Join(o.Audiences, " "), "://"):
		return usagef("--oauth-audience %s: no value is a URL: pass the public address of /mcp with --oauth-resource", strings.Join(o.Audiences, ","))
	default:
		if err := o.Validate(); err != nil {
			return usagef("OAuth: %w", err)
		}
		g.HTTP.OAuth = o
	}
	return nil
}

// read reads the files that the options name.
func (s *Serve) read(g *gateway.Options) (err error) {
	if r := &s.Replicas; r.KeyFile != "" {
		if r.Address != "" {
			if err := replica.CheckAddress(r.Address); err != nil {
				return usagef("--replica-address %q: %w", r.Address, err)
			}
		}
		switch _, err := seal.ReadFile(r.KeyFile); {
		case errors.Is(err, fs.ErrNotExist):
			return usagef("--replica-key-file: %w: create it with: (umask 077; openssl rand -hex 32 > FILE)", err)
		case err != nil:
			return invalidf("--replica-key-file: %w", err)
		}
		g.Replicas = r
	}
	if g.TokenFile != "" {
		g.HTTP.Tokens, err = gateway.ReadTokens(g.TokenFile)
		if errors.As(err, new(*fs.PathError)) {
			return usagef("--token-file: %w", err)
		}
		if err != nil {
			return &InvalidError{err}
		}
	}
	scheme := "http"
	if s.TLSCert != "" {
		pair, err := loadKeyPair(s.TLSCert, s.TLSKey)
		if err != nil {
			return invalidf("--tls-cert %s, --tls-key %s: %w", s.TLSCert, s.TLSKey, err)
		}
		g.HTTP.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		scheme = "https"
	}
	authenticates := g.HTTP.Tokens != nil || g.HTTP.OAuth != nil
	g.HTTP.BothLoopbacks = g.HTTP.BothLoopbacks && !authenticates && g.HTTP.TLS == nil
	g.HTTP.Listening = func(at net.Addr) {
		url := scheme + "://" + at.String()
		g.Logger.Info("listening", "url", url+"/mcp")
		if s.Listening != nil {
			s.Listening(at, url, authenticates)
		}
	}
	const most = 64 << 10 // models read them in every conversation
	g.Server.Instructions = s.Instructions
	if path, isFile := strings.CutPrefix(s.Instructions, "@"); isFile {
		text, err := regular.ReadUpTo(path, most)
		switch {
		case err != nil:
			return usagef("--instructions: %w", err)
		case len(text) > most:
			return usagef("--instructions: %s is larger than %d bytes", path, most)
		}
		g.Server.Instructions = strings.TrimSpace(string(text))
	}
	return nil
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

// accessLog returns the log for the lines about calls; nil if there is no such log.
func (s *Serve) accessLog() *slog.Logger {
	format := s.AccessLog
	if format == "" && s.Address != "" {
		format = "json"
	}
	switch format {
	case "json":
		return slog.New(telemetry.LogHandler(slog.NewJSONHandler(s.Log, nil)))
	case "text":
		return slog.New(telemetry.LogHandler(slog.NewTextHandler(s.Log, nil)))
	}
	return nil
}

// limitMemory sets a soft memory limit for the Go runtime: the budget for decoded requests and results, and a reserve
// for the rest of the process. GOMEMLIMIT overrides it.
func (s *Serve) limitMemory(budget int64) {
	const anyway = 160 << 20
	budget = cmp.Or(budget, admission.DefaultMemoryBudget)
	if v, ok := s.env("GOMEMLIMIT"); ok && v != "" || budget > math.MaxInt64-anyway {
		return
	}
	debug.SetMemoryLimit(budget + anyway)
}

// pull opens the source, if there is one, and its webhook.
func (s *Serve) pull(g *gateway.Options) (*pulled, error) {
	if s.Pull.Address == "" {
		return nil, nil
	}
	remote, err := s.Pull.open(s.Config, func(context.Context) ([]v1.Object, error) { return nil, nil }, source.RemoteOptions{Older: true, Logger: g.Logger})
	if err != nil || s.Address == "" {
		return remote, err
	}
	from := HookSecretVariable
	secret, _ := s.env(from)
	if s.HookSecret != "" {
		text, err := regular.ReadFile(s.HookSecret)
		if err != nil {
			return nil, usagef("--hook-secret-file: %w", err)
		}
		secret, from = strings.TrimRight(string(text), "\r\n"), s.HookSecret
	} else if secret == "" {
		return remote, nil
	}
	hook, err := source.NewHook(secret, remote.Pull)
	if err != nil {
		return nil, invalidf("%s: %w", from, err)
	}
	g.HTTP.Routes = append(g.HTTP.Routes, admission.Route{Pattern: source.HookPath, MaxBody: source.MaxDelivery, Unbuffered: true, Enter: admission.Open(hook)})
	return remote, nil
}

// notListening turns an address that the server cannot listen on into wrong usage.
func notListening(flag string, err error) error {
	at, ok := errors.AsType[*server.ListenError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, server.ErrExposed):
		return usagef("--%s: %w: add --token-file or --oauth-issuer, listen on 127.0.0.1, or pass --insecure to allow it", flag, at)
	case errors.Is(err, syscall.EADDRINUSE):
		return usagef("--%s: %w: stop the program that listens there, or choose another port", flag, at)
	}
	return usagef("--%s: %w: expected an address of this machine with a port, such as 127.0.0.1:8080", flag, at)
}
