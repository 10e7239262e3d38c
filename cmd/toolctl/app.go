package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/telemetry"
)

// app is what the commands share: the streams, the global flags, and how the
// parts are joined. What is expensive to make is made when a command asks.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	// interrupted is closed by Ctrl-C, when nothing may be waited for.
	interrupted <-chan struct{}
	log         *slog.Logger // of a command that logs in its own way, else nil
	// recorder takes what executors do; nil when nothing is recorded.
	recorder *scenario.Recorder
	// telemetry is made by watched; scraped says that Prometheus asks for its metrics, lasting
	// that the command runs until it is stopped.
	telemetry        *telemetry.Telemetry
	scraped, lasting bool

	// bestEffort lets calls go on when the audit cannot be written.
	bestEffort bool

	// pulled is where the manifests come from instead of files and the store; nil when they do not.
	pulled *source.Remote

	// Global flags.
	files      []string // those of -k too
	overlays   []string // -k
	dsn        string
	storeMax   int64 // bytes; 0 for no limit
	storeConns int   // to a database; 0 for the default
	namespace  string
	selector   string // -l, of the commands that have it
	output     string
	formats    []string // that the command knows, see checkFormat
	verbose    bool
	locked     bool
	lockFile   string

	// Flags of commands that reach tools and servers.
	permit       permitted
	allowNetwork []string
}

func (a *app) logger() *slog.Logger {
	if a.log != nil {
		return a.log
	}
	level := slog.LevelWarn
	if a.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: level}))
}

// closing closes what a command opened; what fails then is too late for an exit code.
func (a *app) closing(c io.Closer) {
	if err := c.Close(); err != nil {
		a.logger().Warn("closing failed", slog.Any("error", err))
	}
}

// open opens the workspace of the files given with -f, else of the store. changes may add to
// the options of the gateway.
func (a *app) open(ctx context.Context, changes ...func(*gateway.Options)) (*action.Workspace, error) {
	c, err := a.reaching(ctx)
	if err != nil {
		return nil, err
	}
	return c.Open(ctx, changes...)
}

// reaching are the options of verbs that call tools.
func (a *app) reaching(ctx context.Context) (_ *action.Config, err error) {
	c := a.stored(ctx)
	if c.Gateway, err = a.gatewayOptions(ctx); err != nil {
		return nil, err
	}
	c.Gateway.AuditBestEffort = a.bestEffort
	if a.pulled != nil {
		c.Gateway.Source = pulledFrom{a.pulled}
	}
	return c, nil
}

// gatewayOptions are those of all commands that call tools.
func (a *app) gatewayOptions(ctx context.Context) (gateway.Options, error) {
	reach, err := a.network()
	if err != nil {
		return gateway.Options{}, err
	}
	rules, env, err := a.permits()
	if err != nil {
		return gateway.Options{}, err
	}
	t := a.watched(ctx)
	o := gateway.Options{
		Env: a.env, Logger: a.logger(), TracerProvider: t.TracerProvider(), MeterProvider: t.MeterProvider(), Version: buildVersion().Version,
		AllowPrivateNetwork: a.permit.private, AllowNetwork: reach, AllowEnv: env, Permit: rules, Locked: a.locked, LockFile: a.lockFile, Hurry: a.interrupted,
	}
	if a.recorder != nil {
		o.WrapExecutors = a.recorder.Wrap
	}
	if isTerminal(a.err) {
		o.OpenBrowser = func(_ context.Context, server v1.Key, address string) error {
			fmt.Fprintf(a.err, "to sign in to MCP server %s, open this address:\n  %s\n", server.Name, address)
			tty.OpenBrowser(address)
			return nil
		}
	}
	return o, nil
}

// stored are the options of verbs that are about the store alone.
func (a *app) stored(ctx context.Context) *action.Config {
	return &action.Config{
		Files: a.files, Overlays: a.overlays, Stdin: tty.Stdin(ctx, a.in), DSN: a.dsn, MaxStoreBytes: a.storeMax, MaxStoreConnections: a.storeConns,
		Namespace: a.namespace, By: a.whoami(), Gateway: gateway.Options{Env: a.env, Version: buildVersion().Version, LockFile: a.lockFile},
	}
}

// config are the options of verbs that read manifests, and check what these may do.
func (a *app) config(ctx context.Context) (*action.Config, error) {
	c := a.stored(ctx)
	c.Unbuilt = func(folders []string) {
		fmt.Fprintf(a.err, "warning: %s with a kustomization.yaml read file by file, and not built: give -k %s, for example\n", count(len(folders), "folder"), folders[0])
	}
	var err error
	c.Gateway.Permit, c.Gateway.AllowEnv, err = a.permits()
	return c, err
}

// storeDSN says where the store is.
func (a *app) storeDSN() (string, error) {
	return (&action.Config{DSN: a.dsn, Gateway: gateway.Options{Env: a.env}}).StoreDSN(false)
}

// shownDSN is the store of the command line as it may be printed.
func (a *app) shownDSN() string {
	shown, _ := store.Shown(a.dsn)
	return shown
}

// warnViolations says on stderr that the files have violations, when the command goes on without them.
func (a *app) warnViolations(w *action.Workspace) {
	errs, files := 0, map[string]bool{}
	var last v1.Violation
	for _, f := range w.Violations() {
		if !f.IsWarning() {
			errs++
			last = f
			files[f.Source.File] = true
		}
	}
	if errs == 1 && last.Path == "" { // the file is no manifest at all
		fmt.Fprintf(a.err, "warning: %s\n", last)
	} else if errs > 0 {
		fmt.Fprintf(a.err, "warning: %s in %s: see 'toolctl validate -f %s'\n", count(errs, "error"), count(len(files), "file"), strings.Join(a.files, " -f "))
	}
}

func plural(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "y"); ok {
		return stem + "ies"
	}
	return kind + "s"
}

func count(n int, noun string) string { return clip.Count(n, noun) }

func quoted(s string) string { return fmt.Sprintf("%q", s) }

func nearestFlag(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return v1.Nearest(name, names)
}

// bindSelector gives a command -l.
func (a *app) bindSelector(f *pflag.FlagSet, what string) {
	f.StringVarP(&a.selector, "selector", "l", "", "only "+what+" with these labels, such as team=pay,tier!=old")
}

// selected reads -l into a test of objects.
func (a *app) selected() (func(v1.Object) bool, error) {
	return action.Labeled(a.selector)
}
