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
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/regular"
	"toolctl.dev/toolctl/internal/tty"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/manifest"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/backends"
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
	everywhere bool   // -A
	selector   string // -l, of the commands that have it
	output     string
	formats    []string // that the command knows, see checkFormat
	verbose    bool
	locked     bool
	layout     bool // objects keep their comments and order of keys, for -o yaml
	lockFile   string
	places     bool // objects keep the places of all their fields
	allowEmpty bool // files that are gone or hold nothing are no objects

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

// workspace is a gateway over the files given with -f, else over the store.
type workspace struct {
	*gateway.Gateway
	reg   *registry.Registry
	store store.Store // nil when there is none
	files bool        // its manifests are files
}

func (w *workspace) Close() error {
	err := w.Gateway.Close()
	if w.store != nil {
		err = errors.Join(err, w.store.Close())
	}
	return err
}

// kept is the store that the manifests are in; nil for those of files.
func (w *workspace) kept() store.Store {
	if w.files {
		return nil
	}
	return w.store
}

// closing closes what a command opened; what fails then is too late for an exit code.
func (a *app) closing(c io.Closer) {
	if err := c.Close(); err != nil {
		a.logger().Warn("closing failed", slog.Any("error", err))
	}
}

// open makes the workspace of the files given with -f, else of the store. change may add to
// the options of the gateway.
func (a *app) open(ctx context.Context, change ...func(*gateway.Options)) (_ *workspace, err error) {
	o, err := a.gatewayOptions(ctx)
	if err != nil {
		return nil, err
	}
	w := &workspace{files: len(a.files) > 0 || a.pulled != nil}
	defer func() {
		if err != nil && w.store != nil {
			err = errors.Join(err, w.store.Close())
		}
	}()
	if !w.files || a.dsn != "" {
		if w.store, err = a.openStore(ctx, w.files); err != nil {
			return nil, err
		}
		o.Store, o.AuditBestEffort = w.store, a.bestEffort
	}
	if w.files || !store.Shared(w.store) {
		o.Permit = o.Permit.Own()
	}
	o.Source = a.source(ctx, w.store)
	for _, f := range change {
		f(&o)
	}
	if w.Gateway, err = gateway.Open(ctx, o); err != nil {
		return nil, err
	}
	w.reg = w.Registry()
	return w, nil
}

// source is the files given with -f, else the store.
func (a *app) source(ctx context.Context, s store.Store) gateway.Source {
	if a.pulled != nil {
		return pulledFrom{a.pulled}
	}
	if len(a.files) > 0 {
		o := a.manifestOptions(ctx)
		o.Layout = a.layout
		return fromFlags{gateway.Files(o, a.files...), a.files}
	}
	return gateway.Stored(s, a.layout)
}

// fromFlags is a source that the command line names: when there is nothing to read, that is
// wrong usage. So is a pipe, a device or a socket.
type fromFlags struct {
	gateway.Source
	paths []string
}

func (n fromFlags) Load(ctx context.Context) (*manifest.Set, error) {
	if err := regularFiles(n.paths); err != nil {
		return nil, err
	}
	set, err := n.Source.Load(ctx)
	if err != nil {
		err = usageError{err}
	}
	return set, err
}

func regularFiles(paths []string) error {
	for _, path := range paths {
		if err := regular.Check(path); err != nil && path != "-" {
			return usagef("%s: %w", path, regular.Reason(err))
		}
	}
	return nil
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
	return a.openNamed(ctx, dsn, create)
}

// openNamed opens the store that dsn names.
func (a *app) openNamed(ctx context.Context, dsn string, create bool) (store.Store, error) {
	if a.storeMax < 0 {
		return nil, usagef("--store-max-bytes %d: expected 0 or more", a.storeMax)
	}
	if n := a.storeConns; n < 0 || n > 0 && n < 3 {
		return nil, usagef("--store-max-connections %d: expected 3 or more", n)
	}
	s, err := backends.All().Open(ctx, dsn, store.Options{Create: create, MaxBytes: a.storeMax, MaxConnections: a.storeConns})
	if errors.Is(err, fs.ErrNotExist) {
		shown, _ := store.Shown(dsn)
		return nil, usagef("there is no store at %s: put manifests into it with 'toolctl apply -f PATH', or name files with -f", shown)
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
	return localStore(create)
}

// localStore is the store of the current folder.
func localStore(create bool) (string, error) {
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

// shownDSN is the store of the command line as it may be printed.
func (a *app) shownDSN() string {
	shown, _ := store.Shown(a.dsn)
	return shown
}

// warnViolations says on stderr that the files have violations, when the command goes on without them.
func (a *app) warnViolations(w *workspace) {
	errs, files := 0, map[string]bool{}
	for _, f := range w.Violations() {
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
	sel, err := registry.ParseSelector(a.selector)
	if err != nil {
		return nil, usagef("-l: %w", err)
	}
	return func(o v1.Object) bool { return sel.Matches(o.Head().Metadata.Labels) }, nil
}
