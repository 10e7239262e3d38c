package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// lookAgain is when a custom resource that is not in the store is looked at again: what stood
// in its way may have been in the store, of whose changes no event tells.
const lookAgain = 30 * time.Second

// reconciler applies the custom resources of one kind.
type reconciler struct {
	gvk     schema.GroupVersionKind
	client  client.Client
	live    client.Reader // reads ConfigMaps, of which the cache has the names only
	events  events.EventRecorder
	batcher *batcher

	permissions Permissions
}

// Reconcile implements reconcile.Reconciler.
func (r *reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	u := resource(r.gvk)
	if err := r.client.Get(ctx, req.NamespacedName, u); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if deleting(u) {
		return reconcile.Result{}, r.remove(ctx, u)
	}
	if !controllerutil.ContainsFinalizer(u, Finalizer) { // before the store has it
		before := u.DeepCopy()
		controllerutil.AddFinalizer(u, Finalizer)
		if err := r.client.Patch(ctx, u, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return again(err)
		}
	}
	state, failed := r.apply(ctx, u)
	if failed != nil && ctx.Err() != nil {
		return reconcile.Result{}, failed
	}
	if err := r.write(ctx, u, state); err != nil {
		return again(err)
	}
	switch {
	case failed != nil:
		return reconcile.Result{}, failed
	case state.reason != reasonApplied:
		return reconcile.Result{RequeueAfter: lookAgain}, nil
	}
	return reconcile.Result{}, nil
}

// again waits for the event of whoever was first, which is no failure.
func again(err error) (reconcile.Result, error) {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return reconcile.Result{RequeueAfter: 50 * time.Millisecond}, nil
	}
	return reconcile.Result{}, err
}

// apply puts a custom resource into the store and says what became of it. An error is to be
// tried again.
func (r *reconciler) apply(ctx context.Context, u *unstructured.Unstructured) (state, error) {
	files, noMaps, err := filesOf(ctx, r.live, u)
	if err != nil {
		return failure(err), err
	}
	got, err := r.permissions.read(ctx, u, files)
	if err != nil {
		return failure(err), err
	}
	for _, name := range noMaps {
		got.violations = append(got.violations, v1.Violation{
			Path: v1.Pointer("/metadata/annotations", FilesAnnotation), Expected: "a ConfigMap of this namespace", Got: fmt.Sprintf("%q", name),
			Message: fmt.Sprintf("there is no ConfigMap %q in namespace %q", name, u.GetNamespace()),
		})
	}
	if more, err := r.others(ctx, u, got.object); err != nil {
		return failure(err), err
	} else if got.violations = append(got.violations, more...); got.invalid() {
		return invalid(got.violations), nil
	}
	change, err := r.batcher.apply(ctx, got.object)
	var owned *store.SetError
	switch {
	case errors.As(err, &owned):
		return state{reason: reasonOwned, message: ownedMessage(owned), violations: got.violations}, nil
	case err != nil:
		return failure(err), err
	}
	return state{
		reason: reasonApplied, version: change.After.ResourceVersion, violations: got.violations,
		message: fmt.Sprintf("in the store, as part of set %q", r.batcher.set),
	}, nil
}

// ownedMessage says whose an object is. A set without a name is the paths of its files.
func ownedMessage(e *store.SetError) string {
	owner := strings.ReplaceAll(e.Owner, "\n", ", ")
	if owner == "" {
		return "the store has an object of this name that belongs to no set: delete it there with 'toolctl delete'"
	}
	return fmt.Sprintf("the store has an object of this name that belongs to set %q: delete it there with 'toolctl delete', or this one here", owner)
}

// others says what a custom resource lacks of other objects.
func (r *reconciler) others(ctx context.Context, u *unstructured.Unstructured, o v1.Object) ([]v1.Violation, error) {
	switch o := o.(type) {
	case *v1.Tool:
		if o.Mode() != v1.ModeMCP || o.Spec.MCP == nil || o.Spec.MCP.Server == "" {
			return nil, nil
		}
		_, err := r.batcher.store.Get(ctx, v1.Key{Kind: v1.KindMCPServer, Namespace: o.Namespace(), Name: o.Spec.MCP.Server})
		var missing *v1.NotFoundError
		if errors.As(err, &missing) {
			return []v1.Violation{{
				Path: "/spec/mcp/server", Expected: "an MCPServer", Got: fmt.Sprintf("%q", o.Spec.MCP.Server),
				Message: fmt.Sprintf("no MCPServer %q in namespace %q", o.Spec.MCP.Server, o.Namespace()),
			}}, nil
		}
		return nil, err
	case *v1.Prompt:
		if r.gvk != promptConfig {
			return nil, nil
		}
		err := r.client.Get(ctx, client.ObjectKeyFromObject(u), resource(kinds()[1]))
		if err == nil {
			return []v1.Violation{{
				Path: "/metadata/name", Expected: "a name of its own", Got: fmt.Sprintf("%q", u.GetName()),
				Message: fmt.Sprintf("there is a Prompt %q, and a PromptConfig is read as a Prompt: rename one of them", u.GetName()),
			}}, nil
		}
		return nil, client.IgnoreNotFound(err)
	}
	return nil, nil
}

// remove takes a custom resource out of the store, and then lets go of it.
func (r *reconciler) remove(ctx context.Context, u *unstructured.Unstructured) error {
	if !controllerutil.ContainsFinalizer(u, Finalizer) {
		return nil
	}
	if err := r.batcher.remove(ctx, key(r.gvk, u.GetNamespace(), u.GetName())); err != nil {
		r.events.Eventf(u, nil, corev1.EventTypeWarning, reasonFailed, "Remove", "%s", clipped(err.Error()))
		return err
	}
	before := u.DeepCopy()
	controllerutil.RemoveFinalizer(u, Finalizer)
	err := r.client.Patch(ctx, u, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		ctrl.LoggerFrom(ctx).V(1).Info("somebody changed it meanwhile", "error", err.Error())
	}
	return client.IgnoreNotFound(err)
}
