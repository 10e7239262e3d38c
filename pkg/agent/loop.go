package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/agent/internal/repair"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/prompt"
)

// loop is one run of one prompt. It belongs to one goroutine. A prompt that it calls runs
// in another loop with the same shared state.
type loop struct {
	reg     Registry
	opts    Options
	prompt  *prompt.Prompt
	spec    *v1.PromptSpec
	overlay *policy.Overlay // nil if the prompt has no policy
	model   Model
	name    string // name of the model in requests
	depth   int    // nesting depth, from 1
	native  bool   // the provider enforces spec.output
	began   time.Time
	shared  *shared
	stalled bool // the run can continue from here: the model failed, or ctx ended

	res Result
	saved
}

// saved is the state of a pending run besides its Result.
type saved struct {
	// Seen counts calls by tool and arguments.
	Seen map[string]int `json:"seen,omitempty"`
	// Called says that a tool was called, which satisfies tool_choice required.
	Called bool `json:"called,omitempty"`
	// Tries counts answers that did not fit spec.output.
	Tries int `json:"tries,omitempty"`
	// Redact holds the redaction rules of tools, by the IDs of their calls.
	Redact map[string][]string `json:"redact,omitempty"`
	// Size is the size of the transcript in bytes.
	Size int `json:"size,omitempty"`
}

// shared is the common state of a run and of the prompts that it calls.
type shared struct {
	choosing sync.Mutex // held while ModelFor of the options runs

	mu    sync.Mutex
	calls int // number of calls so far
	// writes counts the calls that may have changed something. The first stale results of
	// the memo are older than the last of these calls.
	writes, stale int
	// compiled are the prompts that may be called.
	compiled map[*v1.Prompt]*prompt.Prompt
}

func (s *shared) compile(p *v1.Prompt) (*prompt.Prompt, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.compiled[p]; c != nil {
		return c, nil
	}
	c, err := prompt.Compile(p)
	if err != nil {
		return nil, err
	}
	const most = 1000 // each reload of the registry brings new pointers, so the map would grow
	if s.compiled == nil || len(s.compiled) >= most {
		s.compiled = map[*v1.Prompt]*prompt.Prompt{}
	}
	s.compiled[p] = c
	return c, nil
}

func newLoop(reg Registry, p *prompt.Prompt, o Options) (*loop, error) {
	o, err := o.filled()
	if err == nil {
		err = o.choose(p)
	}
	if err != nil {
		return nil, err
	}
	id := newID()
	o.Session = cmp.Or(o.Session, "run-"+id)
	o.Turn = cmp.Or(o.Turn, id)
	l := makeLoop(reg, p, o)
	l.res.ID, l.depth, l.shared = id, 1, &shared{}
	return l, nil
}

func makeLoop(reg Registry, p *prompt.Prompt, o Options) *loop {
	h := p.Object()
	l := &loop{reg: reg, opts: o, prompt: p, spec: &h.Spec, model: o.Model, name: o.ModelName, began: o.Now(), saved: saved{Seen: map[string]int{}}}
	if l.name == "" {
		l.name = l.spec.Model
	}
	if l.spec.Policy != nil {
		l.overlay = policy.NewOverlay(h.Head(), *l.spec.Policy)
	}
	if m, ok := o.Model.(StructuredModel); ok && len(l.spec.Output) > 0 {
		l.native = m.Structured(l.spec.Output)
	}
	l.res = Result{Prompt: h.Metadata.Name, Namespace: h.Namespace(), Messages: []Message{}, Hops: []Hop{}}
	return l
}

// begin starts the transcript.
func (l *loop) begin(messages prompt.Messages) {
	l.res.System = messages.System()
	l.Size = len(l.res.System)
	for _, m := range messages {
		if m.Role != prompt.RoleSystem {
			l.say(Message{Role: m.Role, Text: m.Content})
		}
	}
}

func (l *loop) converse(ctx context.Context, messages prompt.Messages) (Result, error) {
	l.begin(messages)
	return l.end(l.play(ctx))
}

// play alternates between the model and its calls until the model has answered.
func (l *loop) play(ctx context.Context) error {
	for l.res.Status == "" {
		if err := ctx.Err(); err != nil {
			l.stalled = true
			return err
		}
		offer, err := l.offer()
		if err != nil {
			return err
		}
		reply, err := l.ask(ctx, offer)
		if err != nil {
			return err
		}
		if err := l.take(ctx, offer, reply); err != nil {
			return err
		}
	}
	return nil
}

