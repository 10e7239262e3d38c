package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

// watched is a registry whose spans and metrics a test can read.
type watched struct {
	*registry.Registry
	spans  *tracetest.InMemoryExporter
	reader *sdkmetric.ManualReader
}

func watch(t testing.TB, exec registry.Executor, objects ...v1.Object) watched {
	t.Helper()
	w := watched{spans: tracetest.NewInMemoryExporter(), reader: sdkmetric.NewManualReader()}
	tracers := sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))
	meters := sdkmetric.NewMeterProvider(sdkmetric.WithReader(w.reader))
	var err error
	w.Registry, err = registry.New(objects, registry.Options{Executors: []registry.Executor{exec}, Audit: &auditLog{}, TracerProvider: tracers, MeterProvider: meters})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// attrs returns attributes as text, sorted, without those that differ from run to run.
func attrs(kvs []attribute.KeyValue) []string {
	var out []string
	for _, kv := range kvs {
		if kv.Key != "gen_ai.tool.call.id" {
			out = append(out, fmt.Sprintf("%s=%v", kv.Key, kv.Value.String()))
		}
	}
	slices.Sort(out)
	return out
}

// points returns the data points of a metric: its attributes, and their count or sum.
func (w watched) points(t testing.TB, name string) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := w.reader.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	out := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			if m.Name != name {
				continue
			}
			switch d := m.Data.(type) {
			case metricdata.Histogram[float64]:
				for _, p := range d.DataPoints {
					out[strings.Join(attrs(p.Attributes.ToSlice()), " ")] += int64(p.Count)
				}
			case metricdata.Sum[int64]:
				for _, p := range d.DataPoints {
					out[strings.Join(attrs(p.Attributes.ToSlice()), " ")] += p.Value
				}
			default:
				t.Fatalf("%s is a %T", name, d)
			}
		}
	}
	return out
}

const hiddenText = "hunter2"

