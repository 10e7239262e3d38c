package registry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/validate"
)

const (
	benchInput  = `{"type":"object","properties":{"location":{"type":"string","minLength":1},"units":{"type":"string","enum":["metric","imperial"]}},"required":["location"],"additionalProperties":false}`
	benchOutput = `{"type":"object","properties":{"location":{"type":"string"},"temperature":{"type":"number"},"conditions":{"type":"string"}},"required":["temperature"]}`
	benchArgs   = `{"location":"Oslo","units":"metric"}`
	benchResult = `{"location":"Oslo","temperature":21.5,"conditions":"sunny"}`
)

func benchTools(n int) []v1.Object {
	objects := make([]v1.Object, n)
	for i := range objects {
		objects[i] = newTool(fmt.Sprintf("tool-%05d", i), func(t *v1.Tool) {
			t.Spec.InputSchema = json.RawMessage(benchInput)
			t.Spec.OutputSchema = json.RawMessage(benchOutput)
			t.Spec.MockResult = json.RawMessage(benchResult)
		})
	}
	return objects
}

// BenchmarkExecute compares a call of a static mock with its floor: the two bare validations that it contains. Without
// an audit log, with or without a policy that counts nothing, a call should take less than 1.5 us.
func BenchmarkExecute(b *testing.B) {
	schemas := validate.NewCache(validate.Options{})
	in, out := schemas.Schema(json.RawMessage(benchInput), validate.Draft2020), schemas.Schema(json.RawMessage(benchOutput), validate.Draft2020)
	floor := func(b *testing.B) {
		if violations, err := in.ValidateJSON([]byte(benchArgs)); err != nil || len(violations) > 0 {
			b.Fatal(violations, err)
		}
		if violations, err := out.ValidateJSON([]byte(benchResult)); err != nil || len(violations) > 0 {
			b.Fatal(violations, err)
		}
	}
	b.Run("floor", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			floor(b)
		}
	})
	b.Run("floor/parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				floor(b)
			}
		})
	})
	b.Run("audit", benchAudit)
	b.Run("policy", func(b *testing.B) {
		policy := newPolicy("block", v1.ToolPolicySpec{Blocklist: []string{"delete-*"}})
		reg, err := registry.New(append(benchTools(1), policy), registry.Options{Executors: []registry.Executor{mock{name: "mock"}}})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			if _, err := reg.Execute(b.Context(), v1.Call{Tool: "tool-00000", Args: json.RawMessage(benchArgs)}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, n := range []int{1, 128, 10000} {
		reg, err := registry.New(benchTools(n), registry.Options{Executors: []registry.Executor{mock{name: "mock"}}})
		if err != nil {
			b.Fatal(err)
		}
		call := v1.Call{Tool: fmt.Sprintf("tool-%05d", n/2), Args: json.RawMessage(benchArgs)}
		execute := func(b *testing.B) {
			if _, err := reg.Execute(b.Context(), call); err != nil {
				b.Fatal(err)
			}
		}
		b.Run(fmt.Sprintf("tools=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				execute(b)
			}
		})
		b.Run(fmt.Sprintf("tools=%d/parallel", n), func(b *testing.B) {
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					execute(b)
				}
			})
		})
	}
}

// benchAudit compares calls with both audit records in memory with calls whose sink keeps only the outcome; the record
// of intent may cost 5 %. They alternate, so that the ratio is valid on a busy machine too.
func benchAudit(b *testing.B) {
	const turn = 200
	var took [2]time.Duration
	var regs [2]*registry.Registry
	for i, sink := range []registry.Auditor{inMemory{}, noIntent{}} {
		var err error
		if regs[i], err = registry.New(benchTools(1), registry.Options{Executors: []registry.Executor{mock{name: "mock"}}, Audit: sink}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, reg := range regs {
			began := time.Now()
			for range turn {
				if _, err := reg.Execute(b.Context(), v1.Call{Tool: "tool-00000", Args: json.RawMessage(benchArgs)}); err != nil {
					b.Fatal(err)
				}
			}
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[0])/float64(took[1]), "intent/outcome-alone")
	b.ReportMetric(float64(took[0].Nanoseconds())/float64(b.N*turn), "ns/call")
}

// inMemory keeps the last record.
type inMemory struct{}

var lastLine v1.AuditRecord

func (inMemory) AppendAudit(_ context.Context, line v1.AuditRecord) error {
	lastLine = line
	return nil
}

// noIntent drops records of intent.
type noIntent struct{}

func (noIntent) AppendAudit(ctx context.Context, line v1.AuditRecord) error {
	if line.Status == v1.StatusStarted {
		return nil
	}
	return inMemory{}.AppendAudit(ctx, line)
}

// BenchmarkNew measures the cost of a reload.
func BenchmarkNew(b *testing.B) {
	objects := benchTools(10000)
	for b.Loop() {
		if _, err := registry.New(objects, registry.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
