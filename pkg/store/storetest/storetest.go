// Package storetest is the suite that every backend of pkg/store passes:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Backend{New: newStore})
//	}
package storetest

import (
	"fmt"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

// Backend says how to open the stores of a backend.
type Backend struct {
	// New creates one empty store and returns a function that opens it: each call returns another handle, as another
	// process would have. A store with only one possible handle returns the same one.
	New func(t testing.TB) func(store.Options) (store.Store, error)
}

// Run runs the suite.
func Run(t *testing.T, backend Backend) {
	for _, part := range []struct {
		name string
		test func(*testing.T, Backend)
	}{
		{"ApplyActions", testApplyActions},
		{"ApplyPruneAndSets", testApplyPruneAndSets},
		{"ApplyAgainAfterDelete", testApplyAgainAfterDelete},
		{"ApplyErrors", testApplyErrors},
		{"ApplyExpect", testApplyExpect},
		{"ApplyCancelled", testApplyCancelled},
		{"ApplyAtTheSameTime", testApplyAtTheSameTime},
		{"DryRunChangesNothing", testDryRunChangesNothing},
		{"Delete", testDelete},
		{"RoundTrip", testRoundTrip},
		{"List", testList},
		{"ListRemote", testListRemote},
		{"ListDecodesInOrder", testListDecodesInOrder},
		{"Watch", testWatch},
		{"WatchManyChangesAtOnce", testWatchManyChangesAtOnce},
		{"WatchWithoutGaps", testWatchWithoutGaps},
		{"WatchEnds", testWatchEnds},
		{"Reserve", testReserve},
		{"ReserveIsExact", testReserveIsExact},
		{"ReserveAllOrNothing", testReserveAllOrNothing},
		{"CountersExpire", testCountersExpire},
		{"ReleaseOfAWindow", testReleaseOfAWindow},
		{"Approvals", testDecideApproval},
		{"ApprovalIsUsedOnce", testApprovalIsUsedOnce},
		{"ApprovalExpiresAsItIsDecided", testApprovalExpiresAsItIsDecided},
		{"ApprovalBounds", testApprovalBounds},
		{"Audit", testAudit},
		{"AuditOfChanges", testAuditOfChanges},
		{"AuditChainRecipe", testAuditChainRecipe},
		{"AuditIsOneChain", testAuditIsOneChain},
		{"EachAuditPages", testEachAuditPages},
		{"FollowAudit", testFollowAudit},
		{"PruneAudit", testPruneAudit},
		{"PruneAuditByTime", testPruneAuditByTime},
		{"Overrides", testOverrides},
		{"WatchOverrides", testWatchOverrides},
		{"Revisions", testRevisions},
		{"RevisionsHoldWhatWas", testRevisionsHoldWhatWas},
		{"RevisionsAtTheSameTime", testRevisionsAtTheSameTime},
		{"Conditions", testConditions},
		{"Copy", testCopy},
		{"Leases", testLeases},
		{"LeaseIsOfOne", testLeaseIsOfOne},
		{"Runs", testRuns},
		{"RunsAtTheSameTime", testRunsAtTheSameTime},
		{"RunBounds", testRunBounds},
		{"Vectors", testVectors},
		{"VectorBounds", testVectorBounds},
		{"AwaitApproval", testAwaitApproval},
		{"Limit", testLimit},
		{"Size", testSize},
		{"Closed", testClosed},
	} {
		t.Run(part.name, func(t *testing.T) { part.test(t, backend) })
	}
}

// open opens a new store.
func (b Backend) open(t testing.TB) store.Store {
	t.Helper()
	return open(t, b.New(t))
}

func open(t testing.TB, disk func(store.Options) (store.Store, error)) store.Store {
	t.Helper()
	return openWith(t, disk, store.Options{})
}

func openWith(t testing.TB, disk func(store.Options) (store.Store, error), opts store.Options) store.Store {
	t.Helper()
	opts.Create = true
	st, err := disk(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	})
	return st
}

// Tools returns n tools with a mark, as label and in their spec.
func Tools(n int, mark string) []v1.Object {
	objects := make([]v1.Object, n)
	for i := range objects {
		objects[i] = Tool(fmt.Sprintf("tool-%04d", i), mark)
	}
	return objects
}

// Tool returns a tool with a name, and a label mark that distinguishes its versions.
func Tool(name, mark string) *v1.Tool {
	t := v1.NewObject(v1.KindTool).(*v1.Tool)
	t.Metadata.Name = name
	t.Metadata.Labels = map[string]string{"mark": mark}
	t.Source = v1.Source{File: "tools/" + name + ".yaml", Line: 1, Column: 1}
	t.Spec = v1.ToolSpec{
		Description:  "Current weather for a place, " + mark,
		InputSchema:  []byte(`{"type":"object","properties":{"location":{"type":"string","description":"a place"},"unit":{"type":"string","enum":["c","f"]}},"required":["location"]}`),
		OutputSchema: []byte(`{"type":"object","properties":{"temperature_c":{"type":"number"},"conditions":{"type":"string"}}}`),
		MockResult:   []byte(`{"temperature_c":21.5,"conditions":"sunny"}`),
	}
	return t
}

func keyOf(kind, name string) v1.Key {
	return v1.Key{Kind: kind, Namespace: v1.DefaultNamespace, Name: name}
}

func mustApply(t testing.TB, st store.Store, objects []v1.Object, opts store.ApplyOptions) []store.Change {
	t.Helper()
	changes, err := st.Apply(t.Context(), objects, opts)
	if err != nil {
		t.Fatal(err)
	}
	return changes
}

func mustList(t testing.TB, st store.Store, opts store.ListOptions) store.List {
	t.Helper()
	list, err := st.List(t.Context(), opts)
	if err != nil {
		t.Error(err) // also called from other goroutines
	}
	return list
}
