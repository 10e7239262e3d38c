package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

// breaking is an audit log whose writes can be made to fail.
type breaking struct {
	auditLog
	mu   sync.Mutex
	err  error
	hold chan struct{} // if not nil, an append waits for it
}

func (b *breaking) fail(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.err = err
}

func (b *breaking) AppendAudit(ctx context.Context, r v1.AuditRecord) error {
	b.mu.Lock()
	err, hold := b.err, b.hold
	b.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err != nil {
		return err
	}
	return b.auditLog.AppendAudit(ctx, r)
}

func (b *breaking) texts() []string {
	var out []string
	for _, l := range b.lines {
		text := l.CallID + " " + l.Status
		if l.Gap != nil {
			text = fmt.Sprintf("gap of %d: %s", l.Gap.Lines, l.Gap.Reason)
		}
		if l.Late {
			text += ", late"
		}
		out = append(out, text)
	}
	return out
}

func TestAuditIntent(t *testing.T) {
	full := errors.New("the disk is full")
	one := int64(1)
	for _, tc := range []struct {
		name       string
		bestEffort bool
		ran        []string // by ID
		lines      []string
	}{
		{"refused", false, []string{"1", "4"}, []string{"1 started", "1 complete", "gap of 2: the disk is full", "4 started", "4 complete"}},
		{"best effort", true, []string{"1", "2", "4"}, []string{"1 started", "1 complete", "gap of 3: the disk is full", "4 started", "4 complete"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var log breaking
			var ran []string
			r := newRegistry(t, registry.Options{Audit: &log, AuditBestEffort: tc.bestEffort, Executors: []registry.Executor{mock{name: "mock", fn: func(_ context.Context, _ *v1.Tool, args json.RawMessage) (v1.Result, error) {
				var in struct{ City string }
				if err := json.Unmarshal(args, &in); err != nil {
					return v1.Result{}, err
				}
				ran = append(ran, in.City)
				return v1.Result{}, nil
			}}}}, newTool("a"), newPolicy("p", v1.ToolPolicySpec{Limits: []v1.Limit{{Tools: []string{"a"}, MaxCalls: &one, Per: v1.PerSession}}}))
			call := func(id string) error {
				_, err := r.Execute(t.Context(), v1.Call{ID: id, Tool: "a", Session: id, Args: json.RawMessage(`{"city":"` + id + `"}`)})
				return err
			}
			if err := call("1"); err != nil {
				t.Fatal(err)
			}
			log.fail(full)
			err := call("2")
			var failed *v1.ExecutionError
			if !tc.bestEffort && (!errors.As(err, &failed) || failed.Phase != v1.PhaseConnect || !errors.Is(err, full) || !strings.Contains(err.Error(), "refused, because the audit log cannot be written")) {
				t.Errorf("a call without an audit: %v", err)
			}
			if tc.bestEffort && err != nil {
				t.Error(err)
			}
			if _, err := r.Execute(t.Context(), v1.Call{ID: "3", Tool: "a", Args: json.RawMessage(`{`)}); err == nil {
				t.Error("broken arguments were taken")
			}
			if err := r.AuditError(); !errors.Is(err, full) {
				t.Errorf("AuditError: %v", err)
			}
			if err := r.RetryAudit(t.Context()); !errors.Is(err, full) {
				t.Errorf("RetryAudit: %v", err)
			}
			log.fail(nil)
			if !tc.bestEffort { // the refused call used no budget of its session
				if res, err := r.ExplainPolicy(t.Context(), v1.Call{Tool: "a", Session: "2"}); err != nil || res.Decision != v1.DecisionAllow {
					t.Errorf("the limit of the refused call: %+v, %v", res, err)
				}
			}
			if err := call("4"); err != nil {
				t.Fatal(err)
			}
			if err := r.AuditError(); err != nil {
				t.Errorf("AuditError at the end: %v", err)
			}
			if d := cmp.Diff(tc.ran, ran); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(tc.lines, log.texts()); d != "" {
				t.Error(d)
			}
		})
	}
}

// The outcome of a call that ends while the audit log cannot be written is written later, marked as late, before any
// other record.
func TestAuditLate(t *testing.T) {
	var log breaking
	reader := sdkmetric.NewManualReader()
	r := newRegistry(t, registry.Options{Audit: &log, MeterProvider: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), Executors: []registry.Executor{mock{name: "mock", fn: func(_ context.Context, _ *v1.Tool, args json.RawMessage) (v1.Result, error) {
		if strings.Contains(string(args), "break") {
			log.fail(errors.New("the database is away"))
		}
		return v1.Result{}, nil
	}}}}, newTool("a"))
	call := func(id, city string) error {
		_, err := r.Execute(t.Context(), v1.Call{ID: id, Tool: "a", Args: json.RawMessage(`{"city":"` + city + `"}`)})
		return err
	}
	if err := call("1", "break"); err != nil {
		t.Fatal(err)
	}
	late := func(wantWaiting int, wantWritten, wantMissing int64) {
		t.Helper()
		if waiting, written := r.LateAudit(); waiting != wantWaiting || written != wantWritten || (r.AuditError() == nil) != (waiting == 0) {
			t.Errorf("%d outcomes wait and %d were late: %v", waiting, written, r.AuditError())
		}
		w := watched{reader: reader}
		for name, want := range map[string]int64{"toolctl.audit.waiting": int64(wantWaiting), "toolctl.audit.late": wantWritten, "toolctl.audit.missing": wantMissing} {
			if got := w.points(t, name); len(got) != 1 || got[""] != want {
				t.Errorf("%s is %v, want %d", name, got, want)
			}
		}
	}
	late(1, 0, 0)
	if err := call("2", "x"); err == nil {
		t.Error("a call was made that cannot be audited")
	}
	log.fail(nil)
	if err := call("3", "x"); err != nil {
		t.Fatal(err)
	}
	late(0, 1, 1) // the record of intent of the second call is missing
	if d := cmp.Diff([]string{"1 started", "1 complete, late", "gap of 1: the database is away", "3 started", "3 complete"}, log.texts()); d != "" {
		t.Error(d)
	}
}

