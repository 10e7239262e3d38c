package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	osexec "os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

var _ registry.Approvals = (*sqlite.Store)(nil)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func pendingCall(id, principal, session, subject string, at time.Time) v1.PendingCall {
	return v1.PendingCall{
		ID: id, State: v1.ApprovalPending, Tool: "pay", Namespace: "default", Policy: "careful", Rule: "require_approval",
		Principal: principal, Session: session, Turn: "1", Args: json.RawMessage(`{"card":"[REDACTED]"}`), ArgsHash: "hash of " + subject,
		Created: at, Expires: at.Add(time.Hour), Redact: []string{"card"}, Subject: subject,
	}
}

// Whatever is called, decided and in whatever order: the store answers as the memory does.
func TestApprovalsAgreeWithTheMemory(t *testing.T) {
	st, round := open(t, ":memory:"), 0
	rapid.Check(t, func(rt *rapid.T) {
		round++ // the store is shared by all rounds, so each has subjects of its own
		memory, now, n := new(registry.MemoryApprovals), noon.Add(time.Duration(round)*1000*time.Hour), 0
		var ids []string
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 40 * time.Minute, time.Hour}).Draw(rt, "later"))
			name := ""
			if len(ids) > 0 && rapid.Bool().Draw(rt, "named") {
				name = rapid.SampledFrom(append([]string{"nothing"}, ids...)).Draw(rt, "name")
			}
			if name != "" && rapid.Bool().Draw(rt, "decide") {
				d := v1.Decision{Approved: rapid.Bool().Draw(rt, "approved"), By: "ann", Reason: "why"}
				if rapid.Bool().Draw(rt, "edited") {
					d.Args = json.RawMessage(`{"card":"1"}`)
				}
				want, wantErr := memory.Decide(name, d, now)
				got, gotErr := st.DecideApproval(t.Context(), name, d, now)
				if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || wantErr == nil && !reflect.DeepEqual(got, want) {
					rt.Fatalf("decide %s: %+v, %v; want %+v, %v", name, got, gotErr, want, wantErr)
				}
				continue
			}
			n++
			id := fmt.Sprintf("%d-%d", round, n)
			p := pendingCall(id, rapid.SampledFrom([]string{"", "ann"}).Draw(rt, "principal"), rapid.SampledFrom([]string{"s", "r"}).Draw(rt, "session"),
				fmt.Sprintf("%d/%d", round, rapid.IntRange(1, 2).Draw(rt, "subject")), now)
			want, wantErr := memory.TakeApproval(t.Context(), p, name)
			got, gotErr := st.TakeApproval(t.Context(), p, name)
			if fmt.Sprint(gotErr) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
				rt.Fatalf("take %+v as %q: %+v, %v; want %+v, %v", p, name, got, gotErr, want, wantErr)
			}
			if wantErr == nil && want.ID == id {
				ids = append(ids, id)
			}
		}
		var kept []v1.PendingCall
		all, err := st.ListApprovals(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		for _, c := range all {
			if strings.HasPrefix(c.ID, fmt.Sprint(round, "-")) {
				kept = append(kept, c)
			}
		}
		if want := memory.List(); len(kept)+len(want) > 0 && !reflect.DeepEqual(kept, want) {
			rt.Fatalf("kept %+v\nwant %+v", kept, want)
		}
	})
}

