package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

// approving is a registry whose pay tool needs approval, with the results of its calls.
type approving struct {
	*registry.Registry
	kept  registry.MemoryApprovals
	count *policy.MemoryCounters
	ran   []string // the arguments of the calls that ran
	lines []v1.AuditRecord
	now   time.Time
}

func (a *approving) list(t *testing.T) []v1.PendingCall {
	t.Helper()
	return listed(t, &a.kept)
}

func listed(t *testing.T, kept *registry.MemoryApprovals) []v1.PendingCall {
	t.Helper()
	calls, err := kept.ListApprovals(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

func (a *approving) AppendAudit(_ context.Context, line v1.AuditRecord) error {
	a.lines = append(a.lines, line)
	return nil
}

func newApproving(t *testing.T, spec v1.ToolPolicySpec, edit ...func(*v1.Tool)) *approving {
	t.Helper()
	a := &approving{count: policy.NewMemoryCounters(nil), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	executor := mock{name: "mock", fn: func(_ context.Context, _ *v1.Tool, args json.RawMessage) (v1.Result, error) {
		a.ran = append(a.ran, string(args))
		return v1.Result{Content: json.RawMessage(`{"ok":true}`), Attempts: 1}, nil
	}}
	a.Registry = newRegistry(t, registry.Options{
		Executors: []registry.Executor{executor}, Counters: a.count, Approvals: &a.kept, Audit: a, Now: func() time.Time { return a.now },
	}, newTool("pay", edit...), newTool("get"), newPolicy("careful", spec))
	return a
}

func limitOf(n int64) *int64 { return &n }

var needsApproval = v1.ToolPolicySpec{RequireApproval: []string{"pay"}, MaxTotalToolCalls: limitOf(2)}

func pay(session, city string) v1.Call {
	return v1.Call{Tool: "pay", Session: session, Args: json.RawMessage(`{"city":"` + city + `"}`)}
}

// outcome describes how a call ended.
func outcome(res v1.Result, err error) string {
	s := res.Status
	if res.Policy != nil {
		s += " " + res.Policy.Decision + " " + res.Policy.Rule
	}
	if err != nil {
		s += ": " + err.Error()
	}
	return strings.TrimSpace(s)
}

const (
	isPending  = "pending pending require_approval"
	isApproved = "complete allow require_approval"
	refusedBy  = `failed deny require_approval: tool "pay": refused by policy "careful", rule require_approval: `
)

func TestApproval(t *testing.T) {
	ask := func(d v1.Decision, ok bool, err error) context.Context {
		return registry.WithAsker(context.Background(), func(context.Context, v1.PendingToolInfo) (v1.Decision, bool, error) { return d, ok, err })
	}
	bg := context.Background()
	type step struct {
		name   string
		ctx    context.Context
		call   v1.Call
		byID   string // the session whose pending call is referenced
		decide *v1.Decision
		after  time.Duration
		want   string
	}
	const long = time.Hour
	yes, no := &v1.Decision{Approved: true, By: "ann"}, &v1.Decision{By: "ann", Reason: "too expensive"}
	for _, tt := range []struct {
		name  string
		spec  *v1.ToolPolicySpec
		edit  func(*v1.Tool)
		steps []step
		ran   string
	}{
		{name: "approved, once", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{name: "again while it waits", call: pay("s", "Oslo"), want: isPending},
			{decide: yes, call: pay("s", "Oslo"), want: isApproved},
			{name: "a second time", call: pay("s", "Oslo"), want: isPending},
		}, ran: `{"city":"Oslo"}`},
		{name: "other arguments", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: yes, call: pay("s", "Rome"), want: isPending},
			{call: pay("s", "Oslo"), want: isApproved},
		}, ran: `{"city":"Oslo"}`},
		{name: "another session of nobody", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: yes, call: pay("r", "Oslo"), want: isPending},
		}},
		{name: "another session of one principal", steps: []step{
			{call: v1.Call{Tool: "pay", Principal: "bob", Session: "s", Args: json.RawMessage(`{"city":"Oslo"}`)}, want: isPending},
			{decide: yes, call: v1.Call{Tool: "pay", Principal: "bob", Session: "r", Args: json.RawMessage(`{"city":"Oslo"}`)}, want: isApproved},
		}, ran: `{"city":"Oslo"}`},
		{name: "another principal", steps: []step{
			{call: v1.Call{Tool: "pay", Principal: "bob", Session: "s", Args: json.RawMessage(`{"city":"Oslo"}`)}, want: isPending},
			{decide: yes, call: v1.Call{Tool: "pay", Principal: "eve", Session: "s", Args: json.RawMessage(`{"city":"Oslo"}`)}, want: isPending},
		}},
		{name: "by its name in another session", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: yes, byID: "s", call: pay("r", "Oslo"), want: isApproved},
			{byID: "s", call: pay("r", "Oslo"), want: refusedBy + `approval "ID" is not valid for this call: it belongs to other arguments, another tool or another caller, was already used, or has expired; repeat the call without it to request a new approval`},
		}, ran: `{"city":"Oslo"}`},
		{name: "by its name with other arguments", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: yes, byID: "s", call: pay("s", "Rome"), want: refusedBy + `approval "ID" is not valid for this call: it belongs to other arguments, another tool or another caller, was already used, or has expired; repeat the call without it to request a new approval`},
		}},
		{name: "by its name while it waits", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{byID: "s", call: pay("s", "Oslo"), want: isPending},
		}},
		{name: "denied", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: no, call: pay("s", "Oslo"), want: refusedBy + "denied by ann: too expensive"},
			{name: "again", call: pay("s", "Oslo"), want: refusedBy + "denied by ann: too expensive"},
			{name: "in an hour", after: long, call: pay("s", "Oslo"), want: isPending},
		}},
		{name: "expired while it waited", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{name: "a new one", after: long, call: pay("s", "Oslo"), want: isPending},
		}},
		{name: "a decision holds as long again", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{after: long - time.Second, decide: yes, call: pay("other", "Oslo"), want: isPending},
			{after: long - time.Second, call: pay("s", "Oslo"), want: isApproved},
		}, ran: `{"city":"Oslo"}`},
		{name: "an approval expires", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: yes, call: pay("other", "Oslo"), want: isPending},
			{after: long, call: pay("s", "Oslo"), want: isPending},
		}},
		{name: "edited", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: &v1.Decision{Approved: true, Args: json.RawMessage(`{"city":"Rome","days":"3"}`)}, call: pay("s", "Oslo"), want: isApproved},
		}, ran: `{"city":"Rome","days":3}`},
		{name: "edited and wrong", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: &v1.Decision{Approved: true, Args: json.RawMessage(`{"days":3}`)}, call: pay("s", "Oslo"), want: `failed allow require_approval: tool "pay": invalid arguments: /city: required property "city" is missing`},
		}},
		{name: "edited under a mask", edit: func(t *v1.Tool) { t.Spec.Redact = []string{"city"} }, steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: &v1.Decision{Approved: true, Args: json.RawMessage(`{"city":"[REDACTED]","days":4}`)}, call: pay("s", "Oslo"), want: isApproved},
		}, ran: `{"city":"Oslo","days":4}`},
		{name: "a mask of nothing", edit: func(t *v1.Tool) { t.Spec.Redact = []string{"days"} }, steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: &v1.Decision{Approved: true, Args: json.RawMessage(`{"city":"Rome","days":"[REDACTED]"}`)}, call: pay("s", "Oslo"), want: `failed allow require_approval: tool "pay": invalid arguments: edited arguments: /days: [REDACTED] refers to a value that the call does not have`},
		}},
		{name: "a mask where nothing is masked", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{decide: &v1.Decision{Approved: true, Args: json.RawMessage(`{"city":"[REDACTED]"}`)}, call: pay("s", "Oslo"), want: isApproved},
		}, ran: `{"city":"[REDACTED]"}`},
		{name: "asked at once: yes", steps: []step{{ctx: ask(*yes, true, nil), call: pay("s", "Oslo"), want: isApproved}}, ran: `{"city":"Oslo"}`},
		{name: "asked at once: no", steps: []step{
			{ctx: ask(*no, true, nil), call: pay("s", "Oslo"), want: refusedBy + "denied by ann: too expensive"},
			{name: "and asked again", ctx: ask(*yes, true, nil), call: pay("s", "Oslo"), want: isApproved},
		}, ran: `{"city":"Oslo"}`},
		{name: "asked at once: no, by nobody", steps: []step{{ctx: ask(v1.Decision{}, true, nil), call: pay("s", "Oslo"), want: refusedBy + "denied"}}},
		{name: "asked at once: edited", steps: []step{{ctx: ask(v1.Decision{Approved: true, Args: json.RawMessage(`{"city":"Rome"}`)}, true, nil), call: pay("s", "Oslo"), want: isApproved}}, ran: `{"city":"Rome"}`},
		{name: "nobody to ask", steps: []step{{ctx: ask(v1.Decision{}, false, nil), call: pay("s", "Oslo"), want: isPending}}},
		{name: "asking fails", steps: []step{{ctx: ask(v1.Decision{}, false, errors.New("the client is gone")), call: pay("s", "Oslo"), want: "failed pending require_approval: the client is gone"}}},
		{name: "who names an approval is not asked", steps: []step{
			{call: pay("s", "Oslo"), want: isPending},
			{ctx: ask(*no, true, nil), decide: yes, byID: "s", call: pay("s", "Oslo"), want: isApproved},
		}, ran: `{"city":"Oslo"}`},
		{name: "wrong arguments ask nobody", steps: []step{{ctx: ask(*yes, true, nil), call: v1.Call{Tool: "pay"}, want: `failed: tool "pay": invalid arguments: /city: required property "city" is missing`}}},
		{name: "a refusal asks nobody", spec: &v1.ToolPolicySpec{RequireApproval: []string{"*"}, MaxTotalToolCalls: limitOf(0)}, steps: []step{
			{ctx: ask(*yes, true, nil), call: pay("s", "Oslo"), want: `failed deny max_total_tool_calls: tool "pay": refused by policy "careful", rule max_total_tool_calls: no calls are allowed this session`},
		}},
		{name: "audit lets it through", spec: &v1.ToolPolicySpec{RequireApproval: []string{"*"}, Mode: v1.PolicyAudit}, steps: []step{{call: pay("s", "Oslo"), want: "complete audit require_approval"}}, ran: `{"city":"Oslo"}`},
		{name: "great arguments", steps: []step{{call: pay("s", strings.Repeat("x", v1.MaxPendingArgs)), want: refusedBy + "its arguments have 65547 bytes; a call that needs approval may have at most 65536"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			spec, edit := needsApproval, func(*v1.Tool) {}
			if tt.spec != nil {
				spec = *tt.spec
			}
			if tt.edit != nil {
				edit = tt.edit
			}
			a := newApproving(t, spec, edit)
			idOf := func(session string) string {
				for _, c := range a.list(t) {
					if c.Session == session {
						return c.ID
					}
				}
				t.Fatalf("no pending call of session %q", session)
				return ""
			}
			for _, s := range tt.steps {
				if s.after > 0 {
					a.now = a.now.Add(s.after)
				}
				if s.decide != nil {
					if _, err := a.kept.DecideApproval(t.Context(), idOf("s"), *s.decide, a.now); err != nil {
						t.Fatal(err)
					}
				}
				if s.ctx == nil {
					s.ctx = bg
				}
				if s.byID != "" {
					s.call.Approval = idOf(s.byID)
				}
				res, err := a.Execute(s.ctx, s.call)
				want := s.want
				if s.call.Approval != "" {
					want = strings.Replace(want, `"ID"`, fmt.Sprintf("%q", s.call.Approval), 1)
				}
				if got := outcome(res, err); got != want {
					t.Fatalf("%s:\n got %s\nwant %s", s.name, got, want)
				}
				if res.Status == v1.StatusPending {
					p := res.Pending
					if p == nil || p.ID == "" || p.Reason != v1.ReasonApproval || p.ToolName != "pay" || p.Message != `tool "pay" needs approval by policy "careful"` || p.ExpiresAt == nil || !p.ExpiresAt.After(a.now) {
						t.Fatalf("%s: pending %+v", s.name, p)
					}
				}
			}
			if got := strings.Join(a.ran, " "); got != tt.ran {
				t.Errorf("ran %s, want %s", got, tt.ran)
			}
			// Only executed calls count for a budget.
			key := []v1.Counter{{Key: "default/careful|max_total_tool_calls|session|s"}, {Key: "default/careful|max_total_tool_calls|session|r"},
				{Key: "default/careful|max_total_tool_calls|session|bob|s"}, {Key: "default/careful|max_total_tool_calls|session|bob|r"}}
			if used, _ := a.count.Read(bg, key); spec.MaxTotalToolCalls != nil && used[0].Used+used[1].Used+used[2].Used+used[3].Used != int64(len(a.ran)) {
				t.Errorf("%v calls are counted, %d ran", used, len(a.ran))
			}
		})
	}
}