// ask sends one request and adds its hop to the result.
func (l *loop) ask(ctx context.Context, offer *offer) (Reply, error) {
	if l.Size > l.opts.MaxTranscriptBytes {
		return Reply{}, &LimitError{What: "bytes of transcript", Limit: l.opts.MaxTranscriptBytes, Got: l.Size}
	}
	req := l.request(offer)
	l.res.Hops = append(l.res.Hops, Hop{Tools: names(req.Tools), ToolChoice: req.ToolChoice})
	hop := &l.res.Hops[len(l.res.Hops)-1]
	l.tell(Event{Kind: EventHop, Hop: hop})
	if reply, refused := l.refuseInput(hop); refused {
		return reply, nil
	}
	var on func(Delta)
	if l.opts.Stream && l.opts.On != nil && !l.prompt.HasValidators() {
		on = func(d Delta) { l.tell(Event{Kind: EventDelta, Delta: d}) }
	}
	began := l.opts.Now()
	reply, err := l.generate(ctx, req, on)
	hop.DurationMS = milliseconds(l.opts.Now().Sub(began))
	hop.Model, hop.Stop, hop.Usage = reply.Model, reply.Stop, reply.Usage
	l.res.Usage.Add(reply.Usage)
	l.validateReply(hop, &reply)
	if err != nil {
		l.stalled = true
		if text := clip.Bytes(reply.Message.Text, maxReplyBytes); text != "" {
			l.res.Text = text // the part before the error
		}
		return Reply{}, err
	}
	l.tell(Event{Kind: EventReply, Hop: hop})
	reply.Message.Role = RoleAssistant
	return reply, bounded(&reply.Message)
}

// generate turns a panic of the model into an error.
func (l *loop) generate(ctx context.Context, req Request, on func(Delta)) (reply Reply, err error) {
	defer func() {
		if p := recover(); p != nil {
			reply, err = Reply{}, fmt.Errorf("the model panicked: %v", p)
		}
	}()
	reply, err = l.model.Generate(ctx, req, on)
	if err == nil {
		return reply, nil
	}
	if ctx.Err() != nil {
		return reply, ctx.Err()
	}
	return reply, fmt.Errorf("prompt %q: hop %d: %w", l.res.Prompt, len(l.res.Hops), err)
}

func (l *loop) request(offer *offer) Request {
	req := Request{
		Model: l.name, System: l.system(offer), Messages: l.res.Messages, Tools: offer.specs, ToolChoice: offer.choice,
		Thinking: l.spec.Thinking, ThinkingBudget: l.spec.ThinkingBudget, Parameters: l.spec.Parameters,
	}
	if l.native {
		req.Output = l.spec.Output
	}
	return req
}

// bounded refuses a reply of excessive size.
func bounded(m *Message) error {
	if n := len(m.ToolCalls); n > maxCallsPerReply {
		return &LimitError{What: "calls in one reply", Limit: maxCallsPerReply, Got: n}
	}
	size := len(m.Text)
	for _, c := range m.ToolCalls {
		size += len(c.Args)
	}
	if size > maxReplyBytes {
		return &LimitError{What: "bytes in one reply", Limit: maxReplyBytes, Got: size}
	}
	return nil
}

// take handles a reply, which is an answer or a list of calls.
func (l *loop) take(ctx context.Context, offer *offer, reply Reply) error {
	m := reply.Message
	fromText := false
	if len(m.ToolCalls) == 0 {
		fromText = l.extract(offer, &m)
	}
	nameCalls(m.ToolCalls, len(l.res.Messages))
	if m.Text != "" || len(m.ToolCalls) == 0 {
		l.res.Text = m.Text
	}
	l.say(m)
	if len(m.ToolCalls) == 0 {
		switch reply.Stop {
		case StopLength:
			l.warn("the answer was cut off: the model reached its token limit")
		case StopFilter:
			l.warn("the answer was stopped by the provider's filter")
		}
	}
	switch {
	case len(m.ToolCalls) == 0 && len(l.spec.Output) > 0:
		return l.answer(offer, m.Text, reply.Stop)
	case len(m.ToolCalls) == 0:
		l.res.Status = Complete
		return nil
	case len(m.ToolCalls) == 1 && offer.isSubmit(m.ToolCalls[0].Name):
		return l.submitted(m.ToolCalls[0], cutOff(reply.Stop))
	}
	hop := l.lastHop()
	rounds := l.rounds()
	hop.Calls = l.understand(offer, m.ToolCalls, cutOff(reply.Stop))
	for i := range hop.Calls {
		hop.Calls[i].FromText = fromText
	}
	if l.opts.ReturnToolRequests {
		l.handOut(hop)
		return nil
	}
	if rounds >= l.opts.MaxHops {
		reply.Message = m
		for i := range hop.Calls {
			hop.Calls[i].refuse(&callError{"tool_hops", "the run had no hop left for the result"})
		}
		return &ToolHopsError{Hops: rounds, LastReply: reply}
	}
	if err := l.dispatch(ctx, offer, hop); err != nil {
		return err
	}
	return l.conclude(ctx, hop)
}

