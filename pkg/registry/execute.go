package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/budget"
	"toolctl.dev/toolctl/internal/callctx"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/validate"
)

// Execute executes one call. The result is filled whether or not the call succeeds; the error is one of the typed
// errors of api/v1, or the error of ctx.
//
// The middleware of the registry wraps the whole call. The order is fixed: lookup, coerce, validate the arguments,
// policy, approval, audit (intent), execute, validate the result, redact, audit (outcome). A call whose intent cannot
// be written is refused; see [Options.AuditBestEffort].
//
// A call that needs approval is decided at once if ctx has an [Asker] that can ask. If not, it runs if an earlier
// identical call was approved, and each approval lets one call through; a call without a decision ends as pending.
func (r *Registry) Execute(ctx context.Context, call v1.Call) (v1.Result, error) {
	return r.handler(ctx, call)
}

// execute executes a call without middleware.
func (r *Registry) execute(ctx context.Context, call v1.Call) (v1.Result, error) {
	c := r.begin(call)
	ctx = r.observer.begin(ctx, &c)
	r.admit(ctx, &c)
	r.work(ctx, &c)
	return r.conclude(ctx, &c)
}

// conclude ends a call: it masks the output and writes the audit record.
func (r *Registry) conclude(ctx context.Context, c *call) (v1.Result, error) {
	c.err = c.masker().Result(&c.res, c.err)
	r.outcome(ctx, c)
	res, err := c.finish()
	r.observer.end(ctx, c)
	return res, err
}

// call is one call in the pipeline.
type call struct {
	v1.Call
	reg   *Registry
	began time.Time
	tool  *tool
	args  json.RawMessage // the arguments as they will be executed
	admit policy.Admission
	// approval is the decision of a person on the call; nil if there is no decision.
	approval *v1.ApprovalRecord
	// line holds the fields that the audit records of the call share, once a record was written; unaudited says that
	// the first record could not be written, so that the call is refused.
	line      *v1.AuditRecord
	unaudited bool
	intended  bool // the record of intent was written
	decoded   bool // the arguments are known to be JSON
	res       v1.Result
	err       error
	masks     *redact.Masker // created by masker
}

// masker returns a masker with the rules of the tool and the argument values that they cover. It masks nothing if the
// tool has no rules.
func (c *call) masker() *redact.Masker {
	if c.masks == nil && c.tool != nil && len(c.tool.redact) > 0 {
		rules := c.tool.redact
		c.masks = redact.New(rules, redact.Covered(c.args, rules)...)
		if !same(c.args, c.Args) {
			c.masks.Add(redact.Covered(c.Args, rules)...) // the arguments before coercion
		}
	}
	return c.masks
}

// begin returns a value instead of a pointer, so that a call lives on the stack of its caller.
func (r *Registry) begin(in v1.Call) call {
	c := call{Call: in, reg: r, began: r.opts.Now(), args: in.Args}
	if len(c.args) == 0 {
		c.args = json.RawMessage("{}")
	}
	return c
}

// admit looks the tool up, checks the arguments and evaluates the policies. Afterwards c.err is set, or the call is
// pending, or it may run.
func (r *Registry) admit(ctx context.Context, c *call) {
	if c.tool, c.err = r.snap.Load().lookup(c.Namespace, c.Tool); c.err != nil {
		return
	}
	t := c.tool
	if reasons := t.reasons(); reasons != nil {
		c.err = v1.NewValidationError(v1.ManifestInvalid, t.spec.Metadata.Name, reasons)
		return
	}
	if c.err = t.refused; c.err != nil {
		return
	}
	if c.err = ctx.Err(); c.err != nil {
		return
	}
	within, span := r.observer.enter(ctx, phaseArguments)
	c.err = r.checkArgs(within, c)
	budget.Decoded(ctx, len(c.args))
	if leave(span, c.err); c.err != nil || t.chain == nil {
		return
	}
	within, span = r.observer.enter(ctx, phasePolicy)
	c.admit, c.err = policy.Over(ctx, t.chain).Admit(within, r.opts.Counters, policy.Request{
		Session: c.Session, Turn: c.Turn, Principal: c.Principal, Now: c.began, Args: c.args,
	})
	leave(span, c.err)
	if c.admit.Approval != nil {
		within, span = r.observer.enter(ctx, phaseApproval)
		r.approve(within, c)
		leave(span, c.err)
	}
}

