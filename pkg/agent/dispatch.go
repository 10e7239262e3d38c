package agent

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/parallel"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/agent/internal/repair"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/validate"
)

// understand reads the calls of a reply. A call that cannot be made gets a failed result
// with the reason. If the API marks the reply as cut off (cut), no call is made.
func (l *loop) understand(offer *offer, asked []ToolCall, cut bool) []Call {
	calls := make([]Call, len(asked))
	for i, a := range asked {
		c := &calls[i]
		c.ID, c.Name = a.ID, a.Name
		c.Result.Tool = a.Name
		if offer.isSubmit(a.Name) {
			c.Answer = true
			c.refuse(&callError{typeNotAlone, fmt.Sprintf("call %s alone, after the results of all other calls", a.Name)})
			continue
		}
		if c.to = offer.find(a.Name); c.to == nil {
			c.refuse(notOffered(offer, a.Name))
			continue
		}
		h := c.to.item.Object.Head()
		c.Tool, c.Result.Tool, c.Result.Namespace = c.to.full, h.Metadata.Name, h.Namespace()
		rules := redactions(c.to)
		if len(rules) > 0 {
			if l.Redact == nil {
				l.Redact = map[string][]string{}
			}
			l.Redact[c.ID] = rules
		}
		if cut {
			c.refuse(&callError{typeCut, "not called: the reply was cut off before its end; ask again, with fewer calls or shorter arguments"})
			continue
		}
		doc, raw, how, err := repair.Object(a.Args, false)
		if err != nil {
			message, _ := validate.Undecoded("the arguments are", err)
			c.refuse(v1.NewValidationError(v1.ArgsInvalid, h.Metadata.Name, []v1.Violation{{Expected: "a JSON object", Got: gotArgs(a.Args, rules), Message: message}}))
			continue
		}
		c.raw, c.Result.Repair = raw, how
		c.Args = raw
		if len(rules) > 0 {
			c.Args = redact.JSON(raw, rules)
		}
		c.key = c.to.full + "\x00" + string(jsontext.Of(doc))
	}
	return calls
}

// gotArgs shows the arguments as the model wrote them, unless they can hold a secret.
func gotArgs(args string, rules []string) string {
	if len(rules) > 0 {
		return redact.Mask
	}
	return strconv.Quote(clip.Bytes(args, 200))
}

func redactions(o *offered) []string {
	t := o.item.Tool()
	if t == nil {
		return nil
	}
	return t.RedactRules()
}

// refuse sets the failed result of a call that is not made.
func (c *Call) refuse(err error) {
	c.skip, c.err = true, err
	c.Result.Status, c.Result.Error = v1.StatusFailed, resultError(err)
}

func notOffered(o *offer, name string) error {
	all := make([]string, len(o.tools))
	for i := range o.tools {
		all[i] = o.tools[i].wire
	}
	e := &v1.NotFoundError{Kind: v1.KindTool, Name: clip.Bytes(name, 100)}
	if near := v1.Nearest(name, all); near != "" {
		e.Candidates = []string{near}
	}
	return e
}

// dispatch makes the calls of a hop. The results keep the order of the calls.
func (l *loop) dispatch(ctx context.Context, offer *offer, hop *Hop) error {
	var tools, prompts []*Call
	twins := map[string]*Call{} // calls whose result equal calls share
	copies := map[*Call]*Call{}
	for i := range hop.Calls {
		c := &hop.Calls[i]
		if c.skip {
			l.told(c)
			continue
		}
		if l.Seen[c.key] >= maxSame {
			c.refuse(&callError{typeRepeated, fmt.Sprintf("not called: %s was called with the same arguments %d times already; use its result, change the arguments, or answer without it", c.Name, maxSame)})
			l.told(c)
			continue
		}
		l.Seen[c.key]++
		if first := twins[c.key]; first != nil {
			copies[c] = first
			continue
		}
		if l.recall(c) {
			l.told(c)
			continue
		}
		if err := l.shared.spend(l.opts.MaxCalls); err != nil {
			return err
		}
		l.Called = true
		l.tell(Event{Kind: EventCall, Call: c})
		if c.to.sub != nil {
			prompts = append(prompts, c)
			continue
		}
		tools = append(tools, c)
		if c.writes() {
			clear(twins)
		}
		if l.memorable(c) {
			twins[c.key] = c
		}
	}
	l.execute(ctx, tools)
	l.descend(ctx, prompts)
	for i := range hop.Calls {
		c := &hop.Calls[i]
		if first := copies[c]; first != nil {
			c.Result, c.err, c.ends = first.Result, first.err, first.ends
			c.Cached = c.Result.Status == v1.StatusComplete
			l.told(c)
		}
	}
	return nil // a call that ctx ended has a failed result, so the transcript is complete
}