// The ID of a waiting call stays the same when the call is repeated, and no list shows a secret.
func TestApprovalKeepsNoSecret(t *testing.T) {
	a := newApproving(t, needsApproval, func(t *v1.Tool) { t.Spec.Redact = []string{"/city"} })
	first, _ := a.Execute(t.Context(), pay("s", "s3cret"))
	second, _ := a.Execute(t.Context(), pay("s", "s3cret"))
	if first.Pending.ID != second.Pending.ID || len(a.list(t)) != 1 {
		t.Errorf("%v and %v: %d calls wait", first.Pending, second.Pending, len(a.list(t)))
	}
	if _, err := a.kept.DecideApproval(t.Context(), first.Pending.ID, v1.Decision{Approved: true, By: "ann", Args: json.RawMessage(`{"city":"s3cret2"}`)}, a.now); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Execute(t.Context(), pay("s", "s3cret")); err != nil {
		t.Fatal(err)
	}
	for what, v := range map[string]any{"results": []v1.Result{first, second}, "list": a.list(t), "audit": a.lines} {
		raw, err := json.Marshal(v)
		if err != nil || strings.Contains(string(raw), "s3cret") {
			t.Errorf("%s: %s, %v", what, raw, err)
		}
	}
	last := a.lines[len(a.lines)-1]
	if r := last.Approval; r == nil || r.Decision != v1.ApprovalApproved || r.By != "ann" || !r.Edited || r.ID != first.Pending.ID || !r.Time.Equal(a.now) {
		t.Errorf("the audit has %+v", r)
	}
	if a.lines[0].Status != v1.StatusPending || a.lines[0].Approval != nil {
		t.Errorf("the audit has %+v of the call that waited", a.lines[0])
	}
}

