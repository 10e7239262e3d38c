package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/store"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func pendingCall(id, principal, session, subject string, at time.Time) v1.PendingCall {
	return v1.PendingCall{
		ID: id, State: v1.ApprovalPending, Tool: "pay", Namespace: "default", Policy: "careful", Rule: "require_approval",
		Principal: principal, Session: session, Turn: "1", Args: json.RawMessage(`{"card":"[REDACTED]"}`), ArgsHash: "hash of " + subject,
		Created: at, Expires: at.Add(time.Hour), Redact: []string{"card"}, Subject: subject,
	}
}

func testDecideApproval(t *testing.T, backend Backend) {
	disk := backend.New(t)
	st := open(t, disk)
	for _, id := range []string{"a", "b", "p"} {
		p := pendingCall(id, "bob", "s", id, noon)
		if id == "p" {
			p.Approvers = []v1.Approvers{{Principals: []string{"ann"}, Groups: []string{"finance"}}}
		}
		if _, err := st.TakeApproval(t.Context(), p, ""); err != nil {
			t.Fatal(err)
		}
	}
	st = open(t, disk) // as in another process
	for _, tt := range []struct {
		name, id string
		d        v1.Decision
		at       time.Time
		err      string
	}{
		{name: "unknown", id: "d", at: noon, err: `approval "d" not found`},
		{name: "by who called", id: "a", d: v1.Decision{Approved: true, By: "bob"}, at: noon, err: `tool "pay": refused by policy "careful", rule approvers: "bob" made the call: another principal must decide on it`},
		{name: "by nobody of the approvers", id: "p", d: v1.Decision{Approved: true, By: "eve", Groups: []string{"sales"}}, at: noon, err: `tool "pay": refused by policy "careful", rule approvers: "eve" may not decide on this call; ann and the groups finance may`},
		{name: "by one of the approvers", id: "p", d: v1.Decision{By: "eve", Groups: []string{"sales", "finance"}}, at: noon},
		{name: "approved", id: "a", d: v1.Decision{Approved: true, By: "ann", Args: json.RawMessage(`{"card":"s3cret"}`)}, at: noon},
		{name: "twice", id: "a", d: v1.Decision{By: "eve"}, at: noon, err: `pending call "a" was already decided: approved by ann`},
		{name: "expired", id: "b", d: v1.Decision{Approved: true}, at: noon.Add(time.Hour), err: `pending call "b" has expired: repeat the tool call`},
		{name: "denied", id: "b", d: v1.Decision{By: "ann", Reason: "too expensive"}, at: noon.Add(time.Hour - 1)},
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
	lines, err := store.ListAudit(t.Context(), st, store.AuditFilter{})
	if err != nil || len(lines) != 3 {
		t.Fatalf("%d lines, %v", len(lines), err)
	}
	raw, _ := json.Marshal(lines)
	if strings.Contains(string(raw), "s3cret") {
		t.Errorf("the audit has a secret: %s", raw)
	}
	for i, want := range []v1.ApprovalRecord{
		{ID: "p", Decision: "denied", By: "eve", Time: noon},
		{ID: "a", Decision: "approved", By: "ann", Time: noon, Edited: true},
		{ID: "b", Decision: "denied", By: "ann", Reason: "too expensive", Time: noon.Add(time.Hour - 1)},
	} {
		l := lines[i]
		if l.Approval == nil || *l.Approval != want || l.Status != want.Decision || l.Tool != "pay" || l.Principal != "bob" || l.Policy.Rule != "require_approval" {
			t.Errorf("line %d: %+v, want %+v", i, l, want)
		}
	}
	if check := verified(t, st, ""); check.Broken != nil || check.Lines != 3 {
		t.Errorf("the chain: %+v", check)
	}
}

func testApprovalBounds(t *testing.T, backend Backend) {
	st := backend.open(t)
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
	named := backend.open(t)
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
	if n, err := st.CountPending(t.Context(), noon.Add(time.Hour)); err != nil || n != 60 {
		t.Errorf("%d calls wait, %v: want 60", n, err)
	}
	all, err := st.ListApprovals(t.Context())
	if err != nil || len(all) != 1060 {
		t.Errorf("%d calls are kept, %v: want 60 that wait and 1000 that expired", len(all), err)
	}
}

// testApprovalIsUsedOnce: if several callers repeat approved calls concurrently, each approval is used once.
func testApprovalIsUsedOnce(t *testing.T, backend Backend) {
	const calls, takers = 20, 4
	disk := backend.New(t)
	st := open(t, disk)
	for i := range calls {
		id := fmt.Sprint(i)
		if _, err := st.TakeApproval(t.Context(), pendingCall(id, "bob", "s", id, noon), ""); err != nil {
			t.Fatal(err)
		}
		if _, err := st.DecideApproval(t.Context(), id, v1.Decision{Approved: true}, noon); err != nil {
			t.Fatal(err)
		}
	}
	var approved atomic.Int64
	var wg sync.WaitGroup
	for w := range takers {
		mine := open(t, disk)
		wg.Go(func() {
			for i := range calls {
				p, err := mine.TakeApproval(t.Context(), pendingCall(fmt.Sprint("again", w, "-", i), "bob", "r", fmt.Sprint(i), noon), "")
				if err != nil {
					t.Error(err)
				} else if p.State == v1.ApprovalApproved {
					approved.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if approved.Load() != calls {
		t.Errorf("%d calls went through, %d were approved", approved.Load(), calls)
	}
}

// testApprovalExpiresAsItIsDecided: if two decisions and two calls arrive when a call expires, at most one decision
// succeeds, before that moment, and no call runs without a decision.
func testApprovalExpiresAsItIsDecided(t *testing.T, backend Backend) {
	const rounds, both = 20, 2
	disk := backend.New(t)
	var stores [2 * both]store.Store
	for i := range stores {
		stores[i] = open(t, disk)
	}
	for round := range rounds {
		p := pendingCall(fmt.Sprint("first", round), "bob", "s", fmt.Sprint(round), time.Now().UTC().Truncate(time.Millisecond))
		p.Expires = p.Created.Add(20 * time.Millisecond)
		if _, err := stores[0].TakeApproval(t.Context(), p, ""); err != nil {
			t.Fatal(err)
		}
		var decided, used atomic.Int64
		var wg sync.WaitGroup
		for i, st := range stores {
			wg.Go(func() {
				early := time.Duration(round%5-2) * time.Millisecond / 2
				<-time.After(time.Until(p.Expires) - early - time.Duration(i/both)*time.Millisecond) // the callers arrive before
				for try := 0; ; try++ {
					now := time.Now().UTC().Truncate(time.Millisecond)
					if i < both {
						_, err := st.DecideApproval(t.Context(), p.ID, v1.Decision{Approved: true, By: fmt.Sprint("ann", i)}, now)
						var over *v1.ApprovalError
						switch {
						case err == nil && !now.Before(p.Expires):
							t.Errorf("round %d: decided on after it has expired", round)
						case err == nil:
							decided.Add(1)
						case !errors.As(err, &over):
							t.Error(err)
						}
						return
					}
					again := pendingCall(fmt.Sprint("again", round, "-", i, "-", try), "bob", "s", p.Subject, now)
					got, err := st.TakeApproval(t.Context(), again, "")
					if err != nil {
						t.Error(err)
						return
					}
					if got.State == v1.ApprovalApproved {
						used.Add(1)
					}
					if got.State == v1.ApprovalApproved || got.ID != p.ID { // used or expired
						return
					}
				}
			})
		}
		wg.Wait()
		if decided.Load() > 1 || used.Load() > decided.Load() {
			t.Errorf("round %d: %d decisions, %d calls went through", round, decided.Load(), used.Load())
		}
	}
}

// testAwaitApproval: a waiter gets the decision, whichever process made it.
func testAwaitApproval(t *testing.T, backend Backend) {
	disk := backend.New(t)
	here, there := open(t, disk), open(t, disk)
	now := time.Now().UTC().Truncate(time.Millisecond)
	for _, id := range []string{"a", "b"} {
		if _, err := here.TakeApproval(t.Context(), pendingCall(id, "bob", "s", id, now), ""); err != nil {
			t.Fatal(err)
		}
	}
	for id, by := range map[string]store.Store{"a": here, "b": there} {
		got := make(chan string, 1)
		go func() {
			p, err := here.AwaitApproval(t.Context(), id)
			got <- fmt.Sprint(p.State, " by ", p.By, " ", err)
		}()
		select {
		case text := <-got:
			t.Fatalf("before the decision: %s", text)
		case <-time.After(20 * time.Millisecond): // it may or may not have started to wait: both are fine
		}
		if _, err := by.DecideApproval(t.Context(), id, v1.Decision{Approved: true, By: "ann"}, now); err != nil {
			t.Fatal(err)
		}
		if text := <-got; text != "approved by ann <nil>" {
			t.Errorf("%s: %s", id, text)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := here.TakeApproval(t.Context(), pendingCall("c", "bob", "s", "c", now), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := here.AwaitApproval(ended, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("the end of the context: %v", err)
	}
	var missing *v1.NotFoundError
	if _, err := here.AwaitApproval(t.Context(), "none"); !errors.As(err, &missing) {
		t.Errorf("a call that is not there: %v", err)
	}
}
