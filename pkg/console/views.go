package console

import (
	"encoding/json"
	"slices"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/scenario"
)

// Views are the forms in which pages, API responses and events show calls, servers, tools and other objects. They list
// the shown fields one by one, so that a new field of the original type stays hidden until it is added here. Fields
// that only operators see have a comment.

// callView is a finished call.
type callView struct {
	Number       int64              `json:"number"`
	Time         time.Time          `json:"time"`
	CallID       string             `json:"call_id"`
	Principal    string             `json:"principal,omitempty"`
	Session      string             `json:"session,omitempty"`
	Turn         string             `json:"turn,omitempty"`
	Tool         string             `json:"tool"`
	Namespace    string             `json:"namespace"`
	Args         json.RawMessage    `json:"args,omitempty"`
	ArgsStart    string             `json:"args_start,omitempty"`
	ArgsBytes    int                `json:"args_bytes,omitempty"`
	Policy       *v1.PolicyDecision `json:"policy,omitempty"`
	Approval     *v1.ApprovalRecord `json:"approval,omitempty"`
	Status       string             `json:"status"`
	ErrorType    string             `json:"error_type,omitempty"`
	DurationMS   float64            `json:"duration_ms"`
	Repair       string             `json:"repair,omitempty"`
	Effects      []v1.Effect        `json:"effects,omitempty"`
	EffectsCount int                `json:"effects_count,omitempty"`
	Attempts     int                `json:"attempts"`
	Executor     string             `json:"executor,omitempty"`
	Error        string             `json:"error,omitempty"`
	TraceID      string             `json:"trace_id,omitempty"`
	Pending      string             `json:"pending,omitempty"`
}

func (c *Console) viewCall(r *request, e *event) callView {
	return callView{
		Number: e.Number, Time: e.Time, CallID: e.CallID, Principal: e.Principal, Session: e.Session, Turn: e.Turn, Tool: e.Tool, Namespace: e.Namespace,
		Args: e.Args, ArgsStart: e.ArgsStart, ArgsBytes: e.ArgsBytes, Policy: e.Policy, Approval: e.Approval, Status: e.Status, ErrorType: e.ErrorType,
		DurationMS: e.DurationMS, Repair: e.Repair, Effects: c.viewEffects(r, e.Effects), EffectsCount: e.EffectsCount, Attempts: e.Attempts,
		Executor: e.Executor, Error: e.Error, TraceID: e.TraceID, Pending: e.Pending,
	}
}

func (c *Console) viewCalls(r *request, all []event) []callView {
	out := make([]callView, len(all))
	for i := range all {
		out[i] = c.viewCall(r, &all[i])
	}
	return out
}

// viewEffects hides addresses, paths and commands from everyone but operators.
func (c *Console) viewEffects(r *request, all []v1.Effect) []v1.Effect {
	if c.operates(r.person) {
		return all
	}
	out := make([]v1.Effect, len(all))
	for i, e := range all {
		out[i] = v1.Effect{Kind: e.Kind, Method: e.Method, HTTPStatus: e.HTTPStatus, Server: e.Server, Tool: e.Tool, Operation: e.Operation}
	}
	return out
}

// seeing reports which calls a person sees: operators see all, others their own.
func (c *Console) seeing(r *request) func(*event) bool {
	if c.operates(r.person) {
		return func(*event) bool { return true }
	}
	return func(e *event) bool { return e.Principal == r.principal }
}

// toolSight reports which tools a person sees. Operators see all, including removed ones.
func (c *Console) toolSight(r *request) func(namespace, name string) bool {
	if c.operates(r.person) {
		return func(string, string) bool { return true }
	}
	known := map[toolKey]bool{}
	return func(namespace, name string) bool {
		key := toolKey{namespace, name}
		seen, ok := known[key]
		if !ok {
			_, err := r.view.Tool(namespace + "/" + name)
			seen = err == nil
			known[key] = seen
		}
		return seen
	}
}