func TestApprovalBounds(t *testing.T) {
	a := newApproving(t, v1.ToolPolicySpec{RequireApproval: []string{"*"}})
	full := refusedBy + "too many calls wait for approval: at most 50 of one session, 250 of one principal and 1000 in all; 'toolctl approvals list' shows them"
	for i := range v1.MaxPendingCalls {
		session := fmt.Sprint("s", i/v1.MaxPendingCallsPerSession)
		if got := outcome(a.Execute(t.Context(), pay(session, fmt.Sprint(i)))); got != isPending {
			t.Fatalf("call %d: %s", i, got)
		}
		if i == v1.MaxPendingCallsPerSession-1 {
			if got := outcome(a.Execute(t.Context(), pay(session, "one more"))); got != full {
				t.Fatalf("one more in a session: %s", got)
			}
			if got := outcome(a.Execute(t.Context(), pay(session, "0"))); got != isPending {
				t.Fatalf("one that waits, again: %s", got)
			}
		}
	}
	if got := outcome(a.Execute(t.Context(), pay("other", "x"))); got != full {
		t.Fatalf("one more in all: %s", got)
	}
	b := newApproving(t, v1.ToolPolicySpec{RequireApproval: []string{"*"}})
	of := func(principal string, i int) string {
		call := pay(fmt.Sprint("s", i/v1.MaxPendingCallsPerSession), fmt.Sprint(i))
		call.Principal = principal
		return outcome(b.Execute(t.Context(), call))
	}
	for i := range v1.MaxPendingCallsPerPrincipal {
		if got := of("ann", i); got != isPending {
			t.Fatalf("call %d of ann: %s", i, got)
		}
	}
	if got := of("ann", v1.MaxPendingCallsPerPrincipal); got != full {
		t.Fatalf("one more of ann: %s", got)
	}
	if got := of("bob", 0); got != isPending {
		t.Fatalf("bob: %s", got)
	}
	a.now = a.now.Add(time.Hour)
	for i := range 600 {
		if got := outcome(a.Execute(t.Context(), pay(fmt.Sprint("r", i), "x"))); got != isPending {
			t.Fatalf("after the others expired: %s", got)
		}
	}
	if kept := len(a.list(t)); kept != 1600 {
		t.Errorf("%d calls are kept, want 600 that wait and 1000 that expired", kept)
	}
	if _, err := a.kept.DecideApproval(t.Context(), a.list(t)[0].ID, v1.Decision{Approved: true}, a.now); fmt.Sprint(err) != fmt.Sprintf("pending call %q has expired: repeat the tool call", a.list(t)[0].ID) {
		t.Errorf("got %v", err)
	}
	if _, err := a.kept.DecideApproval(t.Context(), "nothing", v1.Decision{}, a.now); fmt.Sprint(err) != `approval "nothing" not found` {
		t.Errorf("got %v", err)
	}
}

