package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

func TestOverlayGovernsCalls(t *testing.T) {
	tool := &v1.Tool{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindTool, Metadata: v1.Metadata{Name: "get"}},
		Spec: v1.ToolSpec{Description: "gets", InputSchema: json.RawMessage(`{"type":"object"}`), MockResult: json.RawMessage(`1`)}}
	prompt := &v1.Prompt{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindPrompt, Metadata: v1.Metadata{Name: "advice"}}, Spec: v1.PromptSpec{Template: "x"}}
	house := &v1.ToolPolicy{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindToolPolicy, Metadata: v1.Metadata{Name: "house"}},
		Spec: v1.ToolPolicySpec{Blocklist: []string{"advice"}}}
	reg, err := registry.New([]v1.Object{tool, prompt, house}, registry.Options{Executors: []registry.Executor{echo{}}})
	if err != nil {
		t.Fatal(err)
	}
	item, err := reg.Get(v1.KindTool, "", "get")
	if err != nil {
		t.Fatal(err)
	}
	overlay := policy.NewOverlay(prompt.Head(), v1.ToolPolicySpec{Blocklist: []string{"get"}})
	if blocked, _ := item.Under(nil, ""); blocked != nil {
		t.Errorf("without an overlay: %v", blocked)
	}
	if blocked, _ := item.Under(overlay, ""); blocked == nil || blocked.Policy != "prompt/advice" {
		t.Errorf("under the overlay: %v", blocked)
	}
	if _, err := reg.Execute(t.Context(), v1.Call{Tool: "get"}); err != nil {
		t.Errorf("a call without it: %v", err)
	}
	var refused *v1.PolicyError
	for _, o := range reg.ExecuteAll(policy.WithOverlay(t.Context(), overlay), []v1.Call{{Tool: "get"}}) {
		if !errors.As(o.Err, &refused) || refused.Policy != "prompt/advice" {
			t.Errorf("a call with it: %v", o.Err)
		}
	}
	if _, err := reg.AdmitPrompt(t.Context(), v1.Call{Tool: "advice"}); !errors.As(err, &refused) || refused.Policy != "house" {
		t.Errorf("a prompt that a manifest blocks: %v", err)
	}
	if it, err := reg.Get(v1.KindPrompt, "", "advice"); err != nil {
		t.Error(err)
	} else if blocked, _ := it.Under(nil, ""); blocked == nil || blocked.Policy != "house" {
		t.Errorf("the prompt's item: %v", blocked)
	}
}

type echo struct{}

func (echo) Name() string { return v1.ModeMock }

func (echo) Execute(_ context.Context, _ *v1.Tool, args json.RawMessage) (v1.Result, error) {
	return v1.Result{Content: args, Attempts: 1}, nil
}

// meeting waits for a number of concurrent calls, and counts how many arrived.
type meeting struct {
	n    atomic.Int32
	most atomic.Int32
}

func (*meeting) Name() string { return v1.ModeMock }

func (m *meeting) Execute(context.Context, *v1.Tool, json.RawMessage) (v1.Result, error) {
	n := m.n.Add(1)
	defer m.n.Add(-1)
	for {
		most := m.most.Load()
		if n <= most || m.most.CompareAndSwap(most, n) {
			return v1.Result{Content: json.RawMessage("1")}, nil
		}
	}
}

func TestWithParallel(t *testing.T) {
	tool := &v1.Tool{Header: v1.Header{APIVersion: v1.APIVersion, Kind: v1.KindTool, Metadata: v1.Metadata{Name: "get"}},
		Spec: v1.ToolSpec{Description: "gets", InputSchema: json.RawMessage(`{"type":"object"}`)}}
	m := &meeting{}
	reg, err := registry.New([]v1.Object{tool}, registry.Options{Executors: []registry.Executor{m}})
	if err != nil {
		t.Fatal(err)
	}
	calls := make([]v1.Call, 100)
	for i := range calls {
		calls[i] = v1.Call{Tool: "get"}
	}
	for _, o := range reg.ExecuteAll(registry.WithParallel(t.Context(), 1), calls) {
		if o.Err != nil {
			t.Fatal(o.Err)
		}
	}
	if got := m.most.Load(); got != 1 {
		t.Errorf("%d calls ran at once, want 1", got)
	}
}
