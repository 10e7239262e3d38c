package gateway_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync/atomic"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
)

// metered counts the objects that are read from a store.
type metered struct {
	store.Store
	read atomic.Int64
}

func (m *metered) List(ctx context.Context, o store.ListOptions) (store.List, error) {
	list, err := m.Store.List(ctx, o)
	m.read.Add(int64(len(list.Records)))
	return list, err
}

func (m *metered) Watch(ctx context.Context, from int64) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for e, err := range m.Store.Watch(ctx, from) {
			m.read.Add(1)
			if !yield(e, err) {
				return
			}
		}
	}
}

// A store is read completely once, and then only its changes, unless these are no longer stored.
func TestStoredReadsWhatChanged(t *testing.T) {
	const many = 200
	st := &metered{Store: memory.New(memory.Options{KeepChanges: 20})}
	t.Cleanup(func() { st.Close() })
	apply := func(objects ...v1.Object) {
		t.Helper()
		if _, err := st.Apply(t.Context(), objects, store.ApplyOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	var all []v1.Object
	for i := range many {
		all = append(all, distinct(i, 0))
	}
	apply(all...)
	source := gateway.Stored(st, false)
	load := func() []v1.Object {
		t.Helper()
		set, err := source.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return set.Objects
	}
	before := load()
	for _, step := range []struct {
		name        string
		change      func()
		read, fresh int
	}{
		{"nothing", func() {}, 0, 0},
		{"one", func() { apply(distinct(3, 1)) }, 1, 1},
		{"one twice", func() { apply(distinct(3, 2)); apply(distinct(3, 3)) }, 2, 1},
		{"a new one", func() { apply(distinct(many, 0)) }, 1, 1},
		{"one that goes, and another that goes and comes", func() {
			if _, err := st.Delete(t.Context(), []v1.Key{distinct(3, 0).Key(), distinct(4, 0).Key()}, store.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			apply(distinct(4, 0))
		}, 3, 1},
		{"more than is kept", func() {
			apply(func() (more []v1.Object) {
				for i := range 30 {
					more = append(more, distinct(10+i, 1))
				}
				return more
			}()...)
		}, many + 1, many},
	} {
		step.change()
		st.read.Store(0)
		after := load()
		fresh := 0
		for _, o := range after {
			if !slices.Contains(before, o) {
				fresh++
			}
		}
		if got := int(st.read.Load()); got != step.read || fresh != step.fresh {
			t.Errorf("%s: %d objects were read, want %d; %d are new, want %d", step.name, got, step.read, fresh, step.fresh)
		}
		list, err := st.Store.List(t.Context(), store.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := texts(after), texts(objectsOf(list)); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", step.name, got, want)
		}
		before = after
	}
}

func objectsOf(list store.List) (all []v1.Object) {
	for _, r := range list.Records {
		all = append(all, r.Object)
	}
	return all
}

// texts returns the names and descriptions of tools, sorted.
func texts(objects []v1.Object) (all []string) {
	for _, o := range objects {
		all = append(all, fmt.Sprint(o.Head().Key(), o.(*v1.Tool).Spec.Description))
	}
	slices.Sort(all)
	return all
}
