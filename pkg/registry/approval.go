package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/validate"
)

// Approvals keeps the calls that need approval and the decisions on them. Its methods must be safe for concurrent use,
// and each must be atomic.
type Approvals interface {
	// TakeApproval returns the stored call that p repeats, by the rules of [v1.PendingCall.Repeats], and the newest if
	// there are several. It ignores calls that were used or have expired at the time p.Created. An approved call is
	// returned as approved and marked as used.
	//
	// If no call matches, TakeApproval stores and returns p, or returns [v1.ErrPendingFull]. With a name it returns a
	// [v1.NotFoundError] instead.
	TakeApproval(ctx context.Context, p v1.PendingCall, name string) (v1.PendingCall, error)
}

// approve lets an admitted call continue if a person has approved it. A call that fails or stays pending releases its
// reservations.
func (r *Registry) approve(ctx context.Context, c *call) {
	if c.err = r.decide(ctx, c); c.err != nil || c.res.Status == v1.StatusPending {
		c.release(ctx)
	}
}

func (r *Registry) decide(ctx context.Context, c *call) error {
	need := c.admit.Approval
	p := c.pending()
	ask := callctx.AskerOf(ctx)
	var why string // why the asker could not ask
	if ask != nil && c.Approval == "" {
		d, ok, err := ask(ctx, *c.info(&p))
		if err != nil {
			c.admit.Decision = v1.PolicyDecision{Decision: v1.DecisionPending, Rule: need.Rule, Policy: need.Policy}
			return err
		}
		if ok {
			d.AtOnce = true
			d.By, d.Reason = clip.Bytes(d.By, 500), clip.Bytes(d.Reason, 500)
			now := r.opts.Now().UTC().Truncate(time.Millisecond)
			p.Expires = now.Add(need.Timeout) // asking took time
			if err := p.Decide(d, now); err != nil {
				return err
			}
			return r.settle(ctx, c, &p)
		}
		why = d.Reason
		p.Created = r.opts.Now().UTC().Truncate(time.Millisecond) // ignores requests that expired in the meantime
		p.Expires = p.Created.Add(need.Timeout)
	}
	if len(c.args) > v1.MaxPendingArgs {
		return c.refuse(fmt.Sprintf("its arguments have %d bytes; a call that needs approval may have at most %d", len(c.args), v1.MaxPendingArgs))
	}
	asked := p.ID
	p, err := r.opts.Approvals.TakeApproval(ctx, p, c.Approval)
	if err == nil && p.ID == asked && r.opts.OnPending != nil {
		r.opts.OnPending(p)
	}
	var missing *v1.NotFoundError
	switch {
	case errors.As(err, &missing):
		return c.refuse(fmt.Sprintf("approval %q is not valid for this call: it belongs to other arguments, another tool or another caller, was already used, or has expired; repeat the call without it to request a new approval", clip.Bytes(c.Approval, 500)))
	case errors.Is(err, v1.ErrPendingFull):
		return c.refuse(err.Error() + "; 'toolctl approvals list' shows them")
	case err != nil:
		c.admit.Decision = v1.PolicyDecision{Decision: v1.DecisionDeny, Rule: need.Rule, Policy: need.Policy}
		return fmt.Errorf("tool %q: refused, because the approvals could not be read: %w", c.tool.spec.Metadata.Name, err)
	}
	err = r.settle(ctx, c, &p)
	if c.res.Pending != nil && why != "" {
		c.res.Pending.Metadata[v1.MetaNotAsked] = why
	}
	return err
}

// settle applies the decision to the call.
func (r *Registry) settle(ctx context.Context, c *call, p *v1.PendingCall) error {
	need := c.admit.Approval
	c.approval = p.Record()
	switch p.State {
	case v1.ApprovalApproved:
		if c.admit.Decision.Decision == v1.DecisionAllow {
			c.admit.Decision.Rule, c.admit.Decision.Policy = need.Rule, need.Policy
		}
		if p.EditedArgs == nil {
			return nil
		}
		var err error
		if c.args, err = unmask(p.EditedArgs, c.args, c.tool.redact); err != nil {
			return v1.NewValidationError(v1.ArgsInvalid, c.tool.spec.Metadata.Name, []v1.Violation{{Message: "edited arguments: " + err.Error()}})
		}
		return r.checkArgs(ctx, c)
	case v1.ApprovalDenied:
		text := "denied"
		if p.By != "" {
			text += " by " + p.By
		}
		if p.Reason != "" {
			text += ": " + p.Reason
		}
		return c.refuse(text)
	}
	c.admit.Decision = v1.PolicyDecision{Decision: v1.DecisionPending, Rule: need.Rule, Policy: need.Policy}
	c.res.Status, c.res.Pending = v1.StatusPending, c.info(p)
	return nil
}

// refuse records that the approval rule refuses the call and returns the error.
func (c *call) refuse(message string) error {
	need := c.admit.Approval
	c.admit.Decision = v1.PolicyDecision{Decision: v1.DecisionDeny, Rule: need.Rule, Policy: need.Policy}
	return need.Refusal(message)
}

