package clustertest

import (
	"fmt"
	"net/url"

	admissionregistration "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission/plugin/webhook/validating"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/util/webhook"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// Webhook is a validating webhook that the API server asks.
type Webhook struct {
	// Config says when, and by which service.
	Config *admissionregistration.ValidatingWebhookConfiguration
	// Address is where the service is, as host:port.
	Address string
}

// plugin is the API server's own caller of webhooks. It reads its configuration from a client
// that has nothing else.
func (w *Webhook) plugin(wrapper webhook.AuthenticationInfoResolverWrapper, stop <-chan struct{}) (*validating.Plugin, error) {
	p, err := validating.NewValidatingAdmissionWebhook(nil)
	if err != nil {
		return nil, err
	}
	for i := range w.Config.Webhooks { // the API server's own defaults
		w.Config.Webhooks[i].NamespaceSelector, w.Config.Webhooks[i].ObjectSelector = &metav1.LabelSelector{}, &metav1.LabelSelector{}
	}
	objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, w.Config}
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	p.SetExternalKubeClientSet(client)
	p.SetExternalKubeInformerFactory(factory)
	p.SetAuthenticationInfoResolverWrapper(wrapper)
	p.SetServiceResolver(resolver(func(namespace, name string, _ int32) (*url.URL, error) {
		if s := w.Config.Webhooks[0].ClientConfig.Service; s.Namespace != namespace || s.Name != name {
			return nil, fmt.Errorf("no service %s/%s", namespace, name)
		}
		return &url.URL{Scheme: "https", Host: w.Address}, nil
	}))
	p.SetUnconditionalAuthorizer(authorizerfactory.NewAlwaysAllowAuthorizer())
	p.SetDrainedNotification(stop)
	p.SetAPIServerID("test")
	if err := p.ValidateInitialization(); err != nil {
		return nil, err
	}
	factory.Start(stop)
	factory.WaitForCacheSync(stop)
	return p, nil
}
