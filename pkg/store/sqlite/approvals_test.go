package sqlite_test

import (
	"context"
	"encoding/json"
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
	"toolctl.dev/toolctl/pkg/store/sqlite"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func pendingCall(id, principal, session, subject string, at time.Time) v1.PendingCall {
	return v1.PendingCall{
		ID: id, State: v1.ApprovalPending, Tool: "pay", Namespace: "default", Policy: "careful", Rule: "require_approval",
		Principal: principal, Session: session, Turn: "1", Args: json.RawMessage(`{"card":"[REDACTED]"}`), ArgsHash: "hash of " + subject,
		Created: at, Expires: at.Add(time.Hour), Redact: []string{"card"}, Subject: subject,
	}
}

// For any sequence of calls and decisions, the store returns the same results as approvals in memory.
func TestApprovalsAgreeWithTheMemory(t *testing.T) {
	st, round := create(t, filepath.Join(t.TempDir(), "state.db")), 0
	rapid.Check(t, func(rt *rapid.T) {
		round++ // the store is shared by all rounds, so each has its own subjects
		model, now, n := new(registry.MemoryApprovals), noon.Add(time.Duration(round)*1000*time.Hour), 0
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
				want, wantErr := model.DecideApproval(t.Context(), name, d, now)
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
			want, wantErr := model.TakeApproval(t.Context(), p, name)
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
		want, err := model.ListApprovals(t.Context())
		if err != nil {
			rt.Fatal(err)
		}
		if len(kept)+len(want) > 0 && !reflect.DeepEqual(kept, want) {
			rt.Fatalf("kept %+v\nwant %+v", kept, want)
		}
	})
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

// TestTwoProcessesApprovals: if two processes make the approved calls, each approval is used once.
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