// serverView is an MCP server. People other than operators see only servers that offer them a tool or a prompt.
type serverView struct {
	Key             v1.Key           `json:"key"`
	Ready           bool             `json:"ready"`
	ProtocolVersion string           `json:"protocol_version,omitempty"`
	ServerName      string           `json:"server_name,omitempty"`
	ServerVersion   string           `json:"server_version,omitempty"`
	Tools           []serverToolView `json:"tools"`
	// Only operators see the following fields.
	Reason    string        `json:"reason,omitempty"`
	Warnings  []string      `json:"warnings,omitempty"`
	Transport string        `json:"transport,omitempty"`
	Latency   time.Duration `json:"latency_ns,omitempty"`
	PID       int           `json:"pid,omitempty"`
	Starts    int           `json:"starts,omitempty"`
	LastSeen  time.Time     `json:"last_seen,omitzero"`
	// Operator reports whether the fields above are shown.
	Operator bool `json:"-"`
}

// serverToolView is a tool of a server.
type serverToolView struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Only for operators: the name of the tool on the server, and why it cannot be called.
	Remote  string `json:"remote,omitempty"`
	Problem string `json:"problem,omitempty"`
}

func (c *Console) viewServers(r *request) []serverView {
	operates, sees := c.operates(r.person), c.toolSight(r)
	offers := map[v1.Key]bool{}
	if !operates {
		for _, it := range r.view.Tools() {
			if key, ok := it.Tool().Server(); ok {
				offers[key] = true
			}
			offers[it.Server] = true
		}
		for _, p := range r.view.Prompts() {
			offers[p.Owner] = true
		}
	}
	var out []serverView
	for _, s := range c.gateway.ServerStates() {
		if !operates && !offers[s.Key] {
			continue
		}
		v := serverView{Key: s.Key, Ready: s.Ready, ProtocolVersion: s.ProtocolVersion, ServerName: s.ServerName, ServerVersion: s.ServerVersion, Tools: []serverToolView{}, Operator: operates}
		for _, t := range s.Tools {
			switch one := (serverToolView{Name: t.Tool.Metadata.Name, Description: t.Tool.Spec.Description}); {
			case operates:
				one.Remote, one.Problem = t.Remote, t.Problem
				v.Tools = append(v.Tools, one)
			case sees(s.Key.Namespace, one.Name):
				v.Tools = append(v.Tools, one)
			}
		}
		if operates {
			v.Reason, v.Warnings, v.Transport, v.Latency, v.PID, v.Starts, v.LastSeen = s.Reason, s.Warnings, s.Transport, s.Latency, s.PID, s.Starts, s.LastSeen
		}
		out = append(out, v)
	}
	return out
}

// viewTool returns the manifest of a tool: for operators the whole manifest with secrets masked, for others the part
// that clients may see.
func (c *Console) viewTool(r *request, t *v1.Tool) (*v1.Tool, error) {
	if c.operates(r.person) {
		masked, err := redact.Manifest(t)
		if err != nil {
			return nil, err
		}
		return masked.(*v1.Tool), nil
	}
	s := &t.Spec
	return &v1.Tool{
		Header: v1.Header{APIVersion: t.APIVersion, Kind: t.Kind, Metadata: v1.Metadata{Name: t.Metadata.Name, Namespace: t.Metadata.Namespace, Labels: t.Metadata.Labels}},
		Spec:   v1.ToolSpec{Name: s.Name, Description: s.Description, Mode: s.Mode, InputSchema: s.InputSchema, OutputSchema: s.OutputSchema, Hints: s.Hints, Examples: s.Examples},
	}, nil
}

// planView is the plan of a call.
type planView struct {
	Tool      string             `json:"tool"`
	Namespace string             `json:"namespace"`
	Executor  string             `json:"executor"`
	Args      json.RawMessage    `json:"args"`
	Policy    *v1.PolicyDecision `json:"policy,omitempty"`
	// Only for operators: the request that would be sent.
	Request any `json:"request,omitempty"`
}

func (c *Console) viewPlan(r *request, p registry.Plan) planView {
	v := planView{Tool: p.Tool, Namespace: p.Namespace, Executor: p.Executor, Args: p.Args, Policy: p.Policy}
	if c.operates(r.person) {
		v.Request = p.Request
	}
	return v
}

