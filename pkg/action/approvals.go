package action

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/store"
)

// Approvals lists the calls that are or were pending approval.
type Approvals struct {
	*Config
	// IDs are the calls to list. Default: all.
	IDs []string
	// State is one of [ApprovalStates]. Default: all.
	State string
	// Selector chooses calls by the labels of their tools in the store. Default: all.
	Selector string
}

// ApprovalStates returns the states of calls in the order in which a call passes them.
func ApprovalStates() []string {
	return []string{v1.ApprovalPending, v1.ApprovalApproved, v1.ApprovalDenied, v1.ApprovalUsed, v1.ApprovalExpired}
}

// Approval is a call with its present state. The arguments approved in place of its own are masked.
type Approval struct {
	v1.PendingCall
	EditedArgs json.RawMessage `json:"edited_args,omitempty"`
}

func approvalOf(p v1.PendingCall, now time.Time) Approval {
	p.State = p.StateAt(now)
	return Approval{p, redact.JSON(p.EditedArgs, p.Redact)}
}

// Run lists the calls, the newest last. The error is a [v1.NotFoundError] for an id that does not exist.
func (a *Approvals) Run(ctx context.Context) (found []Approval, err error) {
	found = []Approval{}
	err = a.withCalls(ctx, func(s store.Store) error {
		calls, err := s.ListApprovals(ctx)
		if err != nil {
			return err
		}
		about := func(v1.Key) bool { return true }
		if a.Selector != "" {
			if about, err = labeledKeys(ctx, s, a.Selector); err != nil {
				return err
			}
		}
		now, known := time.Now(), map[string]bool{}
		for _, p := range calls {
			known[p.ID] = true
			v := approvalOf(p, now)
			if (a.State == "" || v.State == a.State) && (a.Namespace == "" || v.Namespace == a.Namespace) && (len(a.IDs) == 0 || slices.Contains(a.IDs, v.ID)) &&
				about(v1.Key{Kind: v1.KindTool, Namespace: v.Namespace, Name: v.Tool}) {
				found = append(found, v)
			}
		}
		for _, id := range a.IDs {
			if !known[id] {
				return &v1.NotFoundError{Kind: "Approval", Name: id}
			}
		}
		return nil
	})
	return found, err
}

// withCalls opens the store with the pending calls. With --store, -f may name the manifests of their tools.
func (c *Config) withCalls(ctx context.Context, do func(store.Store) error) error {
	only := *c
	if c.DSN != "" {
		only.Files = nil
	}
	return only.withKept(ctx, "-f does not apply here: pending calls are in the store", do)
}

// labeledKeys returns a function that reports which objects of the store match a selector. A tool of an MCP server has
// the labels of its server; an object that the store no longer has matches no selector.
func labeledKeys(ctx context.Context, s store.Objects, selector string) (func(v1.Key) bool, error) {
	has, err := Labeled(selector)
	if err != nil {
		return nil, err
	}
	objects, err := Objects(ctx, s, store.ListOptions{})
	if err != nil {
		return nil, err
	}
	fits := map[v1.Key]bool{}
	for _, o := range objects {
		fits[o.Head().Key()] = has(o)
	}
	return func(key v1.Key) bool {
		if fit, ok := fits[key]; ok {
			return fit
		}
		server, _, ok := strings.Cut(key.Name, "__")
		return ok && key.Kind == v1.KindTool && fits[v1.Key{Kind: v1.KindMCPServer, Namespace: key.Namespace, Name: server}]
	}, nil
}

// Decide approves or denies a pending call.
type Decide struct {
	*Config
	ID string
	// Decision is made in the name of By of the Config unless it has a name itself.
	Decision v1.Decision
	// EditArgs are the arguments to approve instead: a JSON object, @FILE, or [InEditor]. Default: those of the call.
	EditArgs string
	// Editor opens a file in the editor and returns when the person has closed it. Noted is called with sentences about
	// the edited arguments.
	Editor func(ctx context.Context, file string) error
	Noted  func(text string)
}

// maxDecisionText limits the reason and the name of a decision, in bytes.
const maxDecisionText = 500

// Run records the decision. The error is a [v1.ApprovalError] if the call is not pending or the principal may
// not decide on it.
func (d *Decide) Run(ctx context.Context) (decided *Approval, err error) {
	by := d.Decision
	if len(by.Reason) > maxDecisionText || len(by.By) > maxDecisionText {
		return nil, usagef("--reason and --as are limited to %d bytes each", maxDecisionText)
	}
	by.By = cmp.Or(by.By, d.By)
	open := d.withCalls
	if d.EditArgs != "" { // files are only needed to check the arguments
		open = func(ctx context.Context, do func(store.Store) error) error { return d.withStore(ctx, false, do) }
	}
	err = open(ctx, func(s store.Store) error {
		p, err := s.Approval(ctx, d.ID)
		if err != nil {
			return err
		}
		state := p.StateAt(time.Now())
		if err := p.MayDecide(by); err != nil && state == v1.ApprovalPending {
			return err
		}
		if d.EditArgs != "" {
			if state != v1.ApprovalPending { // report it before an editor opens
				return &v1.ApprovalError{ID: p.ID, State: state, By: p.By}
			}
			if by.Args, err = d.edited(ctx, &p); err != nil {
				return err
			}
		}
		now := time.Now()
		if p, err = s.DecideApproval(ctx, d.ID, by, now.UTC().Truncate(time.Millisecond)); err == nil {
			v := approvalOf(p, now)
			decided = &v
		}
		return err
	})
	return decided, err
}

// AwaitDecision waits for the decision on a call.
type AwaitDecision struct {
	*Config
	ID      string
	Timeout time.Duration
}

// Run returns the call once it is no longer pending; after the timeout, the error is a [NotReadyError]. It
// polls the store, because another process makes the decision.
func (a *AwaitDecision) Run(ctx context.Context) (p v1.PendingCall, err error) {
	const often = 250 * time.Millisecond
	within, stop := context.WithTimeout(ctx, a.Timeout)
	defer stop()
	err = a.withCalls(ctx, func(s store.Store) (err error) {
		for {
			if p, err = s.Approval(ctx, a.ID); err != nil {
				return err
			}
			if p.State = p.StateAt(time.Now()); p.State != v1.ApprovalPending {
				return nil
			}
			pause(within, often)
			switch {
			case ctx.Err() != nil:
				return ctx.Err()
			case within.Err() != nil:
				return &NotReadyError{[]string{"call \"" + a.ID + "\" is not decided on after " + clip.Duration(a.Timeout)}}
			}
		}
	})
	return p, err
}
