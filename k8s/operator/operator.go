// Package operator applies custom resources of toolctl's kinds to a store, and says in their
// status what became of them.
//
//	mgr, err := ctrl.NewManager(cfg, ctrl.Options{Client: operator.ClientOptions()})
//	...
//	err = operator.Add(mgr, operator.Options{Store: st})
//
// An object is put into the store by the rules of 'toolctl apply', as part of a set that is the
// operator's own; an object of another set is refused and left as it is. A finalizer keeps a
// custom resource until the store has let go of it. What is not valid does not reach the store,
// which keeps the last version that was.
//
// A custom resource has no folder, so the files that it names come from ConfigMaps: see
// [FilesAnnotation].
package operator

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/permit"
	"toolctl.dev/toolctl/pkg/store"
)

const (
	// DefaultSet is the set that custom resources belong to in the store.
	DefaultSet = "kubernetes"
	// Finalizer keeps a custom resource until it is removed from the store.
	Finalizer = "toolctl.dev/store"
	// Name is what events and the audit of the store call the operator.
	Name = "toolctl-operator"
)

// Options change an operator.
type Options struct {
	// Store is where objects are applied. Required.
	Store store.Store
	// Set is the set that they belong to there. Two clusters that share a store need two.
	// Default: [DefaultSet].
	Set string
	// Permissions say what custom resources may ask for. Default: nothing that runs programs or
	// reaches private networks.
	Permissions Permissions
	// Workers is how many custom resources of a kind are looked at at once. Those that wait for
	// the store are applied in one transaction. Default: 64.
	Workers int
}

// Permissions say what custom resources may ask for, which many people write.
type Permissions struct {
	// Rules are by namespace.
	Rules permit.Rules
	// Env lists the variables that they may read, as AllowEnv of a gateway does. Default: all
	// but toolctl's own.
	Env []string
}

// kinds are the custom resources that are applied, in the order of [v1.Kinds], and then
// PromptKit's prompts.
func kinds() []schema.GroupVersionKind {
	group, version, _ := strings.Cut(v1.APIVersion, "/")
	var all []schema.GroupVersionKind
	for _, k := range v1.Kinds() {
		all = append(all, schema.GroupVersionKind{Group: group, Version: version, Kind: k})
	}
	return append(all, promptConfig)
}

var promptConfig = schema.GroupVersionKind{Group: v1.PromptKitGroup, Version: "v1alpha1", Kind: "PromptConfig"}

// key is the identity of a custom resource in the store.
func key(gvk schema.GroupVersionKind, namespace, name string) v1.Key {
	kind := gvk.Kind
	if gvk == promptConfig {
		kind = v1.KindPrompt
	}
	return v1.Key{Kind: kind, Namespace: namespace, Name: name}
}

func resource(gvk schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(gvk)
	return u
}

// ClientOptions make a manager's client read custom resources from its cache.
func ClientOptions() client.Options {
	return client.Options{Cache: &client.CacheOptions{Unstructured: true}}
}

// Add adds the controllers of every kind to a manager.
func Add(mgr ctrl.Manager, o Options) error {
	if o.Store == nil {
		return fmt.Errorf("operator: no store")
	}
	if o.Set == "" {
		o.Set = DefaultSet
	}
	if o.Workers <= 0 {
		o.Workers = 64
	}
	b := newBatcher(o.Store, o.Set)
	if err := mgr.Add(b); err != nil {
		return err
	}
	if err := mgr.Add(&orphans{client: mgr.GetClient(), cache: mgr.GetCache(), store: o.Store, set: o.Set}); err != nil {
		return err
	}
	for _, gvk := range kinds() {
		r := &reconciler{
			gvk: gvk, client: mgr.GetClient(), live: mgr.GetAPIReader(), events: mgr.GetEventRecorder(Name), batcher: b, permissions: o.Permissions,
		}
		if err := r.add(mgr, o.Workers); err != nil {
			return fmt.Errorf("operator: %s: %w", gvk.Kind, err)
		}
	}
	return nil
}

// Fields by which the cache finds custom resources.
const (
	byConfigMap = "toolctl.configmap"
	byServer    = "toolctl.server"
)

func (r *reconciler) add(mgr ctrl.Manager, workers int) error {
	ctx := context.Background() // of the set-up only
	index := func(field string, of func(u *unstructured.Unstructured) []string) error {
		return mgr.GetFieldIndexer().IndexField(ctx, resource(r.gvk), field, func(o client.Object) []string {
			u, ok := o.(*unstructured.Unstructured)
			if !ok {
				return nil
			}
			return of(u)
		})
	}
	if err := index(byConfigMap, configMapsOf); err != nil {
		return err
	}
	changed := predicate.Or(predicate.GenerationChangedPredicate{}, predicate.LabelChangedPredicate{}, predicate.AnnotationChangedPredicate{})
	b := ctrl.NewControllerManagedBy(mgr).Named(strings.ToLower(r.gvk.Kind)).
		For(resource(r.gvk), builder.WithPredicates(changed)).
		WatchesMetadata(&corev1.ConfigMap{}, r.those(byConfigMap)).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers})
	if r.gvk.Kind == v1.KindTool {
		if err := index(byServer, serverOf); err != nil {
			return err
		}
		server := r.gvk
		server.Kind = v1.KindMCPServer
		b = b.Watches(resource(server), r.those(byServer))
	}
	return b.Complete(r)
}

// those finds the custom resources that name another object of their namespace.
func (r *reconciler) those(field string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(r.gvk.GroupVersion().WithKind(r.gvk.Kind + "List"))
		err := r.client.List(ctx, list, client.InNamespace(o.GetNamespace()), client.MatchingFields{field: o.GetName()}, client.UnsafeDisableDeepCopy)
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "list those that name it", "name", o.GetName())
			return nil
		}
		out := make([]reconcile.Request, len(list.Items))
		for i := range list.Items {
			out[i].Name, out[i].Namespace = list.Items[i].GetName(), list.Items[i].GetNamespace()
		}
		return out
	})
}

// serverOf is the MCPServer that a Tool calls.
func serverOf(u *unstructured.Unstructured) []string {
	if name, ok, _ := unstructured.NestedString(u.Object, "spec", "mcp", "server"); ok {
		return []string{name}
	}
	return nil
}

// deleting reports whether a custom resource is on its way out.
func deleting(o metav1.Object) bool { return !o.GetDeletionTimestamp().IsZero() }
