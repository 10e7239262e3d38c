package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/agent"
	"toolctl.dev/toolctl/pkg/agent/scripted"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

// converse plays a turn with a scripted model in the loop of package agent, with the tools of the
// prompt, or with all tools of the scenario if the turn has no prompt.
func (p *player) converse(ctx context.Context, field string, turn *v1.Turn) {
	p.field, p.ran = field+"/model", map[string]ran{}
	stage := &stage{Registry: p.reg, player: p}
	o := agent.Options{
		Model:   scripted.New(turn.Model, scripted.Options{Ends: true}),
		Session: scenarioName(p.res.scenario), Turn: strconv.Itoa(p.turn),
		States: &kept{},
	}
	if p.runner.opts.Live == nil {
		o.Parallel, o.Now = 1, func() time.Time { return instant }
	}
	res, err := p.begin(ctx, stage, turn, o)
	if res.Status == agent.Pending && turn.Approve != nil {
		p.answer = turn.Approve
		res, err = agent.Resume(ctx, stage, res.ID, o)
		p.answer = nil
	}
	p.enter(&res)
	p.field, p.call = "", 0
	p.res.Judged++
	if seen, ok := errors.AsType[*scripted.MismatchError](err); ok {
		at := v1.Pointer(field, "model", strconv.Itoa(seen.Reply-1), "sees", seen.Field)
		if seen.Field == "contains" || seen.Field == "lacks" {
			at = v1.Pointer(at, strconv.Itoa(seen.Index))
		}
		p.fail(Failure{What: "sees." + seen.Field, Expected: seen.Expected, Got: seen.Got, Field: at})
		return
	}
	whole := v1.Result{Tool: turn.Prompt, Status: res.Status, Content: res.Output, Error: res.Error, DurationMS: res.DurationMS}
	if len(whole.Content) == 0 {
		whole.Content = jsontext.Of(res.Text)
	}
	p.expect(field, turn.Expect, &whole, turn.Prompt)
}

// begin runs the prompt of a turn, or the substitute of promptOf.
func (p *player) begin(ctx context.Context, stage *stage, turn *v1.Turn, o agent.Options) (agent.Result, error) {
	manifest, err := p.promptOf(turn)
	if err != nil {
		return agent.Result{Status: agent.Failed, Error: v1.NewResultError(err)}, err
	}
	compiled, err := prompt.Compile(manifest)
	if err != nil {
		return agent.Result{Status: agent.Failed, Error: v1.NewResultError(err)}, err
	}
	var messages prompt.Messages
	if turn.Prompt != "" {
		if turn.User == "" {
			return agent.Run(ctx, stage, compiled, turn.Args, o)
		}
		if messages, err = compiled.Render(ctx, turn.Args); err != nil {
			return agent.Result{Status: agent.Failed, Error: v1.NewResultError(err)}, err
		}
	}
	messages = append(messages, prompt.Message{Role: prompt.RoleUser, Content: turn.User})
	return agent.Converse(ctx, stage, compiled, messages, o)
}

// promptOf returns the prompt of a turn. If the turn names no prompt, it returns a prompt with all tools of the
// scenario.
func (p *player) promptOf(turn *v1.Turn) (*v1.Prompt, error) {
	if turn.Prompt != "" {
		it, err := p.reg.Get(v1.KindPrompt, "", turn.Prompt)
		if missing := (*v1.NotFoundError)(nil); errors.As(err, &missing) && missing.Ambiguous {
			it, err = p.reg.Get(v1.KindPrompt, p.res.scenario.Namespace(), turn.Prompt)
		}
		if err != nil {
			return nil, err
		}
		return it.Object.(*v1.Prompt), nil
	}
	any := &v1.Prompt{Header: v1.Header{Metadata: v1.Metadata{Name: p.res.Name, Namespace: p.res.Namespace}}}
	page, err := p.reg.List(registry.Query{Kind: v1.KindTool})
	for _, it := range page.Items {
		if it.Ready {
			any.Spec.Tools = append(any.Spec.Tools, it.FullName)
		}
	}
	return any, err
}

