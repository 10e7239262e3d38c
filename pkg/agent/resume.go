package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/prompt"
)

// States stores runs that wait for approval. Its methods are safe for concurrent use. A state holds the transcript of
// its run, so it needs the same protection.
type States interface {
	// Save stores a state under the run's id and replaces an earlier one.
	Save(ctx context.Context, id string, state []byte) error
	// Take returns the state of a run and locks the run until Save or Drop. If the run does not exist, the error is a
	// [v1.NotFoundError]; if it is locked, the error has another type.
	Take(ctx context.Context, id string) ([]byte, error)
	// Drop deletes a run that was taken.
	Drop(ctx context.Context, id string) error
}

// stateVersion is the version of the format of a state.
const stateVersion = 1

// state is the stored form of a pending run.
type state struct {
	Version int    `json:"version"`
	Result  Result `json:"result"`
	saved
	// Model is the name of the model.
	Model     string `json:"model,omitempty"`
	Session   string `json:"session"`
	Turn      string `json:"turn"`
	Principal string `json:"principal,omitempty"`
	// Calls counts the calls of the run, including those of prompts that it called.
	Calls int `json:"calls"`
	// Prompts are the pending runs of called prompts, by the index of their calls in the last
	// hop.
	Prompts map[int]*state `json:"prompts,omitempty"`
}

// suspend ends the loop because calls wait for approval.
func (l *loop) suspend(ctx context.Context, hop *Hop) error {
	l.res.Status = Pending
	for i := range hop.Calls {
		if p := hop.Calls[i].Result.Pending; p != nil {
			l.res.Pending = append(l.res.Pending, *p)
		}
	}
	if l.opts.States == nil || l.depth > 1 { // the state of a called prompt is part of its caller's state
		return nil
	}
	return l.save(ctx)
}

// state returns the state to store.
func (l *loop) state() *state {
	s := &state{
		Version: stateVersion, Result: l.res, saved: l.saved, Model: l.name,
		Session: l.opts.Session, Turn: l.opts.Turn, Principal: l.opts.Principal, Calls: l.shared.calls,
	}
	s.Result.DurationMS = l.elapsed()
	hop := l.lastHop()
	for i := range hop.Calls {
		if c := &hop.Calls[i]; c.child != nil && c.Result.Status == v1.StatusPending {
			if s.Prompts == nil {
				s.Prompts = map[int]*state{}
			}
			s.Prompts[i] = c.child.state()
		}
	}
	return s
}

func (l *loop) save(ctx context.Context) error {
	raw, err := json.Marshal(l.state())
	if err == nil {
		err = l.opts.States.Save(context.WithoutCancel(ctx), l.res.ID, raw)
	}
	if err != nil {
		return fmt.Errorf("save run %s: %w", l.res.ID, err)
	}
	return nil
}

// Resume continues a run of Options.States that waited for approval. It repeats the pending calls with their
// approvals. If one of these calls is still pending, so is the run. Resume uses the current prompt of the registry.
// The options should be the same as for Run; the session and turn are those of the run.
//
// A resumed run that fails because of the model or because ctx ended can be resumed again from there. The errors are
// those of [Run], and a [v1.NotFoundError] for a run or prompt that does not exist.
func Resume(ctx context.Context, reg Registry, id string, o Options) (Result, error) {
	o, err := o.filled()
	if err != nil {
		return Result{}, err
	}
	if o.States == nil {
		return Result{}, errors.New("agent: Options.States is nil")
	}
	raw, err := o.States.Take(ctx, id)
	if err != nil {
		return Result{}, err
	}
	after := context.WithoutCancel(ctx) // the run must not stay locked when ctx ends
	l, err := reload(reg, id, raw, o)
	if err != nil {
		return Result{}, errors.Join(err, o.States.Save(after, id, raw))
	}
	res, err := l.end(l.goOn(ctx))
	switch {
	case res.Status == Pending: // suspend saved it
	case l.stalled:
		err = errors.Join(err, l.save(after))
	default:
		err = errors.Join(err, o.States.Drop(after, id))
	}
	return res, err
}