// checkArgs coerces and validates the arguments.
func (r *Registry) checkArgs(ctx context.Context, c *call) error {
	t := c.tool
	if c.Repair == "" && v1.JSONKind(c.args) == "object" && t.in.SurelyValid(c.args) {
		c.decoded = true
		return nil
	}
	doc, err := validate.Decode(c.args)
	if err != nil {
		message, got := validate.Undecoded("the arguments are", err)
		return v1.NewValidationError(v1.ArgsInvalid, t.spec.Metadata.Name, []v1.Violation{{Expected: "a JSON object", Got: got, Message: message}})
	}
	c.decoded = true
	v := t.spec.Spec.Validation
	if doc == nil && v.Coerces() { // null stands for no arguments
		doc, c.args = map[string]any{}, json.RawMessage("{}")
	}
	if _, ok := doc.(map[string]any); !ok {
		return v1.NewValidationError(v1.ArgsInvalid, t.spec.Metadata.Name, []v1.Violation{{
			Expected: "a JSON object", Got: v1.JSONKind(c.args), Message: "the arguments must be a JSON object, got " + v1.JSONKind(c.args),
		}})
	}
	if h := t.spec.Spec.Hints; c.Repair == v1.RepairClosed && h != nil && h.Destructive != nil && *h.Destructive {
		return v1.NewValidationError(v1.ArgsInvalid, t.spec.Metadata.Name, []v1.Violation{{
			Expected: "all of the arguments", Got: "arguments that were cut off", Message: "the arguments were cut off, and a destructive tool is not called with incomplete arguments: send all of them",
		}})
	}
	mode := v.ArgsMode()
	if mode == v1.Off && !v.Coerces() {
		return nil
	}
	fixed, changed, violations, err := t.in.Check(doc, v.Coerces())
	if err != nil {
		return manifestViolation(t, "/spec/input_schema", err)
	}
	if changed {
		if c.args, err = jsontext.Marshal(fixed); err != nil {
			return fmt.Errorf("encode the coerced arguments: %w", err)
		}
	}
	if len(violations) == 0 || mode == v1.Off {
		return nil
	}
	invalid := v1.NewValidationError(v1.ArgsInvalid, t.spec.Metadata.Name, c.masker().Violations(violations))
	if mode == v1.Warn {
		r.opts.Logger.WarnContext(ctx, invalid.Error())
		return nil
	}
	return invalid
}

// manifestViolation returns the error for an unusable schema of the tool, with the place of the schema.
func manifestViolation(t *tool, path string, err error) error {
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) {
		return v1.NewValidationError(v1.ManifestInvalid, t.spec.Metadata.Name, []v1.Violation{{Path: path, Message: err.Error(), Source: t.spec.Field(path)}})
	}
	return v1.NewValidationError(v1.ManifestInvalid, t.spec.Metadata.Name, under(t.spec.Head(), path, invalid.Violations))
}

// under changes the violations of a part of a manifest to their place in the manifest.
func under(h *v1.Header, path string, violations []v1.Violation) []v1.Violation {
	out := make([]v1.Violation, len(violations))
	for i, f := range violations {
		f.Path = path + f.Path
		f.Source = h.Field(f.Path)
		out[i] = f
	}
	return out
}

// work executes an admitted call and checks the result.
func (r *Registry) work(ctx context.Context, c *call) {
	if c.err != nil || c.res.Status == v1.StatusPending {
		return
	}
	if c.err = ctx.Err(); c.err != nil {
		// The executor never ran, so the policy counts are released.
		c.release(ctx)
		return
	}
	args, err := r.attached(c)
	if c.err = err; err != nil {
		c.release(ctx)
		return
	}
	if c.err = r.intend(ctx, c); c.err != nil {
		c.release(ctx)
		return
	}
	within, span := r.observer.enter(ctx, phaseExecute)
	c.res, c.err = c.execute(within, args)
	leave(span, c.err)
	if c.err == nil && c.res.Status == "" {
		c.res.Status = v1.StatusComplete
	}
	if c.err == nil {
		c.err = weighResult(ctx, c.tool, c.tool.timeout(c.Timeout), &c.res)
		defer func() { budget.Decoded(ctx, c.res.TextSize()) }()
	}
	if c.err == nil && c.res.Status == v1.StatusComplete {
		within, span := r.observer.enter(ctx, phaseResult)
		c.err = r.checkResult(within, c)
		leave(span, c.err)
	}
	if c.res.Status == v1.StatusPending {
		c.release(ctx)
	}
}

func (c *call) release(ctx context.Context) {
	if err := c.admit.Release(context.WithoutCancel(ctx)); err != nil {
		c.reg.opts.Logger.ErrorContext(ctx, "release the counts of a call", slog.String("tool", c.tool.spec.Metadata.Name), slog.Any("error", err))
	}
}