// cutOff reports whether the API says that the reply ended before the model was done.
func cutOff(stop string) bool { return stop == StopLength || stop == StopFilter }

// rounds counts the hops with calls. An answer that came as a call does not count.
func (l *loop) rounds() int {
	n := 0
	for _, h := range l.res.Hops {
		if len(h.Calls) > 1 || len(h.Calls) == 1 && !h.Calls[0].Answer {
			n++
		}
	}
	return n
}

// lastHop returns the current hop.
func (l *loop) lastHop() *Hop {
	if len(l.res.Hops) == 0 {
		return &Hop{}
	}
	return &l.res.Hops[len(l.res.Hops)-1]
}

// extract finds calls in the text of a reply. Text that repeats the result of a tool is
// not a call.
func (l *loop) extract(offer *offer, m *Message) bool {
	calls, rest := repair.Calls(m.Text, func(c repair.Call) bool {
		return (offer.find(c.Name) != nil || offer.isSubmit(c.Name)) && !l.quoted(c.Block)
	})
	if len(calls) == 0 {
		return false
	}
	m.Text, m.Raw = rest, nil // the provider's own form of the reply lacks these calls
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, ToolCall{Name: c.Name, Args: c.Args})
	}
	return true
}

// nameCalls gives each call an id of its own.
func nameCalls(calls []ToolCall, at int) {
	for i := range calls {
		taken := func(c ToolCall) bool { return c.ID == calls[i].ID }
		if calls[i].ID == "" || slices.ContainsFunc(calls[:i], taken) {
			calls[i].ID = fmt.Sprintf("call-%d-%d", at, i+1)
		}
	}
}

// conclude adds the results of a hop to the transcript, ends the run or suspends it.
func (l *loop) conclude(ctx context.Context, hop *Hop) error {
	for i := range hop.Calls {
		if hop.Calls[i].Result.Status == v1.StatusPending {
			return l.suspend(ctx, hop)
		}
	}
	var ended error
	for i := range hop.Calls {
		c := &hop.Calls[i]
		l.say(l.present(c))
		if ended == nil && c.ends {
			ended = c.err
			if ended == nil { // the tool itself reported failure
				ended = &v1.ExecutionError{Tool: c.Result.Tool, Phase: v1.PhaseExecute, Message: "failed"}
			}
		}
	}
	return ended
}

// say appends a message to the transcript.
func (l *loop) say(m Message) {
	l.res.Messages = append(l.res.Messages, m)
	l.Size += len(m.Text) + len(m.Raw)
	for _, c := range m.ToolCalls {
		l.Size += len(c.Name) + len(c.Args)
	}
	for _, p := range m.Parts {
		l.Size += len(p.Data) + len(p.Text)
	}
}

// tell reports an event to the caller, one at a time even when prompts run in parallel.
func (l *loop) tell(e Event) {
	if l.opts.On == nil {
		return
	}
	e.Prompt, e.Depth = l.res.Prompt, l.depth
	if e.Number == 0 {
		e.Number = len(l.res.Hops)
	}
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	l.opts.On(e)
}

// end returns the result in its final form. The loop keeps the unmasked result for Resume.
func (l *loop) end(err error) (Result, error) {
	res := l.res
	res.DurationMS = l.elapsed()
	if err != nil {
		res.Status, res.Error = Failed, resultError(err)
	}
	res.Messages = l.masked()
	return res, err
}

// elapsed returns the run time so far, without the time that the run was pending.
func (l *loop) elapsed() float64 {
	return l.res.DurationMS + milliseconds(l.opts.Now().Sub(l.began))
}

func resultError(err error) *v1.ResultError {
	r := v1.NewResultError(err)
	if r.Type == v1.TypeInternal && errors.As(err, new(*ModelError)) {
		r.Type = "model_failed"
	}
	return r
}