// If many callers repeat an approved call, only one of the calls runs.
func TestApprovalIsUsedOnce(t *testing.T) {
	var ran atomic.Int64
	approvals := new(registry.MemoryApprovals)
	reg := newRegistry(t, registry.Options{Approvals: approvals, Executors: []registry.Executor{mock{name: "mock", fn: func(context.Context, *v1.Tool, json.RawMessage) (v1.Result, error) {
		ran.Add(1)
		return v1.Result{Content: json.RawMessage(`{}`)}, nil
	}}}}, newTool("pay"), newPolicy("careful", v1.ToolPolicySpec{RequireApproval: []string{"pay"}}))
	for round := range 20 {
		res, err := reg.Execute(t.Context(), pay("s", "Oslo"))
		if err != nil || res.Pending == nil {
			t.Fatal(res, err)
		}
		if _, err := approvals.DecideApproval(t.Context(), res.Pending.ID, v1.Decision{Approved: true}, time.Now()); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for range 16 {
			group.Go(func() {
				if _, err := reg.Execute(context.Background(), pay("s", "Oslo")); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if got := ran.Load(); got != int64(round+1) {
			t.Fatalf("round %d: %d calls ran", round, got)
		}
		// Another call waits now: it is decided so that the next round starts fresh.
		for _, c := range listed(t, approvals) {
			if c.State == v1.ApprovalPending {
				if _, err := approvals.DecideApproval(t.Context(), c.ID, v1.Decision{Approved: true}, time.Now()); err != nil {
					t.Fatal(err)
				}
				if _, err := reg.Execute(t.Context(), pay("s", "Oslo")); err != nil {
					t.Fatal(err)
				}
				ran.Add(-1)
			}
		}
	}
}

func TestResultBudgets(t *testing.T) {
	a := newApproving(t, needsApproval)
	if _, err := a.Execute(t.Context(), v1.Call{Tool: "get", Session: "s", Args: json.RawMessage(`{"city":"Oslo"}`)}); err != nil {
		t.Fatal(err)
	}
	res, _ := a.Execute(t.Context(), pay("s", "Oslo"))
	want := v1.Budget{Rule: "max_total_tool_calls", Policy: "careful", Limit: 2, Used: 1, Remaining: 1}
	if len(res.Budgets) != 1 || res.Budgets[0] != want {
		t.Errorf("pending: %+v, want %+v", res.Budgets, want)
	}
	raw, err := json.Marshal(res)
	if err != nil || strings.Contains(string(raw), "remaining") {
		t.Errorf("%s, %v", raw, err)
	}
}

// If a call expires while the person is asked without success, it does not run; the pending call then waits for its
// full time.
func TestApprovalExpiresWhileAPersonIsAsked(t *testing.T) {
	a := newApproving(t, needsApproval)
	if res, err := a.Execute(t.Context(), pay("s", "Oslo")); outcome(res, err) != isPending {
		t.Fatal(outcome(res, err))
	}
	if _, err := a.kept.DecideApproval(t.Context(), a.list(t)[0].ID, v1.Decision{Approved: true, By: "ann"}, a.now); err != nil {
		t.Fatal(err)
	}
	ctx := registry.WithAsker(t.Context(), func(context.Context, v1.PendingToolInfo) (v1.Decision, bool, error) {
		a.now = a.now.Add(2 * time.Hour)
		return v1.Decision{}, false, nil
	})
	res, err := a.Execute(ctx, pay("s", "Oslo"))
	if outcome(res, err) != isPending || len(a.ran) != 0 || !res.Pending.ExpiresAt.Equal(a.now.Add(time.Hour)) {
		t.Errorf("%s, pending %+v, ran %q", outcome(res, err), res.Pending, a.ran)
	}
}