// spend counts a call of the run and of all prompts in it.
func (s *shared) spend(most int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls >= most {
		return &LimitError{What: "calls in one run", Limit: most, Got: s.calls + 1}
	}
	s.calls++
	return nil
}

func (l *loop) told(c *Call) { l.tell(Event{Kind: EventResult, Call: c}) }

// governed returns a context whose calls obey the policy of the prompt, and the policies of
// the prompts that called it.
func (l *loop) governed(ctx context.Context) context.Context {
	return policy.WithOverlay(ctx, l.overlay)
}

func (l *loop) call(c *Call) v1.Call {
	c.CallID = l.res.ID + "-" + strconv.Itoa(len(l.res.Messages)) + "-" + c.ID
	return v1.Call{
		ID: c.CallID, Tool: c.to.full, Args: c.raw,
		Session: l.opts.Session, Turn: l.opts.Turn, Principal: l.opts.Principal, Approval: c.approval(), Repair: c.Result.Repair,
	}
}

// approval returns the ID of the pending call that this one repeats.
func (c *Call) approval() string {
	if c.Result.Pending == nil {
		return ""
	}
	return c.Result.Pending.ID
}

// execute calls tools in parallel.
func (l *loop) execute(ctx context.Context, calls []*Call) {
	if len(calls) == 0 {
		return
	}
	batch := make([]v1.Call, len(calls))
	for i, c := range calls {
		batch[i] = l.call(c)
	}
	writes := slices.ContainsFunc(calls, (*Call).writes)
	if writes {
		l.wrote()
	}
	before, _ := l.shared.reads()
	outcomes := l.reg.ExecuteAll(registry.WithParallel(l.governed(ctx), l.opts.Parallel), batch)
	if writes {
		l.wrote()
	}
	after, _ := l.shared.reads()
	for i, c := range calls {
		c.Result, c.err = outcomes[i].Result, outcomes[i].Err
		c.ends = c.Result.Status == v1.StatusFailed && c.to.item.Tool().Spec.OnError == v1.OnErrorReturn
		if before == after { // no call wrote anything in the meantime
			l.remember(c)
		}
		l.told(c)
	}
}

// descend runs the prompts that the model called, in parallel.
func (l *loop) descend(ctx context.Context, calls []*Call) {
	parallel.Limit(len(calls), l.opts.Parallel, func(i int) {
		l.callPrompt(ctx, calls[i])
		l.told(calls[i])
	})
	for _, c := range calls {
		if c.Run != nil {
			l.res.Usage.Add(c.Run.Usage)
		}
	}
}

// handOut ends the run and returns the calls to the caller.
func (l *loop) handOut(hop *Hop) {
	l.res.Status = ToolRequests
	for i := range hop.Calls {
		c := &hop.Calls[i]
		r := ToolRequest{ID: c.ID, Tool: c.Tool, Args: c.Args, Repair: c.Result.Repair, Error: c.Result.Error}
		if r.Tool == "" {
			r.Tool = c.Name
		}
		l.res.ToolRequests = append(l.res.ToolRequests, r)
	}
	hop.Calls = nil // the caller makes them
}

// masked returns the transcript without the arguments that tools redact. The model itself
// needs to see the arguments as it wrote them.
func (l *loop) masked() []Message {
	if len(l.Redact) == 0 {
		return l.res.Messages
	}
	all := slices.Clone(l.res.Messages)
	for i := range all {
		m := &all[i]
		for j := range m.ToolCalls {
			r := l.Redact[m.ToolCalls[j].ID]
			if r == nil {
				continue
			}
			m.ToolCalls, m.Raw = slices.Clone(m.ToolCalls), nil
			if _, raw, _, err := repair.Object(m.ToolCalls[j].Args, false); err == nil {
				m.ToolCalls[j].Args = string(redact.JSON(raw, r))
			} else {
				m.ToolCalls[j].Args = redact.Mask
			}
		}
	}
	return all
}