// Many callers wait for one attempt to record the gap, and a caller whose context has ended is not counted.
func TestAuditIntentTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := breaking{err: errors.New("locked"), hold: make(chan struct{})}
		r := newRegistry(t, registry.Options{Audit: &log}, newTool("a"))
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, err := r.Execute(ctx, oslo("a"))
			gone <- err
		}()
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(log.hold)
		if err := <-gone; !errors.Is(err, context.Canceled) {
			t.Errorf("a caller that went: %v", err)
		}
		if _, err := r.Execute(t.Context(), oslo("a")); err == nil {
			t.Fatal("not refused")
		}
		log.mu.Lock()
		log.err, log.hold = nil, make(chan struct{})
		log.mu.Unlock()
		var calls sync.WaitGroup
		for range 64 {
			calls.Go(func() {
				if _, err := r.Execute(t.Context(), oslo("a")); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		close(log.hold)
		calls.Wait()
		if got := log.texts(); len(got) != 129 || !strings.HasPrefix(got[0], "gap of ") {
			t.Errorf("%d lines, the first %q", len(got), got[0])
		}
	})
}

func TestAuditBounds(t *testing.T) {
	var log auditLog
	r := newRegistry(t, registry.Options{Audit: &log}, newTool("a", func(t *v1.Tool) {
		t.Spec.InputSchema = json.RawMessage(`{"type":"object"}`)
		t.Spec.Redact = []string{"pin"}
	}))
	long := strings.Repeat("\"é\n", 1<<20)
	args, err := json.Marshal(map[string]string{"a": long, "pin": "hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []v1.Call{
		{ID: long, Tool: "a", Session: long, Turn: long, Principal: long, Args: args},
		{Tool: long, Args: args},
		{Tool: "a", Args: args[1:]},
	} {
		_, _ = r.Execute(t.Context(), c) // the test checks only the audit log
	}
	if len(log.lines) != 4 {
		t.Fatalf("%d lines", len(log.lines))
	}
	for i, l := range log.lines {
		raw, err := json.Marshal(l)
		if err != nil || len(raw) > 8<<10 || len(l.ArgsHash) != 64 || strings.Contains(string(raw), "hunter2") {
			t.Errorf("line %d has %d bytes, %v: %.200s", i, len(raw), err, raw)
		}
		if l.Args != nil || l.ArgsBytes < len(args)-10 {
			t.Errorf("line %d: %d bytes of arguments", i, l.ArgsBytes)
		}
	}
	if l := log.lines[0]; !strings.HasPrefix(l.ArgsStart, `{"a":"\"é`) || len(l.ArgsStart) < 1000 {
		t.Errorf("the start is %.100q", l.ArgsStart)
	}
}

// A search is recorded with its query, in which secrets are masked, and goes on without an audit log.
func TestAuditSearch(t *testing.T) {
	log := &breaking{}
	reg, err := registry.New(nil, registry.Options{Audit: log})
	if err != nil {
		t.Fatal(err)
	}
	search := v1.Call{ID: "c1", Principal: "ann", Session: "s1", Args: json.RawMessage(`{"query": "use ghp_0123456789abcdef & go", "limit": 5}`)}
	reg.AuditSearch(t.Context(), search, 1500*time.Microsecond)
	log.fail(errors.New("disk full"))
	search.ID = "c2"
	reg.AuditSearch(t.Context(), search, 0)
	log.fail(nil)
	reg.AuditSearch(t.Context(), v1.Call{Principal: "ann"}, 0)
	if got := log.texts(); len(got) != 3 || got[0] != "c1 complete" || got[1] != "gap of 1: disk full" {
		t.Fatalf("records %q", got)
	}
	line := log.lines[0]
	if line.Tool != v1.FindTools || line.Namespace != "" || line.Principal != "ann" || line.Session != "s1" || line.DurationMS != 1.5 || string(line.Args) != `{"query":"use [REDACTED] & go"}` {
		t.Errorf("record %+v with %s", line, line.Args)
	}
	if got := string(log.lines[2].Args); got != `{"query":""}` {
		t.Errorf("a search without arguments is recorded with %s", got)
	}
}
