package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/argtext"
)

// waitingCalls caches the pending calls of the store, without their arguments.
type waitingCalls struct {
	stale atomic.Bool // a call was added or decided on in this process

	mu  sync.Mutex
	at  time.Time
	all []v1.PendingCall
}

// waiting returns the pending calls without their arguments, the oldest first. Every page shows their number,
// so the store is read at most once a second while nothing changes in this process.
func (c *Console) waiting(ctx context.Context) []v1.PendingCall {
	w, now := &c.waits, c.opts.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if age := now.Sub(w.at); w.stale.Swap(false) || age < 0 || age >= time.Second {
		all, err := c.gateway.Approvals().ListApprovals(ctx)
		if err != nil {
			w.stale.Store(true)
			return nil // the page of approvals reports the error
		}
		for i := range all {
			all[i].Args, all[i].EditedArgs, all[i].Redact = nil, nil, nil
		}
		w.at, w.all = now, all
	}
	waits := make([]v1.PendingCall, 0, len(w.all))
	for i := range w.all {
		if w.all[i].StateAt(now) == v1.ApprovalPending {
			waits = append(waits, w.all[i])
		}
	}
	return waits
}

// changed records that the pending calls changed.
func (c *Console) changed() {
	c.waits.stale.Store(true)
	c.feed.waits()
}

// waitingView is the number of pending calls that a person may decide on, and may see.
type waitingView struct {
	Decide int `json:"decide"`
	See    int `json:"see"`
}

func (c *Console) waitingFor(all []v1.PendingCall, p person) (v waitingView) {
	sees := c.pendingSight(p)
	for i := range all {
		if all[i].MayDecide(v1.Decision{By: p.name, Groups: p.groups}) == nil {
			v.Decide++
		}
		if sees(&all[i]) {
			v.See++
		}
	}
	return v
}

// pending returns the approval of a page. If a person may not see the approval, the error says that it does not exist;
// if the person may not decide on it, the error says why.
func (c *Console) pending(r *request) (v1.PendingCall, error) {
	id := r.PathValue("id")
	p, err := c.gateway.Approvals().Approval(r.Context(), id)
	switch {
	case err != nil:
		return p, err
	case c.pendingSight(r.person)(&p):
		return p, nil
	case r.Method == http.MethodPost:
		return v1.PendingCall{}, p.MayDecide(v1.Decision{By: r.name, Groups: r.groups})
	}
	return v1.PendingCall{}, &v1.NotFoundError{Kind: "Approval", Name: id}
}

// watchApprovals notifies pages of changes of the pending calls, including those of other processes.
func (c *Console) watchApprovals(ctx context.Context) {
	const pause = 2 * time.Second
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if c.feed.watching() > 0 {
			c.feed.waiting(c.waiting(ctx))
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-c.feed.changed:
		}
	}
}

func (c *Console) viewOf(p v1.PendingCall, who person) approvalView {
	v := viewPending(&p, c.opts.Now())
	if v.State == v1.ApprovalPending {
		if refused, ok := errors.AsType[*v1.PolicyError](p.MayDecide(v1.Decision{By: who.name, Groups: who.groups})); ok {
			v.Refusal = refused.Message
		}
	}
	return v
}

// visible returns the approvals that a person may see: pending ones, the oldest first, and past ones,
// the newest first.
func (c *Console) visible(r *request) (open, past []approvalView, err error) {
	all, err := c.gateway.Approvals().ListApprovals(r.Context())
	sees := c.pendingSight(r.person)
	for _, p := range all {
		if !sees(&p) {
			continue
		}
		if v := c.viewOf(p, r.person); v.State == v1.ApprovalPending {
			open = append(open, v)
		} else {
			past = append(past, v)
		}
	}
	slices.Reverse(past)
	return open, past, err
}

const maxApprovals = 100 // in an API response, unless the request sets a limit

// approvalsPage shows pending and past approvals.
type approvalsPage struct{ Open, Past listPage[approvalView] }

func (c *Console) approvals(r *request) error {
	open, past, err := c.visible(r)
	if err != nil {
		return err
	}
	tool := column[approvalView]{name: "tool", title: "Tool", text: func(p *approvalView) string { return p.Namespace + "/" + p.Tool }}
	caller := column[approvalView]{name: "caller", title: "Caller", text: func(p *approvalView) string { return p.Principal }}
	policy := column[approvalView]{name: "policy", title: "Policy", text: func(p *approvalView) string { return p.Policy }}
	p := approvalsPage{
		Open: listOf(r.Request, "", open, []column[approvalView]{
			tool, {title: "Arguments", class: "wide"}, {name: "expires", title: "Time left", number: func(p *approvalView) float64 { return seconds(p.Expires) }}, caller, policy,
			{title: "Decide", class: "act"},
		}),
		Past: listOf(r.Request, "decided", past, []column[approvalView]{
			tool, {name: "state", title: "State", chosen: true, text: func(p *approvalView) string { return p.State }},
			{name: "by", title: "Decided by", text: func(p *approvalView) string { return p.By }}, caller,
			{name: "note", title: "Note", class: "wide", text: func(p *approvalView) string { return p.Reason }},
			{name: "time", title: "Time", given: true, number: func(p *approvalView) float64 { return seconds(cmp.Or(p.Decided, p.Created)) }},
		}),
	}
	c.show(r, http.StatusOK, "approvals", "Approvals", "approvals", p)
	return nil
}

