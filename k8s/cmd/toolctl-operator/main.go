// Command toolctl-operator applies toolctl's custom resources of a Kubernetes cluster to a
// store that gateways serve from. docs/kubernetes.md is its manual.
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"toolctl.dev/toolctl/k8s/operator"
	"toolctl.dev/toolctl/pkg/permit"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/backends"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stderr))
}

// flags are what the operator is told.
type flags struct {
	store, set                   string
	leaderElect                  bool
	leaderNamespace              string
	metricsAddress, probeAddress string
	webhookCerts                 string
	webhookPort                  int
	workers, connections         int
	verbose                      bool
	permissions                  operator.Permissions
}

// parse reads the command line. An error of it was told.
func parse(args []string, env func(string) string, stderr io.Writer) (*flags, error) {
	o := &flags{}
	f := flag.NewFlagSet("toolctl-operator", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.store, "store", env("TOOLCTL_STORE"), "the store that custom resources are applied to, as toolctl has it (default: TOOLCTL_STORE)")
	f.IntVar(&o.connections, "store-max-connections", 0, "connections to a PostgreSQL store (default: pool_max_conns of its address, else "+strconv.Itoa(store.DefaultConnections)+")")
	f.StringVar(&o.set, "set", operator.DefaultSet, "the set that they belong to in the store; clusters that share a store need one each")
	f.BoolVar(&o.leaderElect, "leader-elect", false, "let one of several operators work, by a Lease")
	f.StringVar(&o.leaderNamespace, "leader-elect-namespace", "", "the namespace of the Lease (default: that of the pod)")
	f.StringVar(&o.metricsAddress, "metrics-bind-address", "0", "serve Prometheus metrics at this address, such as :8080; 0 serves none")
	f.StringVar(&o.probeAddress, "health-probe-bind-address", ":8081", "serve /healthz and /readyz at this address; 0 serves none")
	f.StringVar(&o.webhookCerts, "webhook-cert-path", "", "serve the validating webhook with tls.crt and tls.key of this folder (default: no webhook)")
	f.IntVar(&o.webhookPort, "webhook-port", 9443, "the port of the webhook")
	f.IntVar(&o.workers, "workers", 64, "custom resources of a kind that are looked at at once")
	for _, p := range permit.Flags() {
		f.Var(p.Value(&o.permissions.Rules), p.Name, "let custom resources of these `namespaces` "+p.What+", with commas between them, or * (default: "+p.Variable+", else none)")
	}
	f.Func("allow-env", "let custom resources read only these environment `variables`, such as CRM_*,CITIES_TOKEN (default: TOOLCTL_ALLOW_ENV, else all but toolctl's own)", func(text string) error {
		o.permissions.Env = append(permit.Split(text), o.permissions.Env...)
		return nil
	})
	f.BoolVar(&o.verbose, "v", false, "log more")
	config.RegisterFlags(f) // --kubeconfig
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	lookup := func(name string) (string, bool) { v := env(name); return v, v != "" }
	if text, ok := lookup("TOOLCTL_ALLOW_ENV"); ok && o.permissions.Env == nil {
		o.permissions.Env = permit.Split(text)
	}
	rules, err := o.permissions.Rules.Lookup(lookup)
	if rules != nil {
		o.permissions.Rules = *rules
	}
	switch {
	case err != nil:
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.store == "":
		err = errors.New("name the store with --store or TOOLCTL_STORE, such as postgres://… or the path of a file")
	case o.set == "":
		err = errors.New("--set: expected a name")
	case o.connections < 0 || o.connections > 0 && o.connections < 3:
		err = fmt.Errorf("--store-max-connections %d: expected 3 or more", o.connections)
	case o.workers < 1:
		err = fmt.Errorf("--workers %d: expected 1 or more", o.workers)
	}
	if err != nil {
		fmt.Fprintln(stderr, "error:", err)
	}
	return o, err
}

// run runs the operator until ctx ends, and returns its exit status.
func run(ctx context.Context, args []string, env func(string) string, stderr io.Writer) int {
	o, err := parse(args, env, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		return 2
	}
	level := slog.LevelInfo
	if o.verbose {
		level = slog.LevelDebug
	}
	log := logr.FromSlogHandler(slog.NewJSONHandler(stderr, &slog.HandlerOptions{Level: level}))
	ctrl.SetLogger(log)
	if err := o.serve(ctx, log); err != nil {
		fmt.Fprintln(stderr, "error:", err)
		return 1
	}
	return 0
}

func (o *flags) serve(ctx context.Context, log logr.Logger) (err error) {
	cfg, err := config.GetConfig()
	if err != nil {
		return err
	}
	cfg.QPS = -1 // the server says when it is too much
	st, err := backends.All().Open(ctx, o.store, store.Options{Create: true, MaxConnections: o.connections})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	options := ctrl.Options{
		Logger: log, Client: operator.ClientOptions(), Metrics: metricsserver.Options{BindAddress: o.metricsAddress}, HealthProbeBindAddress: o.probeAddress,
		LeaderElection: o.leaderElect, LeaderElectionID: "toolctl-operator", LeaderElectionNamespace: o.leaderNamespace, LeaderElectionReleaseOnCancel: true,
	}
	if o.webhookCerts != "" {
		options.WebhookServer = webhook.NewServer(webhook.Options{
			Port: o.webhookPort, CertDir: o.webhookCerts, TLSOpts: []func(*tls.Config){func(c *tls.Config) { c.MinVersion = tls.VersionTLS12 }},
		})
	}
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return err
	}
	if err := operator.Add(mgr, operator.Options{Store: st, Set: o.set, Workers: o.workers, Permissions: o.permissions}); err != nil {
		return err
	}
	ready := healthz.Ping
	if o.webhookCerts != "" {
		server := mgr.GetWebhookServer()
		server.Register(operator.WebhookPath, &admission.Webhook{Handler: &operator.Validator{Reader: mgr.GetAPIReader(), Permissions: o.permissions}})
		ready = server.StartedChecker()
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ready", ready)); err != nil {
		return err
	}
	return mgr.Start(ctx)
}