// execute runs the executor within the tool's timeout and recovers its panics.
func (c *call) execute(ctx context.Context, args json.RawMessage) (res v1.Result, err error) {
	t := c.tool
	limit := t.timeout(c.Timeout)
	within := callctx.WithDeadline(ctx, limit)
	defer within.Stop()
	defer func() {
		if p := recover(); p != nil {
			res, err = v1.Result{}, &v1.ExecutionError{Tool: t.spec.Metadata.Name, Phase: v1.PhaseExecute, Message: fmt.Sprintf("the %s executor panicked: %v", t.executor.Name(), p)}
		}
	}()
	var inner context.Context = within
	if t.goTool() {
		inner = c.withSession(within)
	}
	if m := c.masker(); m != nil {
		inner = redact.NewContext(inner, m) // masks output that leaves the call before it ends
	}
	res, err = t.executor.Execute(inner, t.spec, args)
	if err != nil && ctx.Err() == nil && within.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		err = &v1.ExecutionError{Tool: t.spec.Metadata.Name, Phase: v1.PhaseTimeout, Message: fmt.Sprintf("timed out after %s", clip.Duration(limit)), Cause: err}
	}
	return res, err
}

// timeout returns the timeout of the call: the shorter of the tool's and the caller's.
func (t *tool) timeout(caller time.Duration) time.Duration {
	ms := cmp.Or(t.spec.Spec.TimeoutMS, v1.DefaultTimeoutMS)
	limit := time.Duration(math.MaxInt64)
	if int64(ms) < math.MaxInt64/int64(time.Millisecond) {
		limit = time.Duration(ms) * time.Millisecond
	}
	if caller > 0 && caller < limit {
		return caller
	}
	return limit
}

// checkResult validates content against the output schema. A static mock result belongs to the manifest, so it is
// checked only once.
func (r *Registry) checkResult(ctx context.Context, c *call) error {
	t, content := c.tool, c.res.Content
	mode := t.spec.Spec.Validation.ResultMode()
	if t.out == nil || mode == v1.Off {
		return nil
	}
	var violations []v1.Violation
	var err error
	if same(content, t.spec.Spec.MockResult) {
		checked := t.static.Load()
		if checked == nil {
			checked = &staticCheck{}
			checked.violations, checked.err = t.out.ValidateJSON(content)
			t.static.Store(checked)
		}
		violations, err = checked.violations, checked.err
	} else {
		if len(content) == 0 {
			content = json.RawMessage("null")
		}
		violations, err = t.out.ValidateJSON(content)
	}
	if err == nil && len(violations) == 0 {
		return nil
	}
	var unusable *v1.ValidationError
	switch {
	case errors.As(err, &unusable):
		return manifestViolation(t, "/spec/output_schema", err)
	case err != nil:
		message, got := validate.Undecoded("the result is", err)
		violations = []v1.Violation{{Expected: "JSON", Got: got, Message: message}}
	}
	invalid := v1.NewValidationError(v1.ResultInvalid, t.spec.Metadata.Name, c.masker().Violations(violations))
	if mode == v1.Warn {
		r.opts.Logger.WarnContext(ctx, invalid.Error())
		return nil
	}
	return invalid
}

// staticCheck is the cached validation of a static mock result against the output schema.
type staticCheck struct {
	violations []v1.Violation
	err        error
}

// same reports whether two slices are the same memory.
func same(a, b []byte) bool { return len(a) > 0 && len(a) == len(b) && &a[0] == &b[0] }

// finish returns the result of the call in its final form.
func (c *call) finish() (v1.Result, error) {
	res := &c.res
	res.Tool, res.Namespace = c.Tool, c.Namespace
	if c.tool != nil {
		res.Tool, res.Namespace = c.tool.spec.Metadata.Name, c.tool.spec.Namespace()
	}
	if c.err != nil {
		res.Status = v1.StatusFailed
		res.Error = v1.NewResultError(c.err)
		if _, ok := errors.AsType[*v1.ValidationError](c.err); ok {
			res.Content, res.Parts = nil, nil // a result that violates its schema is not passed on
		}
	}
	res.Repair = c.Repair
	res.Policy, res.Budgets = c.decision(), c.admit.Budgets
	res.DurationMS = c.milliseconds()
	return *res, c.err
}

func (c *call) decision() *v1.PolicyDecision {
	if c.admit.Decision == (v1.PolicyDecision{}) { // no policy applies to the tool or was evaluated
		return nil
	}
	d := c.admit.Decision
	return &d
}

func (c *call) milliseconds() float64 {
	const perMS = float64(time.Millisecond)
	return math.Round(float64(c.reg.opts.Now().Sub(c.began))/perMS*1000) / 1000
}
