package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/executors"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/telemetry"
)

// app is what the commands share: the streams, the global flags, and how the
// parts are joined. What is dear to make is made when a command asks.
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

	// Global flags.
	files      []string
	dsn        string
	storeMax   int64 // bytes; 0 for no limit
	namespace  string
	everywhere bool   // -A
	selector   string // -l, of the commands that have it
	output     string
	formats    []string // that the command knows, see checkFormat
	verbose    bool
	locked     bool
	layout     bool // objects keep their comments and order of keys, for -o yaml
	lockFile   string

	// Flags of commands that reach tools and servers.
	allowPrivate bool
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

// workspace is the objects that a command works on, ready to be called.
type workspace struct {
	reg   *registry.Registry
	store store.Store // nil when there is none
	set   *manifest.Set
	mcp   *upstream
}

func (w *workspace) Close() error {
	err := errors.Join(w.reg.Close(), w.mcp.Close())
	if w.store != nil {
		err = errors.Join(err, w.store.Close())
	}
	return err
}

// closing closes what a command opened; what fails then is too late for an exit code.
func (a *app) closing(c io.Closer) {
	if err := c.Close(); err != nil {
		a.logger().Warn("closing failed", slog.Any("error", err))
	}
}

// workspaceOptions say how a workspace is opened.
type workspaceOptions struct {
	// attachments hold what calls name by reference; nil for none.
	attachments *registry.Attachments
}

// open makes the workspace of the files given with -f, else of the store.
func (a *app) open(ctx context.Context, o workspaceOptions) (_ *workspace, err error) {
	if _, err := a.network(); err != nil {
		return nil, err
	}
	w := &workspace{}
	defer func() {
		if err != nil && w.store != nil {
			err = errors.Join(err, w.store.Close())
		}
	}()
	if len(a.files) == 0 || a.dsn != "" {
		if w.store, err = a.openStore(ctx, len(a.files) > 0); err != nil {
			return nil, err
		}
	}
	var objects []v1.Object
	if len(a.files) > 0 {
		if w.set, err = manifest.Load(ctx, a.files, manifest.Options{Stdin: a.stdin(ctx), Layout: a.layout}); err != nil {
			return nil, usageError{err}
		}
		objects = w.set.Objects
	} else {
		if objects, err = storedObjects(ctx, w.store, store.ListOptions{Layout: a.layout}); err != nil {
			return nil, err
		}
	}
	t := a.watched(ctx)
	w.mcp = a.newUpstream(objects)
	opts := registry.Options{Attachments: o.attachments, Executors: a.recorded(executors.All(a.executorOptions(w.mcp))), Logger: a.logger(), TracerProvider: t.TracerProvider(), MeterProvider: t.MeterProvider()}
	if w.store != nil {
		opts.Counters, opts.Audit, opts.Approvals, opts.AuditBestEffort = w.store, w.store, w.store, a.bestEffort
	}
	if w.reg, err = registry.New(objects, opts); err != nil {
		return nil, errors.Join(err, w.mcp.Close())
	}
	if w.store != nil {
		overrides, err := w.store.Overrides(ctx)
		if err != nil {
			return nil, errors.Join(err, w.reg.Close(), w.mcp.Close())
		}
		applyOverrides(w.reg, overrides)
	}
	w.mcp.attach(w.reg)
	return w, nil
}

// executorOptions are those of all commands that call tools.
func (a *app) executorOptions(up *upstream) executors.Options {
	n, _ := a.network() // what cannot be read, nothing is reached with
	return executors.Options{Env: a.env, Logger: a.logger(), Upstream: up, Propagate: telemetry.Header,
		AllowPrivateNetwork: n.private, AllowNetwork: n.allowed}
}

// recorded returns the executors of a workspace, recorded when a command asked for it.
func (a *app) recorded(all []v1.Executor) []v1.Executor {
	if a.recorder != nil {
		all = a.recorder.Wrap(all)
	}
	return all
}

func storedObjects(ctx context.Context, s store.Store, o store.ListOptions) ([]v1.Object, error) {
	list, err := s.List(ctx, o)
	if err != nil {
		return nil, err
	}
	objects := make([]v1.Object, len(list.Records))
	for i, r := range list.Records {
		objects[i] = r.Object
	}
	return objects, nil
}

// openStore opens the store that the flags, the environment or the folder name.
func (a *app) openStore(ctx context.Context, create bool) (store.Store, error) {
	dsn, err := a.storeDSN(create)
	if err != nil {
		return nil, err
	}
	if a.storeMax < 0 {
		return nil, usagef("--store-max-bytes %d: expected 0 or more", a.storeMax)
	}
	s, err := stores().Open(ctx, dsn, store.Options{Create: create, MaxBytes: a.storeMax})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usagef("there is no store at %s: put manifests into it with 'toolctl apply -f PATH', or name files with -f", dsn)
	}
	return s, err
}

const storeDir, storeFile = ".toolctl", "state.db"

// storeDSN says where the store is, or, with create, where it will be.
func (a *app) storeDSN(create bool) (string, error) {
	if a.dsn != "" {
		return a.dsn, nil
	}
	if v, ok := a.env("TOOLCTL_STORE"); ok && v != "" {
		return v, nil
	}
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if info, err := os.Stat(filepath.Join(dir, storeDir)); err == nil && info.IsDir() {
			return filepath.Join(dir, storeDir, storeFile), nil
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	if create {
		return filepath.Join(cwd, storeDir, storeFile), nil
	}
	return "", usagef("no manifests: name files with -f, or put some into a store with 'toolctl apply -f PATH' (no %s folder here or above)", storeDir)
}

// warnViolations says on stderr that the files have violations, when the command goes on without them.
func (a *app) warnViolations(w *workspace) {
	if w.set == nil {
		return
	}
	errs, files := 0, map[string]bool{}
	for _, f := range w.set.Violations {
		if !f.IsWarning() {
			errs++
			files[f.Source.File] = true
		}
	}
	if errs > 0 {
		fmt.Fprintf(a.err, "warning: %s in %s: see 'toolctl validate -f %s'\n", count(errs, "error"), count(len(files), "file"), strings.Join(a.files, " -f "))
	}
}

func plural(kind string) string {
	if stem, ok := strings.CutSuffix(kind, "y"); ok {
		return stem + "ies"
	}
	return kind + "s"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %s", n, plural(noun))
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

func nearestFlag(cmd *cobra.Command, name string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	cmd.InheritedFlags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return v1.Nearest(name, names)
}

// exactArgs is cobra.ExactArgs with an error of ours.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return usagef("expected %s, got %s", what, count(len(args), "argument"))
	}
}

// bindSelector gives a command -l.
func (a *app) bindSelector(f *pflag.FlagSet, what string) {
	f.StringVarP(&a.selector, "selector", "l", "", "only "+what+" with these labels, such as team=pay,tier!=old")
}

// selected reads -l into a test of objects.
func (a *app) selected() (func(v1.Object) bool, error) {
	sel, err := registry.ParseSelector(a.selector)
	if err != nil {
		return nil, usagef("-l: %w", err)
	}
	return func(o v1.Object) bool { return sel.Matches(o.Head().Metadata.Labels) }, nil
}