// reload creates the loop of a stored run.
func reload(reg Registry, id string, raw []byte, o Options) (*loop, error) {
	var s state
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, fmt.Errorf("run %s: cannot read its state: %w", id, err)
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("run %s: saved in format %d; this version reads format %d: resume it with the version that started it", id, s.Version, stateVersion)
	}
	if s.Principal != o.Principal {
		return nil, &v1.NotFoundError{Kind: "Run", Name: id} // the run of another principal is not visible
	}
	p, err := promptOf(reg, &s)
	if err != nil {
		return nil, fmt.Errorf("run %s: %w", id, err)
	}
	o.Session, o.Turn = s.Session, s.Turn
	o.ModelName = cmp.Or(o.ModelName, s.Model)
	if err := o.choose(p); err != nil {
		return nil, err
	}
	l := makeLoop(reg, p, o)
	l.depth, l.shared = 1, &shared{calls: s.Calls}
	l.fill(&s)
	return l, l.reloadPrompts(&s)
}

func promptOf(reg Registry, s *state) (*prompt.Prompt, error) {
	it, err := reg.Get(v1.KindPrompt, s.Result.Namespace, s.Result.Prompt)
	if err != nil {
		return nil, err
	}
	if !it.Ready {
		return nil, fmt.Errorf("prompt %q is not ready: %s", s.Result.Prompt, it.Reason())
	}
	return prompt.Compile(it.Object.(*v1.Prompt))
}

// fill restores the state of a loop.
func (l *loop) fill(s *state) {
	l.res, l.saved = s.Result, s.saved
	l.res.Status, l.res.Error, l.res.Pending = "", nil, nil
	if l.Seen == nil {
		l.Seen = map[string]int{}
	}
}

func (l *loop) reloadPrompts(s *state) error {
	hop := l.lastHop()
	for i, sub := range s.Prompts {
		if i < 0 || i >= len(hop.Calls) || sub == nil || l.depth > l.opts.MaxDepth {
			return fmt.Errorf("run %s: its saved state is inconsistent", l.res.ID)
		}
		p, err := promptOf(l.reg, sub)
		if err != nil {
			return err
		}
		child, err := l.under(p)
		if err != nil {
			return err
		}
		child.fill(sub)
		if err := child.reloadPrompts(sub); err != nil {
			return err
		}
		hop.Calls[i].child = child
	}
	return nil
}

// goOn continues a loop that was restored from its state.
func (l *loop) goOn(ctx context.Context) error {
	hop := l.lastHop()
	waits := false
	for i := range hop.Calls {
		waits = waits || hop.Calls[i].Result.Status == v1.StatusPending
	}
	if waits {
		if err := l.repeat(ctx, hop); err != nil {
			return err
		}
	}
	return l.play(ctx)
}

// repeat makes the pending calls of a hop again. The other calls keep their results.
func (l *loop) repeat(ctx context.Context, hop *Hop) error {
	offer, err := l.offer()
	if err != nil {
		l.stalled = true
		return err
	}
	asked := l.res.Messages[len(l.res.Messages)-1].ToolCalls
	if len(asked) != len(hop.Calls) {
		return fmt.Errorf("run %s: its saved state is inconsistent", l.res.ID)
	}
	calls := l.understand(offer, asked, cutOff(hop.Stop))
	var tools, prompts []*Call
	for i := range calls {
		c, old := &calls[i], &hop.Calls[i]
		c.FromText, c.Cached, c.Run, c.child = old.FromText, old.Cached, old.Run, old.child
		switch {
		case old.Result.Status != v1.StatusPending:
			c.settle(old.Result)
		case c.skip: // the tool is no longer offered, and the result says so
		case c.to.sub != nil:
			prompts = append(prompts, c)
		default:
			c.Result.Pending = old.Result.Pending // keep the ID of the approval
			tools = append(tools, c)
		}
	}
	for _, c := range append(tools[:len(tools):len(tools)], prompts...) {
		l.tell(Event{Kind: EventCall, Call: c})
	}
	l.execute(ctx, tools)
	l.descend(ctx, prompts)
	hop.Calls = calls
	return l.conclude(ctx, hop)
}

// settle restores the earlier result of a call.
func (c *Call) settle(res v1.Result) {
	c.Result, c.skip = res, true
	if res.Error != nil {
		c.err = &callError{res.Error.Type, res.Error.Message}
	}
	if c.to != nil && c.to.sub == nil {
		c.ends = res.Status == v1.StatusFailed && c.to.item.Tool().Spec.OnError == v1.OnErrorReturn
	}
}
