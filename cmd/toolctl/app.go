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
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/telemetry"
)

// app has the data that the commands share: the streams, the global flags, and the options of the verbs. Telemetry is
// expensive to start, so it starts when a command first needs it.
type app struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	log      *slog.Logger // set by commands with a log format of their own, else nil
	// telemetry is nil until a command calls watched. scraped reports that Prometheus reads the metrics, and lasting that
	// the command runs until it is stopped.
	telemetry        *telemetry.Telemetry
	scraped, lasting bool

	// conf holds the flags for manifests, the store, and what tools may do and reach.
	conf action.Config

	// Global flags.
	audit   string // --audit, for the commands that call tools
	output  string
	formats []string // output formats of the running command, see checkFormat
	verbose bool
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

// closing closes what a command opened. A failure is only logged, because the result is printed already.
func (a *app) closing(c io.Closer) {
	if err := c.Close(); err != nil {
		a.logger().Warn("closing failed", slog.Any("error", err))
	}
}

// reaching returns the options for verbs that call tools.
func (a *app) reaching(ctx context.Context) *action.Config {
	c := a.stored(ctx)
	c.Opened, c.Asked, c.Found = a.warnViolations, a.warnStates, a.warnTexts
	c.Warned = func(text string) { fmt.Fprintln(a.err, "warning: "+text) }
	t, g := a.watched(ctx), &c.Gateway
	g.Logger, g.TracerProvider, g.MeterProvider = a.logger(), t.TracerProvider(), t.MeterProvider()
	if isTerminal(a.err) {
		g.OpenBrowser = func(_ context.Context, server v1.Key, address string) error {
			fmt.Fprintf(a.err, "to sign in to MCP server %s, open this address:\n  %s\n", server.Name, address)
			tty.OpenBrowser(address)
			return nil
		}
	}
	return c
}

// stored returns the options for verbs that only use the store.
func (a *app) stored(ctx context.Context) *action.Config {
	c := a.conf
	c.Gateway.AuditBestEffort = a.audit == auditBestEffort
	c.Stdin, c.By, c.Gateway.Env, c.Gateway.Version = tty.Stdin(ctx, a.in), a.whoami(), a.env, buildVersion().Version
	return &c
}

// config returns the options for verbs that read manifests and check what they may do.
func (a *app) config(ctx context.Context) *action.Config {
	c := a.stored(ctx)
	c.Unbuilt = func(folders []string) {
		fmt.Fprintf(a.err, "warning: %s with a kustomization.yaml read file by file and not built: pass -k %s, for example\n", count(len(folders), "folder"), folders[0])
	}
	return c
}

// shownDSN returns the value of --store without a password.
func (a *app) shownDSN() string {
	shown, _ := store.Shown(a.conf.DSN)
	return shown
}

// warnViolations warns that the files have errors when the command continues without the broken objects.
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
	if errs == 1 && last.Path == "" { // the file is not a manifest at all
		fmt.Fprintf(a.err, "warning: %s\n", last)
	} else if errs > 0 {
		fmt.Fprintf(a.err, "warning: %s in %s: see 'toolctl validate -f %s'\n", count(errs, "error"), count(len(files), "file"), strings.Join(a.conf.Files, " -f "))
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

// bindSelector adds -l to a command.
func bindSelector(f *pflag.FlagSet, into *string, what string) {
	f.StringVarP(into, "selector", "l", "", "only "+what+" with these labels, such as team=pay,tier!=old")
}