// enter adds a run to the report: the texts of the model and all calls. The calls of a called
// prompt follow the call of the prompt.
func (p *player) enter(res *agent.Result) {
	turn := &p.res.Turns[len(p.res.Turns)-1]
	turn.validatedRun(res)
	for _, hop := range res.Hops {
		turn.usage.in, turn.usage.out = turn.usage.in+hop.Usage.InputTokens, turn.usage.out+hop.Usage.OutputTokens
	}
	written := map[string]string{}
	for _, m := range res.Messages {
		switch {
		case m.Role == agent.RoleAssistant:
			turn.say(m.Text)
		case m.Role == agent.RoleUser && turn.user == "":
			turn.user = m.Text
		}
		for _, c := range m.ToolCalls {
			written[c.ID] = c.Args
		}
	}
	for _, hop := range res.Hops {
		for i := range hop.Calls {
			c := &hop.Calls[i]
			if c.Answer {
				continue
			}
			r, made := p.ran[c.CallID]
			if !made {
				r.asked = v1.Call{Tool: c.Name, Args: json.RawMessage(written[c.ID])}
			}
			r.asked.Tool = c.Name
			if c.Tool != "" {
				r.asked.Tool = c.Tool
			}
			entered := p.record(r.asked, c.Result, r.executed)
			entered.Tool = c.Name
			turn.Calls = append(turn.Calls, entered)
			if c.Run != nil {
				p.enter(c.Run)
			}
		}
	}
}

// ran is a call that reached the registry.
type ran struct {
	asked    v1.Call
	executed bool
}

// stage is the registry that a run uses. It makes mocked calls one after the other, like those
// of a turn.
type stage struct {
	*registry.Registry
	player *player
	mu     sync.Mutex // guards player.ran, because live prompts run in parallel
}

// ExecuteAll makes the calls of a hop.
func (s *stage) ExecuteAll(ctx context.Context, calls []v1.Call) []registry.Outcome {
	p := s.player
	if p.overlay != nil { // in addition to the policy of the prompt
		ctx = policy.WithOverlay(ctx, p.overlay.After(policy.OverlayOf(ctx)))
	}
	if p.runner.opts.Live != nil {
		out := s.Registry.ExecuteAll(ctx, calls)
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, o := range out {
			p.ran[calls[i].ID] = ran{calls[i], ranLive(o.Result)}
		}
		return out
	}
	out := make([]registry.Outcome, len(calls))
	for i, c := range calls {
		p.call = len(p.ran) + 1
		executed := false
		out[i], executed = p.mocked(ctx, c)
		p.ran[c.ID] = ran{c, executed}
	}
	return out
}

// approvals stores pending calls for each scenario. A repeated call gets the scenario's decision.
type approvals struct{}

// TakeApproval implements [registry.Approvals].
func (approvals) TakeApproval(ctx context.Context, call v1.PendingCall, name string) (v1.PendingCall, error) {
	p, err := playerOf(ctx)
	if err != nil {
		return v1.PendingCall{}, err
	}
	found, err := p.pending.TakeApproval(ctx, call, name)
	if err == nil && name != "" && p.answer != nil {
		err = found.Decide(v1.Decision{Approved: *p.answer, By: "the scenario", Simulated: true}, call.Created)
	}
	return found, err
}

// kept stores the pending runs of a turn.
type kept struct{ states sync.Map }

// Save implements [agent.States].
func (k *kept) Save(_ context.Context, id string, state []byte) error {
	k.states.Store(id, state)
	return nil
}

// Take implements [agent.States].
func (k *kept) Take(_ context.Context, id string) ([]byte, error) {
	state, ok := k.states.Load(id)
	if !ok {
		return nil, &v1.NotFoundError{Kind: "Run", Name: id}
	}
	return state.([]byte), nil
}

// Drop implements [agent.States].
func (k *kept) Drop(_ context.Context, id string) error {
	k.states.Delete(id)
	return nil
}
