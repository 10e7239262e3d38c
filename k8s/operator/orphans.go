package operator

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// orphans removes what the set has and the cluster has not, once, when an operator becomes the
// leader: somebody may have taken the finalizer away.
type orphans struct {
	client client.Client
	cache  cache.Cache
	store  store.Store
	set    string
}

// Start implements manager.Runnable.
func (o *orphans) Start(ctx context.Context) error {
	list, err := o.store.List(ctx, store.ListOptions{Set: o.set}) // before the cluster is read
	if err != nil {
		return err
	}
	here := map[v1.Key]bool{}
	for _, gvk := range kinds() {
		if _, err := o.cache.GetInformer(ctx, resource(gvk)); err != nil { // waits until it is read
			return err
		}
		all := &unstructured.UnstructuredList{}
		all.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err := o.client.List(ctx, all, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range all.Items {
			here[key(gvk, all.Items[i].GetNamespace(), all.Items[i].GetName())] = true
		}
	}
	for _, r := range list.Records {
		if here[r.Key()] {
			continue
		}
		ctrl.LoggerFrom(ctx).Info("remove what the cluster no longer has", "object", r.Key().String())
		_, err := o.store.Delete(ctx, []v1.Key{r.Key()}, store.DeleteOptions{By: Name})
		if missing := (*v1.NotFoundError)(nil); err != nil && !errors.As(err, &missing) {
			return err
		}
	}
	return nil
}
