package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"toolctl.dev/toolctl/k8s/internal/clustertest"
	"toolctl.dev/toolctl/pkg/store"
)

// Many objects at once, one at a time, and none. TOOLCTL_K8S_OBJECTS says how many, TOOLCTL_K8S_JUDGE that the figures of
// 5000 are held to what is promised: 60 s for all, 2 s (p95) for one. On a machine that does other things they are not.
func TestMany(t *testing.T) {
	many := 60
	if n, err := strconv.Atoi(os.Getenv("TOOLCTL_K8S_OBJECTS")); err == nil {
		many = n
	}
	w := newWorld(t, clustertest.Options{})
	w.operate(t)
	tool := func(name string) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.Replace(weather, "get-weather", name, 1)), &u.Object); err != nil {
			t.Error(err)
		}
		u.SetNamespace("default")
		return u
	}
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("toolctl.dev/v1")
	list.SetKind("ToolList")
	// To list all is work for the API server that it is being measured with: the more there are, the less often.
	limit, every := max(time.Minute, time.Duration(many)*100*time.Millisecond), 20*time.Millisecond+time.Duration(many)*200*time.Microsecond
	// await waits until all are ready.
	await := func(ask func(ctx context.Context, all *unstructured.UnstructuredList) error, n int) {
		t.Helper()
		last, every := "", every
		if n == 1 {
			every = 20 * time.Millisecond
		}
		clustertest.Within(t, limit, every, fmt.Sprintf("%d are ready", n), func(ctx context.Context) error {
			all := list.DeepCopy()
			if err := ask(ctx, all); err != nil {
				return err
			}
			got := 0
			for i := range all.Items {
				if status, reason, message, _ := ready(&all.Items[i]); status == "True" {
					got++
				} else {
					last = all.Items[i].GetName() + ": " + reason + ": " + message
				}
			}
			if got != n {
				return fmt.Errorf("%d of %d are, not %s", got, len(all.Items), last)
			}
			return nil
		})
	}

	began := time.Now()
	var wg sync.WaitGroup
	next := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range next {
				if err := w.client.Create(t.Context(), tool(fmt.Sprintf("tool-%05d", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range many {
		next <- i
	}
	close(next)
	wg.Wait()
	created := time.Since(began)
	await(func(ctx context.Context, l *unstructured.UnstructuredList) error { return w.client.List(ctx, l) }, many)
	all := time.Since(began)

	var each []time.Duration
	for i := range 20 {
		one := time.Now()
		if err := w.client.Create(t.Context(), tool("one-"+strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
		await(func(ctx context.Context, l *unstructured.UnstructuredList) error {
			u, err := w.get(ctx, "tool", "one-"+strconv.Itoa(i))
			l.Items = append(l.Items, *u)
			return err
		}, 1)
		each = append(each, time.Since(one))
	}
	slices.Sort(each)
	p95 := each[18]
	stored, err := w.store.List(t.Context(), store.ListOptions{Set: "kubernetes"})
	if err != nil || len(stored.Records) != many+20 {
		t.Fatalf("the store has %d objects, expected %d (%v)", len(stored.Records), many+20, err)
	}

	began = time.Now()
	w.MustKubectl(t, "delete", "tools", "--all", "--wait=false")
	clustertest.Within(t, limit, every, "nothing is left", func(ctx context.Context) error {
		stored, err := w.store.List(ctx, store.ListOptions{})
		left := list.DeepCopy()
		if err2 := w.client.List(ctx, left); err != nil || err2 != nil || len(left.Items)+len(stored.Records) > 0 {
			return fmt.Errorf("%d in the cluster, %d in the store (%v, %v)", len(left.Items), len(stored.Records), err, err2)
		}
		return nil
	})
	t.Logf("%d objects: created in %s, ready in %s; one ready in %s (p95), %s (median); deleted in %s", many, created, all, p95, each[10], time.Since(began))
	if os.Getenv("TOOLCTL_K8S_JUDGE") != "" && (all > time.Minute || p95 > 2*time.Second) {
		t.Error("too slow")
	}
}
