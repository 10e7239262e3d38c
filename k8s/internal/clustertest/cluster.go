// Package clustertest runs a Kubernetes API server in the process of a test: that of
// CustomResourceDefinitions with an etcd of its own, and beside it what the operator uses of a
// whole one: ConfigMaps, Leases and Events. Requests are allowed
// by the rules of their user, as RBAC would.
package clustertest

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.opentelemetry.io/otel/trace/noop"
	rbac "k8s.io/api/rbac/v1"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver"
	"k8s.io/apiextensions-apiserver/pkg/cmd/server/options"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/util/proxy"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Options change a cluster.
type Options struct {
	// Webhook is asked about writes. Default: nobody is.
	Webhook *Webhook
}

// Cluster is a running API server.
type Cluster struct {
	// Admin may do everything.
	Admin *rest.Config
	// Kubeconfig is the path of a kubeconfig with Admin.
	Kubeconfig string

	users *users
}

// Start starts a cluster, which ends with the test.
func Start(t testing.TB, opts Options) *Cluster {
	t.Helper()
	dir := t.TempDir()
	c := &Cluster{users: newUsers()}
	ctx, cancel := context.WithCancel(context.Background())
	server, err := c.server(startEtcd(t, dir), opts, ctx.Done())
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	done := make(chan error, 1)
	ready := server.GenericAPIServer.PrepareRun()
	go func() { done <- ready.RunWithContext(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("API server: %v", err)
		}
	})
	c.Admin = c.User(adminName)
	c.Kubeconfig = filepath.Join(dir, "kubeconfig")
	if err := writeKubeconfig(c.Admin, c.Kubeconfig); err != nil {
		t.Fatal(err)
	}
	waitReady(t, c.Admin)
	return c
}

// startEtcd returns the address of a new etcd.
func startEtcd(t testing.TB, dir string) string {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.Logger, cfg.LogLevel, cfg.UnsafeNoFsync = filepath.Join(dir, "etcd"), "zap", "error", true
	cfg.LogOutputs = []string{os.DevNull}
	client, peer := freeURL(t), freeURL(t)
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	cfg.ListenPeerUrls, cfg.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	e, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	select {
	case <-e.Server.ReadyNotify():
	case err := <-e.Err():
		t.Fatal(err)
	}
	return client.String()
}

// freeURL is an address that nobody listens on.
func freeURL(t testing.TB) url.URL {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return url.URL{Scheme: "http", Host: l.Addr().String()}
}