// pending returns the record of the call for approval.
func (c *call) pending() v1.PendingCall {
	need, spec := c.admit.Approval, c.tool.spec
	sum, began := sha256.Sum256(c.args), c.began.UTC().Truncate(time.Millisecond)
	p := v1.PendingCall{
		ID: strings.ToLower(rand.Text()[:10]), State: v1.ApprovalPending, Tool: spec.Metadata.Name, Namespace: spec.Namespace(),
		Policy: need.Policy, Rule: need.Rule, Approvers: need.Approvers, Principal: c.Principal, Session: c.Session, Turn: c.Turn,
		Args: redact.JSON(c.args, c.tool.redact), ArgsHash: hex.EncodeToString(sum[:]), Redact: c.tool.redact,
		Created: began, Expires: began.Add(need.Timeout),
	}
	p.Subject = c.tool.fullName() + " " + p.ArgsHash
	return p
}

func (c *call) info(p *v1.PendingCall) *v1.PendingToolInfo {
	expires := p.Expires
	message := fmt.Sprintf("tool %q needs approval by policy %q", p.Tool, p.Policy)
	if spec := c.tool.spec; spec.AsksConsent() && p.Policy == consentOf(p.Tool) {
		message = cmp.Or(spec.Spec.Client.Consent.Message, fmt.Sprintf("tool %q asks for consent", p.Tool))
	}
	return &v1.PendingToolInfo{
		Reason: v1.ReasonApproval, Message: message, ToolName: p.Tool,
		Args: p.Args, ExpiresAt: &expires, Approvers: p.Approvers, Metadata: map[string]any{"policy": p.Policy, "rule": p.Rule}, ID: p.ID,
	}
}

// consentOf returns the name that stands for a tool's own request for consent in place of a policy name.
func consentOf(tool string) string { return "tool/" + tool }

// AsksConsent reports whether the call waits for the consent that its tool requires.
func AsksConsent(info *v1.PendingToolInfo) bool {
	return info.Metadata["policy"] == consentOf(info.ToolName)
}

// unmask restores the caller's own values where edited arguments still hold the mask that replaced them on display.
func unmask(edited, own json.RawMessage, rules []string) (json.RawMessage, error) {
	e, err := validate.Decode(edited)
	if err != nil {
		return nil, err
	}
	o, err := validate.Decode(own)
	if err != nil {
		return nil, err
	}
	if e, err = unmaskValue(e, o, true, "", rules); err != nil {
		return nil, err
	}
	return jsontext.Marshal(e)
}

func unmaskValue(edited, own any, has bool, path string, rules []string) (any, error) {
	switch e := edited.(type) {
	case string:
		if was, ok := own.(string); ok && was != e && redact.New(rules).Text(was) == e {
			return own, nil // the value is masked in part, such as within a JSON text
		} else if ok && strings.Contains(e, redact.Mask) && !strings.Contains(was, redact.Mask) && e != redact.Mask {
			return nil, fmt.Errorf("%s: cannot edit a text that is masked in part (%s): leave it as it is, or write all of it", path, redact.Mask)
		}
		if e != redact.Mask || !redact.Covers(rules, path) {
			return edited, nil
		}
		if !has {
			return nil, fmt.Errorf("%s: %s refers to a value that the call does not have", path, redact.Mask)
		}
		return own, nil
	case map[string]any:
		o, _ := own.(map[string]any)
		for k, v := range e {
			was, has := o[k]
			v, err := unmaskValue(v, was, has, v1.Pointer(path, k), rules)
			if err != nil {
				return nil, err
			}
			e[k] = v
		}
	case []any:
		o, _ := own.([]any)
		for i, v := range e {
			var was any
			if i < len(o) {
				was = o[i]
			}
			v, err := unmaskValue(v, was, i < len(o), v1.Pointer(path, strconv.Itoa(i)), rules)
			if err != nil {
				return nil, err
			}
			e[i] = v
		}
	}
	return edited, nil
}

// CheckEdited validates the edited arguments of a pending call against the input schema of its tool, as the call itself
// will do. It ignores violations at masked values. The error is a [v1.ValidationError], or a [v1.NotFoundError] if the
// registry does not have the tool.
func (r *Registry) CheckEdited(ctx context.Context, p *v1.PendingCall, args json.RawMessage) error {
	c := r.begin(v1.Call{Tool: p.Namespace + "/" + p.Tool, Args: args})
	if c.tool, c.err = r.snap.Load().lookup("", c.Tool); c.err != nil {
		return c.err
	}
	err := r.checkArgs(ctx, &c)
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var violations []v1.Violation
	for _, f := range invalid.Violations {
		if !redact.Covers(p.Redact, f.Path) {
			violations = append(violations, f)
		}
	}
	if len(violations) == 0 {
		return nil
	}
	return v1.NewValidationError(invalid.Type, invalid.Tool, violations)
}