func TestDecideApproval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	st := create(t, path)
	for _, id := range []string{"a", "b"} {
		if _, err := st.TakeApproval(t.Context(), pendingCall(id, "bob", "s", id, noon), ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := st.Close(); err != nil { // what waits survives the process
		t.Fatal(err)
	}
	st = open(t, path)
	for _, tt := range []struct {
		name, id string
		d        v1.Decision
		at       time.Time
		err      string
	}{
		{name: "unknown", id: "c", at: noon, err: `approval "c" not found`},
		{name: "approved", id: "a", d: v1.Decision{Approved: true, By: "ann", Args: json.RawMessage(`{"card":"s3cret"}`)}, at: noon},
		{name: "twice", id: "a", d: v1.Decision{By: "eve"}, at: noon, err: `pending call "a" is decided already: approved by ann`},
		{name: "expired", id: "b", d: v1.Decision{Approved: true}, at: noon.Add(time.Hour), err: `pending call "b" has expired: it must be called again`},
		{name: "denied", id: "b", d: v1.Decision{By: "ann", Reason: "too dear"}, at: noon.Add(time.Hour - 1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := st.DecideApproval(t.Context(), tt.id, tt.d, tt.at)
			if tt.err == "" && err != nil || tt.err != "" && fmt.Sprint(err) != tt.err {
				t.Errorf("got %v, want %q", err, tt.err)
			}
		})
	}
	got, err := st.Approval(t.Context(), "a")
	if err != nil || string(got.EditedArgs) != `{"card":"s3cret"}` || got.By != "ann" || !reflect.DeepEqual(got.Redact, []string{"card"}) {
		t.Errorf("got %+v, %v", got, err)
	}
	if _, err := st.Approval(t.Context(), "c"); !errors.As(err, new(*v1.NotFoundError)) {
		t.Errorf("got %v", err)
	}
	lines, err := st.ListAudit(t.Context(), store.AuditFilter{})
	if err != nil || len(lines) != 2 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	raw, _ := json.Marshal(lines)
	if strings.Contains(string(raw), "s3cret") {
		t.Errorf("the audit has a secret: %s", raw)
	}
	for i, want := range []v1.ApprovalRecord{
		{ID: "a", Decision: "approved", By: "ann", Time: noon, Edited: true},
		{ID: "b", Decision: "denied", By: "ann", Reason: "too dear", Time: noon.Add(time.Hour - 1)},
	} {
		l := lines[i]
		if l.Approval == nil || *l.Approval != want || l.Status != want.Decision || l.Tool != "pay" || l.Principal != "bob" || l.Policy.Rule != "require_approval" {
			t.Errorf("line %d: %+v, want %+v", i, l, want)
		}
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != 2 {
		t.Errorf("the chain: %+v", check)
	}
}

func TestApprovalBounds(t *testing.T) {
	st := open(t, ":memory:")
	take := func(i int, at time.Time) error {
		session := fmt.Sprint(i / v1.MaxPendingCallsPerSession)
		_, err := st.TakeApproval(context.Background(), pendingCall(fmt.Sprint(i, at.Unix()), "", session, fmt.Sprint(i), at), "")
		return err
	}
	for i := range v1.MaxPendingCalls {
		if err := take(i, noon); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		if i == v1.MaxPendingCallsPerSession-1 {
			_, err := st.TakeApproval(t.Context(), pendingCall("more", "", "0", "more", noon), "")
			if !errors.Is(err, v1.ErrPendingFull) {
				t.Fatalf("one more in a session: %v", err)
			}
		}
	}
	if err := take(v1.MaxPendingCalls, noon); !errors.Is(err, v1.ErrPendingFull) {
		t.Fatalf("one more in all: %v", err)
	}
	named := open(t, ":memory:")
	of := func(principal string, i int) error {
		_, err := named.TakeApproval(t.Context(), pendingCall(principal+fmt.Sprint(i), principal, fmt.Sprint(i/v1.MaxPendingCallsPerSession), fmt.Sprint(i), noon), "")
		return err
	}
	for i := range v1.MaxPendingCallsPerPrincipal {
		if err := of("ann", i); err != nil {
			t.Fatalf("call %d of ann: %v", i, err)
		}
	}
	if err := of("ann", v1.MaxPendingCallsPerPrincipal); !errors.Is(err, v1.ErrPendingFull) {
		t.Fatalf("one more of ann: %v", err)
	}
	if err := of("bob", 0); err != nil {
		t.Fatalf("bob: %v", err)
	}
	for i := range 60 {
		if err := take(i, noon.Add(time.Hour)); err != nil {
			t.Fatalf("after the others expired: %v", err)
		}
	}
	all, err := st.ListApprovals(t.Context())
	if err != nil || len(all) != 1060 {
		t.Errorf("%d calls are kept, %v: want 60 that wait and 1000 that expired", len(all), err)
	}
}

const approvedCalls = 60

// takeAll takes every approved call that another process has not taken, and prints how
// many it got.
func takeAll(ctx context.Context, st *sqlite.Store) error {
	got := 0
	for i := range approvedCalls {
		p, err := st.TakeApproval(ctx, pendingCall(fmt.Sprint("again", i, time.Now().UnixNano()), "bob", fmt.Sprint("r", i/40), fmt.Sprint(i), noon), "")
		if err != nil {
			return err
		}
		if p.State == v1.ApprovalApproved {
			got++
		}
	}
	fmt.Println(got)
	return nil
}

// TestTwoProcessesApprovals: of two processes that make the approved calls, one gets each.
func TestTwoProcessesApprovals(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.db")
	st := create(t, path)
	for i := range approvedCalls {
		id := fmt.Sprint(i)
		if _, err := st.TakeApproval(t.Context(), pendingCall(id, "bob", fmt.Sprint("s", i/40), id, noon), ""); err != nil {
			t.Fatal(err)
		}
		if _, err := st.DecideApproval(t.Context(), id, v1.Decision{Approved: true}, noon); err != nil {
			t.Fatal(err)
		}
	}
	a, outA := startChild(t, "take", path)
	b, outB := startChild(t, "take", path)
	total := 0
	for i, out := range []io.Reader{outA, outB} {
		var got int
		if _, err := fmt.Fscan(out, &got); err != nil {
			t.Errorf("process %d: %v", i, err)
		}
		total += got
	}
	for _, cmd := range []*osexec.Cmd{a, b} {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if total != approvedCalls {
		t.Errorf("%d calls went through, %d were approved", total, approvedCalls)
	}
}