// explain returns the decision of the policies on a call. Only operators see the policies that do not
// apply, since these name other principals.
func (c *Console) explain(r *request, call v1.Call) (policy.Explanation, error) {
	ex, err := r.view.Explain(r.Context(), call)
	if !c.operates(r.person) {
		ex.Unmatched = ex.Unmatched[:0]
	}
	return ex, err
}

// approvalView is a call that waits for approval, or has waited for it.
type approvalView struct {
	ID         string          `json:"id"`
	State      string          `json:"state"`
	Tool       string          `json:"tool"`
	Namespace  string          `json:"namespace"`
	Policy     string          `json:"policy"`
	Rule       string          `json:"rule"`
	Approvers  []v1.Approvers  `json:"approvers,omitempty"`
	Principal  string          `json:"principal,omitempty"`
	Session    string          `json:"session,omitempty"`
	Turn       string          `json:"turn,omitempty"`
	Args       json.RawMessage `json:"args"`
	Created    time.Time       `json:"created_at"`
	Expires    time.Time       `json:"expires_at"`
	By         string          `json:"by,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Decided    time.Time       `json:"decided_at,omitzero"`
	EditedArgs json.RawMessage `json:"edited_args,omitempty"`
	// Refusal says why the person who views the call may not decide on it; empty if the person may decide.
	Refusal string `json:"refusal,omitempty"`
}

// viewPending returns a call with its state at a given time and with secrets masked.
func viewPending(p *v1.PendingCall, now time.Time) approvalView {
	return approvalView{
		ID: p.ID, State: p.StateAt(now), Tool: p.Tool, Namespace: p.Namespace, Policy: p.Policy, Rule: p.Rule, Approvers: p.Approvers, Principal: p.Principal,
		Session: p.Session, Turn: p.Turn, Args: p.Args, Created: p.Created, Expires: p.Expires, By: p.By, Reason: p.Reason, Decided: p.Decided,
		EditedArgs: redact.JSON(p.EditedArgs, p.Redact),
	}
}

// pendingSight reports which approvals a person may see: approvals that the person may decide on, and those for the
// person's own calls. Operators see all.
func (c *Console) pendingSight(p person) func(*v1.PendingCall) bool {
	operates := c.operates(p)
	return func(call *v1.PendingCall) bool {
		return operates || call.Principal == p.principal || call.MayDecide(v1.Decision{By: p.name, Groups: p.groups}) == nil
	}
}

// scenarioView is the result of a scenario.
type scenarioView struct {
	Name        string             `json:"name"`
	Namespace   string             `json:"namespace"`
	Description string             `json:"description,omitempty"`
	Status      string             `json:"status"`
	Source      v1.Source          `json:"source,omitzero"`
	Judged      int                `json:"judged"`
	Total       int                `json:"total"`
	Judgement   string             `json:"judgement"`
	Failures    []scenario.Failure `json:"failures"`
	DurationMS  float64            `json:"duration_ms"`
	// Only for operators: the calls and their results.
	Turns []scenario.Turn `json:"turns,omitempty"`
}

func (c *Console) viewScenario(r *request, s *scenario.Result) scenarioView {
	v := scenarioView{
		Name: s.Name, Namespace: s.Namespace, Description: s.Description, Status: s.Status, Source: s.Source, Judged: s.Judged, Total: s.Total, Judgement: s.Judgement(),
		Failures: s.Failures[:min(len(s.Failures), maxFailures)], DurationMS: s.DurationMS,
	}
	if c.operates(r.person) {
		v.Turns = s.Turns
	}
	return v
}

// viewCoverage returns the coverage of the tools that a person sees. Only operators see the coverage of policies.
func (c *Console) viewCoverage(r *request, all *scenario.Coverage) *scenario.Coverage {
	if all == nil || c.operates(r.person) {
		return all
	}
	sees := c.toolSight(r)
	v := &scenario.Coverage{Policies: []scenario.CoveredObject{}, Percent: 100}
	v.Tools = slices.DeleteFunc(slices.Clone(all.Tools), func(o scenario.CoveredObject) bool { return !sees(o.Namespace, o.Name) })
	for _, o := range v.Tools {
		v.Covered, v.Total = v.Covered+o.Covered, v.Total+o.Total
	}
	if v.Total > 0 {
		v.Percent = 100 * float64(v.Covered) / float64(v.Total)
	}
	return v
}