func TestSpans(t *testing.T) {
	pay := newTool("pay", func(x *v1.Tool) {
		x.Spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"pin":{"type":"string"},"n":{"type":"integer"}}}`)
		x.Spec.OutputSchema = json.RawMessage(`{"type":"object","required":["ok"]}`)
		x.Spec.MockResult = json.RawMessage(`{"ok":true}`)
	})
	bad := newTool("bad", anyArgs, func(x *v1.Tool) {
		x.Spec.OutputSchema = json.RawMessage(`{"type":"object","required":["ok"]}`)
		x.Spec.MockResult = json.RawMessage(`{"pin":"hunter2"}`)
	})
	stop := newTool("stop", anyArgs)
	caps := newPolicy("caps", v1.ToolPolicySpec{Blocklist: []string{"stop"}})
	all := []string{"validate arguments", "policy", "execute", "validate result", "audit"}
	for _, tc := range []struct {
		name   string
		call   v1.Call
		exec   func() (v1.Result, error)
		span   string
		attrs  []string
		failed string   // description of the status
		phases []string // children in order; "!" marks a failed one
		points string   // of toolctl.call.duration
	}{
		{name: "complete", call: v1.Call{Tool: "pay", Args: json.RawMessage(`{"pin":"hunter2"}`)}, span: "execute_tool pay",
			attrs:  []string{"gen_ai.operation.name=execute_tool", "gen_ai.tool.name=pay", "toolctl.attempts=1", "toolctl.executor=mock", "toolctl.namespace=default", "toolctl.policy.decision=allow", "toolctl.status=complete"},
			phases: all, points: "gen_ai.tool.name=pay toolctl.namespace=default toolctl.status=complete"},
		{name: "wrong arguments", call: v1.Call{Tool: "pay", Args: json.RawMessage(`{"n":"hunter2"}`)}, span: "execute_tool pay",
			attrs:  []string{"error.type=args_invalid", "gen_ai.operation.name=execute_tool", "gen_ai.tool.name=pay", "toolctl.executor=mock", "toolctl.namespace=default", "toolctl.status=failed"},
			failed: "args_invalid", phases: []string{"validate arguments!", "audit"},
			points: "error.type=args_invalid gen_ai.tool.name=pay toolctl.namespace=default toolctl.status=failed"},
		{name: "refused", call: v1.Call{Tool: "stop"}, span: "execute_tool stop",
			attrs: []string{"error.type=policy_refused", "gen_ai.operation.name=execute_tool", "gen_ai.tool.name=stop", "toolctl.executor=mock", "toolctl.namespace=default",
				"toolctl.policy.decision=deny", "toolctl.policy.name=caps", "toolctl.policy.rule=blocklist", "toolctl.status=failed"},
			failed: "policy_refused", phases: []string{"validate arguments", "policy!", "audit"},
			points: "error.type=policy_refused gen_ai.tool.name=stop toolctl.namespace=default toolctl.status=failed"},
		{name: "unknown", call: v1.Call{Tool: "hunter2"}, span: "execute_tool",
			attrs:  []string{"error.type=not_found", "gen_ai.operation.name=execute_tool", "toolctl.status=failed"},
			failed: "not_found", phases: []string{"audit"}, points: "error.type=not_found toolctl.status=failed"},
		{name: "wrong result", call: v1.Call{Tool: "bad"}, span: "execute_tool bad",
			attrs: []string{"error.type=result_invalid", "gen_ai.operation.name=execute_tool", "gen_ai.tool.name=bad", "toolctl.attempts=1", "toolctl.executor=mock", "toolctl.namespace=default",
				"toolctl.policy.decision=allow", "toolctl.status=failed"},
			failed: "result_invalid", phases: []string{"validate arguments", "policy", "execute", "validate result!", "audit"},
			points: "error.type=result_invalid gen_ai.tool.name=bad toolctl.namespace=default toolctl.status=failed"},
		{name: "an error of the executor", call: v1.Call{Tool: "pay"}, span: "execute_tool pay",
			exec: func() (v1.Result, error) {
				return v1.Result{Attempts: 3}, &v1.ExecutionError{Tool: "pay", Phase: v1.PhaseConnect, Message: hiddenText, Cause: errors.New(hiddenText)}
			},
			attrs: []string{"error.type=connect_failed", "gen_ai.operation.name=execute_tool", "gen_ai.tool.name=pay", "toolctl.attempts=3", "toolctl.executor=mock", "toolctl.namespace=default",
				"toolctl.policy.decision=allow", "toolctl.status=failed"},
			failed: "connect_failed", phases: []string{"validate arguments", "policy", "execute!", "audit"},
			points: "error.type=connect_failed gen_ai.tool.name=pay toolctl.namespace=default toolctl.status=failed"},
		{name: "a failure that the tool reports", call: v1.Call{Tool: "pay"}, span: "execute_tool pay",
			exec: func() (v1.Result, error) {
				return v1.Result{Status: v1.StatusFailed, Attempts: 1, Content: json.RawMessage(`"hunter2"`)}, nil
			},
			attrs: []string{"error.type=tool_error", "gen_ai.operation.name=execute_tool", "gen_ai.tool.name=pay", "toolctl.attempts=1", "toolctl.executor=mock", "toolctl.namespace=default",
				"toolctl.policy.decision=allow", "toolctl.status=failed"},
			failed: "tool_error", phases: []string{"validate arguments", "policy", "execute", "audit"},
			points: "error.type=tool_error gen_ai.tool.name=pay toolctl.namespace=default toolctl.status=failed"},
	} {
		for _, entry := range []string{"Execute", "ExecuteAll"} {
			t.Run(tc.name+"/"+entry, func(t *testing.T) {
				var inside trace.SpanContext
				w := watch(t, mock{name: "mock", fn: func(ctx context.Context, tool *v1.Tool, _ json.RawMessage) (v1.Result, error) {
					inside = trace.SpanContextFromContext(ctx)
					if tc.exec != nil {
						return tc.exec()
					}
					return v1.Result{Content: tool.Spec.MockResult, Attempts: 1}, nil
				}}, pay, bad, stop, caps)
				if entry == "Execute" {
					_, _ = w.Execute(t.Context(), tc.call)
				} else {
					w.ExecuteAll(t.Context(), []v1.Call{tc.call})
				}
				spans := w.spans.GetSpans()
				if text := fmt.Sprintf("%+v", spans); strings.Contains(text, hiddenText) {
					t.Errorf("a span shows what was hidden: %s", text)
				}
				if len(spans) == 0 {
					t.Fatal("no span")
				}
				root := spans[len(spans)-1]
				want := codes.Unset
				if tc.failed != "" {
					want = codes.Error
				}
				if root.Name != tc.span || root.Status.Code != want || root.Status.Description != tc.failed {
					t.Errorf("span %q with status %v", root.Name, root.Status)
				}
				if diff := cmp.Diff(tc.attrs, attrs(root.Attributes)); diff != "" {
					t.Errorf("attributes, -want +got:\n%s", diff)
				}
				var phases []string
				for _, s := range spans[:len(spans)-1] {
					if s.Parent.SpanID() != root.SpanContext.SpanID() {
						t.Errorf("%s is no child of %s", s.Name, root.Name)
					}
					if s.Name == "execute" && s.SpanContext.SpanID() != inside.SpanID() {
						t.Errorf("the executor sees span %s, want %s", inside.SpanID(), s.SpanContext.SpanID())
					}
					name := s.Name
					if s.Status.Code == codes.Error {
						name += "!"
					}
					phases = append(phases, name)
				}
				if diff := cmp.Diff(tc.phases, phases); diff != "" {
					t.Errorf("phases, -want +got:\n%s", diff)
				}
				if diff := cmp.Diff(map[string]int64{tc.points: 1}, w.points(t, "toolctl.call.duration")); diff != "" {
					t.Errorf("toolctl.call.duration, -want +got:\n%s", diff)
				}
				refusals := map[string]int64{}
				if tc.name == "refused" {
					refusals["gen_ai.tool.name=stop toolctl.namespace=default toolctl.policy.name=caps toolctl.policy.rule=blocklist"] = 1
				}
				if diff := cmp.Diff(refusals, w.points(t, "toolctl.policy.refusals")); diff != "" {
					t.Errorf("toolctl.policy.refusals, -want +got:\n%s", diff)
				}
				if diff := cmp.Diff(map[string]int64{"": 0}, w.points(t, "toolctl.calls.active")); diff != "" {
					t.Errorf("toolctl.calls.active, -want +got:\n%s", diff)
				}
			})
		}
	}
}

func anyArgs(t *v1.Tool) { t.Spec.InputSchema = json.RawMessage(`{"type":"object"}`) }

// A running call is counted, and belongs to the trace of its caller.
func TestSpansOfACaller(t *testing.T) {
	var w watched
	var during map[string]int64
	w = watch(t, mock{name: "mock", fn: func(context.Context, *v1.Tool, json.RawMessage) (v1.Result, error) {
		during = w.points(t, "toolctl.calls.active")
		return v1.Result{}, nil
	}}, newTool("a", anyArgs))
	caller := trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled, Remote: true})
	if _, err := w.Execute(trace.ContextWithRemoteSpanContext(t.Context(), caller), v1.Call{Tool: "a"}); err != nil {
		t.Fatal(err)
	}
	if during[""] != 1 {
		t.Errorf("under way: %v", during)
	}
	spans := w.spans.GetSpans()
	if root := spans[len(spans)-1]; root.SpanContext.TraceID() != caller.TraceID() || root.Parent.SpanID() != caller.SpanID() {
		t.Errorf("got trace %s and parent %s", root.SpanContext.TraceID(), root.Parent.SpanID())
	}
}

// BenchmarkExecuteObserved measures the cost of spans and metrics for a mock call, with an exporter that discards
// everything.
func BenchmarkExecuteObserved(b *testing.B) {
	for _, tc := range []struct {
		name string
		opts registry.Options
	}{
		{"off", registry.Options{}},
		{"metrics", registry.Options{MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewManualReader()))}},
		{"traces", registry.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(dropped{}))}},
		{"traces not sampled", registry.Options{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSampler(sdktrace.NeverSample()))}},
	} {
		b.Run(tc.name, func(b *testing.B) {
			tc.opts.Executors = []registry.Executor{mock{name: "mock"}}
			reg, err := registry.New(benchTools(1), tc.opts)
			if err != nil {
				b.Fatal(err)
			}
			call := v1.Call{Tool: "tool-00000", Args: json.RawMessage(benchArgs)}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := reg.Execute(b.Context(), call); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

type dropped struct{}

func (dropped) ExportSpans(context.Context, []sdktrace.ReadOnlySpan) error { return nil }
func (dropped) Shutdown(context.Context) error                             { return nil }