// decision is the form for a decision.
type decision struct {
	approvalView
	Whole      string // the arguments
	Edited     string // the arguments as the person edited them, or as they were approved
	Note       string
	Problem    string
	Violations []v1.Violation
}

func (c *Console) approval(r *request) error {
	p, err := c.pending(r)
	if err != nil {
		return err
	}
	c.showApproval(r, http.StatusOK, decision{approvalView: c.viewOf(p, r.person)})
	return nil
}

func (c *Console) showApproval(r *request, status int, d decision) {
	d.Whole = wholeText(d.Args)
	if d.Edited == "" {
		d.Edited = wholeText(d.Args)
		if d.EditedArgs != nil {
			d.Edited = wholeText(d.EditedArgs)
		}
	}
	c.show(r, status, "approval", "Approval of "+d.Tool, "approvals", d)
}

// wholeText returns arguments in full, with every character visible.
func wholeText(args json.RawMessage) string {
	text, err := argtext.Whole(args)
	if err != nil {
		return string(args)
	}
	return text
}

// maxNote limits the note of a decision, in bytes.
const maxNote = 500

// decide handles the form of a decision.
func (c *Console) decide(r *request) error {
	p, err := c.pending(r)
	if err != nil {
		return err
	}
	if err := r.form(); err != nil {
		return err
	}
	d := decision{approvalView: c.viewOf(p, r.person), Note: strings.TrimSpace(r.PostForm.Get("note")), Edited: strings.ReplaceAll(r.PostForm.Get("args"), "\r\n", "\n")}
	made := v1.Decision{Reason: d.Note}
	switch r.PostForm.Get("decision") {
	case "approve":
		made.Approved = true
		if strings.TrimSpace(d.Edited) != "" && strings.TrimSpace(d.Edited) != strings.TrimSpace(wholeText(p.Args)) {
			made.Args = json.RawMessage(d.Edited)
		}
	case "deny":
	default:
		return pageError{http.StatusBadRequest, "The form must say approve or deny."}
	}
	if _, err := c.decideAs(r, p, made); err != nil {
		status, text := explained(err)
		d.Problem = text
		if invalid, ok := errors.AsType[*v1.ValidationError](err); ok {
			d.Violations = invalid.Violations
		}
		c.showApproval(r, status, d)
		return nil
	}
	c.redirect(r.out, "../approvals")
	return nil
}

// decideAs records a decision of the person who sends the request. Edited arguments must match the schema of
// the tool.
func (c *Console) decideAs(r *request, p v1.PendingCall, d v1.Decision) (v1.PendingCall, error) {
	d.By, d.Groups = r.name, r.groups
	now := c.opts.Now()
	if state := p.StateAt(now); state != v1.ApprovalPending {
		return p, &v1.ApprovalError{ID: p.ID, State: state, By: p.By}
	}
	if err := p.MayDecide(d); err != nil {
		return p, err
	}
	if len(d.Reason) > maxNote {
		return p, pageError{http.StatusUnprocessableEntity, "The note is too long: the limit is 500 bytes."}
	}
	if d.Args != nil {
		if err := c.checkEdited(r.Context(), &p, d.Args); err != nil {
			return p, err
		}
		var b bytes.Buffer
		if err := json.Compact(&b, d.Args); err != nil {
			return p, err
		}
		d.Args = b.Bytes()
	}
	p, err := c.gateway.Approvals().DecideApproval(r.Context(), p.ID, d, now.UTC().Truncate(time.Millisecond))
	c.changed()
	return p, err
}

func (c *Console) checkEdited(ctx context.Context, p *v1.PendingCall, args json.RawMessage) error {
	if len(args) > v1.MaxPendingArgs {
		return pageError{http.StatusUnprocessableEntity, "The arguments are too long: the limit is 64 KiB."}
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(args, &object); err != nil || object == nil {
		why := "they are not a JSON object"
		if err != nil {
			why = err.Error()
		}
		return pageError{http.StatusUnprocessableEntity, "The arguments cannot be read: " + why + "."}
	}
	err := c.gateway.CheckEdited(ctx, p, args)
	if errors.As(err, new(*v1.NotFoundError)) {
		return nil // the tool is not served here; the arguments are checked when it is called
	}
	return err
}