// server puts the API server together, as cmd/server of apiextensions-apiserver does, without
// what asks another API server.
func (c *Cluster) server(etcd string, opts Options, stop <-chan struct{}) (*apiserver.CustomResourceDefinitions, error) {
	o := options.NewCustomResourceDefinitionsServerOptions(os.Stderr, os.Stderr)
	r := o.RecommendedOptions
	r.Authentication, r.Authorization, r.CoreAPI, r.Admission = nil, nil, nil, nil
	r.Features.EnablePriorityAndFairness = false
	r.Etcd.StorageConfig.Transport.ServerList = []string{etcd}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r.SecureServing.Listener, r.SecureServing.BindPort = l, l.Addr().(*net.TCPAddr).Port
	r.SecureServing.ServerCert.CertDirectory = ""
	r.SecureServing.ExternalAddress = net.IPv4(127, 0, 0, 1)
	if err := r.SecureServing.MaybeDefaultWithSelfSignedCerts("localhost", nil, []net.IP{net.IPv4(127, 0, 0, 1)}); err != nil {
		return nil, err
	}
	if err := o.Complete(); err != nil {
		return nil, err
	}
	cfg := genericapiserver.NewRecommendedConfig(apiserver.Codecs)
	if err := o.ServerRunOptions.ApplyTo(&cfg.Config); err != nil {
		return nil, err
	}
	cfg.SharedInformerFactory = informers.NewSharedInformerFactory(fake.NewClientset(), 0)
	if err := r.ApplyTo(cfg); err != nil {
		return nil, err
	}
	if err := o.APIEnablement.ApplyTo(&cfg.Config, apiserver.DefaultAPIResourceConfigSource(), apiserver.Scheme); err != nil {
		return nil, err
	}
	wrapper := webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, cfg.LoopbackClientConfig, noop.NewTracerProvider())
	if opts.Webhook != nil {
		if cfg.AdmissionControl, err = opts.Webhook.plugin(wrapper, stop); err != nil {
			return nil, err
		}
	}
	cfg.Authentication.Authenticator, cfg.Authorization.Authorizer = c.users, authorizer.AuthorizerFunc(c.users.authorize)
	namer := openapinamer.NewDefinitionNamer(apiserver.Scheme, scheme.Scheme)
	cfg.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	cfg.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	services := cfg.SharedInformerFactory.Core().V1().Services().Lister()
	config := &apiserver.Config{GenericConfig: cfg, ExtraConfig: apiserver.ExtraConfig{
		CRDRESTOptionsGetter: options.NewCRDRESTOptionsGetter(*r.Etcd, cfg.ResourceTransformers, cfg.StorageObjectCountTracker),
		ServiceResolver: resolver(func(namespace, name string, port int32) (*url.URL, error) {
			return proxy.ResolveCluster(services, namespace, name, port)
		}),
		AuthResolverWrapper: webhook.NewDefaultAuthenticationInfoResolverWrapper(nil, nil, cfg.LoopbackClientConfig, noop.NewTracerProvider()),
	}}
	completed := config.Complete()
	completed.GenericConfig.EnableDiscovery = true // or kubectl finds no resource
	server, err := completed.New(genericapiserver.NewEmptyDelegate())
	if err != nil {
		return nil, err
	}
	c.users.address, c.users.serverName, c.users.ca = l.Addr().String(), cfg.LoopbackClientConfig.ServerName, cfg.LoopbackClientConfig.CAData
	for _, b := range builtins {
		if err := b.install(server.GenericAPIServer, r.Etcd.StorageConfig); err != nil {
			return nil, fmt.Errorf("serve %s: %w", b.name, err)
		}
	}
	return server, nil
}

type resolver func(namespace, name string, port int32) (*url.URL, error)

func (r resolver) ResolveEndpoint(namespace, name string, port int32) (*url.URL, error) {
	return r(namespace, name, port)
}

func writeKubeconfig(cfg *rest.Config, file string) error {
	k := clientcmdapi.NewConfig()
	k.Clusters["test"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData, TLSServerName: cfg.ServerName}
	k.AuthInfos["test"] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken}
	k.Contexts["test"] = &clientcmdapi.Context{Cluster: "test", AuthInfo: "test", Namespace: "default"}
	k.CurrentContext = "test"
	return clientcmd.WriteToFile(*k, file)
}

// waitReady waits until the server says that it is ready.
func waitReady(t testing.TB, cfg *rest.Config) {
	t.Helper()
	client, err := rest.UnversionedRESTClientFor(withCodec(cfg))
	if err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the API server is ready", func(ctx context.Context) error {
		return client.Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

func withCodec(cfg *rest.Config) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion, cfg.NegotiatedSerializer = &apiext.SchemeGroupVersion, scheme.Codecs.WithoutConversion()
	return cfg
}

// Eventually asks again until there is no error, for at most a minute.
func Eventually(t testing.TB, what string, ask func(ctx context.Context) error) {
	t.Helper()
	Within(t, time.Minute, 20*time.Millisecond, what, ask)
}

// Within is Eventually for what takes long: it asks at an interval, for so long.
func Within(t testing.TB, limit, every time.Duration, what string, ask func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal(fmt.Errorf("%s: not after %s: %w", what, limit, err))
		}
	}
}

// KubeconfigOf writes a kubeconfig for a user of that name, and returns its path.
func (c *Cluster) KubeconfigOf(t testing.TB, name string, rules ...rbac.PolicyRule) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := writeKubeconfig(c.User(name, rules...), file); err != nil {
		t.Fatal(err)
	}
	return file
}
