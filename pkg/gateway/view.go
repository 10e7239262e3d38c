package gateway

import (
	"context"
	"encoding/json"
	"slices"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/search"
	"toolctl.dev/toolctl/pkg/store"
)

// View is the part of the served objects that one principal sees and may call. "" is a caller without a principal, as
// on a command line.
type View struct {
	g         *Gateway
	principal string
}

// View returns the view of a principal.
func (g *Gateway) View(principal string) View { return View{g, principal} }

// Tools returns the tools of [Options.Subset] that no policy hides from the principal, sorted by name and including
// those that are not ready.
func (v View) Tools() []registry.Item {
	served := v.g.catalog.served()
	own, alone := v.g.catalog.overlay(), v.g.catalog.alone()
	return slices.DeleteFunc(served, func(it registry.Item) bool {
		return !v.sees(it, own) || alone != nil && !search.Contains(alone, v1.KindTool, it.Subject)
	})
}

// sees reports whether a tool that others can call is not blocked for the principal.
func (v View) sees(it registry.Item, own *policy.Overlay) bool {
	a := it.Audience(own)
	return a == nil || a.Sees(v.principal)
}

// Blocked returns the refusal that every call of the tool by the principal gets; nil if some calls may pass.
func (v View) Blocked(it registry.Item) *v1.PolicyError {
	blocked, _ := it.Under(v.g.catalog.overlay(), v.principal)
	return blocked
}

// Concerned returns the names of the policies with a rule that may affect the principal's calls of a tool, and whether
// a policy requires approval for each call.
func (v View) Concerned(it registry.Item) (policies []string, held bool) {
	return it.Concerned(v.g.catalog.overlay(), v.principal)
}

// Tool returns one of Tools by its full name. The error is a [v1.NotFoundError].
func (v View) Tool(name string) (registry.Item, error) {
	c := v.g.catalog
	it, err := c.reg.Lookup("", name)
	if err == nil && it.FullName == name && v.sees(it, c.overlay()) {
		if len(c.Tools) == 0 && len(c.Prompts) == 0 && c.Selector == "" && c.Toolset == "" && (c.Namespace == "" || c.Namespace == it.Tool().Namespace()) {
			return it, nil
		}
		all := v.Tools()
		if i := slices.IndexFunc(all, func(o registry.Item) bool { return o.FullName == name }); i >= 0 {
			return all[i], nil
		}
	}
	return registry.Item{}, &v1.NotFoundError{Kind: v1.KindTool, Name: name}
}

// Call executes a call of one of Tools as the principal. An [admission.RefusedError] means that the call was not
// started.
func (v View) Call(ctx context.Context, call v1.Call) (v1.Result, error) {
	if _, err := v.Tool(call.Tool); err != nil {
		return v1.Result{}, err
	}
	call.Principal = v.principal
	var res v1.Result
	err := v.admitted(ctx, call.Args, func(ctx context.Context) (err error) {
		res, err = v.g.catalog.Call(ctx, call, nil)
		return err
	})
	if tooLarge := v.g.admission.Result(int64(res.TextSize())); tooLarge != nil {
		err = &v1.ExecutionError{Tool: call.Tool, Phase: v1.PhaseExecute, Message: tooLarge.Error()}
		res = v1.Result{Tool: res.Tool, Namespace: res.Namespace, Status: v1.StatusFailed, Error: v1.NewResultError(err)}
	}
	return res, err
}

// admitted runs do within the limits of the gateway. The error is an [admission.RefusedError] if do was not started,
// else the error of do.
func (v View) admitted(ctx context.Context, args []byte, do func(context.Context) error) error {
	call, err := v.g.admission.Calls.Begin(v.principal)
	if err != nil {
		return &admission.RefusedError{Err: err}
	}
	defer call.End()
	ctx, release, err := v.g.admission.Memory(ctx, v.principal, args)
	if err != nil {
		return &admission.RefusedError{Err: err}
	}
	defer release()
	return do(ctx)
}

// Plan returns what a call would do: see [registry.Registry.Plan].
func (v View) Plan(ctx context.Context, call v1.Call) (registry.Plan, error) {
	if _, err := v.Tool(call.Tool); err != nil {
		return registry.Plan{}, err
	}
	call.Principal = v.principal
	return v.g.reg.Plan(policy.WithOverlay(ctx, v.g.catalog.overlay()), call)
}

// Explain returns how the policies decide on a call: see [registry.Registry.ExplainPolicy].
func (v View) Explain(ctx context.Context, call v1.Call) (policy.Explanation, error) {
	if _, err := v.Tool(call.Tool); err != nil {
		return policy.Explanation{}, err
	}
	call.Principal = v.principal
	return v.g.reg.ExplainPolicy(policy.WithOverlay(ctx, v.g.catalog.overlay()), call)
}

// CheckEdited validates the edited arguments of a pending call against the schema of its tool: see
// [registry.Registry.CheckEdited].
func (g *Gateway) CheckEdited(ctx context.Context, p *v1.PendingCall, args json.RawMessage) error {
	return g.reg.CheckEdited(ctx, p, args)
}

// ServerStates returns the known states of the MCP servers, sorted.
func (g *Gateway) ServerStates() []mcp.ServerState {
	var all []mcp.ServerState
	for _, k := range g.Servers("") {
		state, ok := g.servers.State(k)
		if !ok {
			state = mcp.ServerState{Key: k, Reason: "not asked yet"}
		}
		all = append(all, state)
	}
	return all
}

// AuditLines returns audit records, newest last. Without a store there are no records.
func (g *Gateway) AuditLines(ctx context.Context, f store.AuditFilter) ([]v1.AuditRecord, error) {
	if g.opts.Store == nil {
		return nil, nil
	}
	return store.ListAudit(ctx, g.opts.Store, f)
}
