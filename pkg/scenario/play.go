package scenario

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

// player plays one scenario. It belongs to one goroutine, except for its counters.
type player struct {
	runner *Runner
	spec   *v1.ScenarioSpec
	reg    *registry.Registry
	mocks  map[v1.Key]*mock
	// counts and pending belong to this scenario alone.
	counts  *policy.MemoryCounters
	pending registry.MemoryApprovals
	random  *rand.Rand
	// promptKit says that the manifest is a PromptKit manifest, whose unknown parts are skipped
	// with a warning.
	promptKit bool
	// turn and call are the numbers of the current turn and call, from 1.
	turn, call int
	// ran are the calls of a run that reached the registry, by their IDs in the audit log.
	ran    map[string]ran
	answer *bool // the decision on pending calls
	// field is the pointer of the current call; "" between calls.
	field  string
	broken bool // the manifest has a violation
	// overlay is the scenario's own policy; nil if it has no policy.
	overlay *policy.Overlay
	// searches are the tools that searches find, by toolset.
	searches map[string]*registry.Searchable
	// validators is the prompt that the task_type of a PromptKit scenario names.
	validators *prompt.Prompt
	// context is the size of the conversation in bytes, for the tokens of a scripted model.
	context int
	res     Result
}

// prepare creates the registry and the mocks. It returns false if the scenario cannot be played.
func (p *player) prepare(ctx context.Context) bool {
	s := p.res.scenario
	if p.promptKit = s.FromPromptKit(); p.promptKit {
		p.warnUnread()
	}
	name := fnv.New64a()
	name.Write([]byte(s.Namespace() + "/" + s.Metadata.Name))
	p.random = rand.New(rand.NewPCG(uint64(p.spec.Seed), name.Sum64()))
	if p.reg = p.choose(ctx); p.reg == nil {
		return false
	}
	p.chooseValidators()
	p.mocks = map[v1.Key]*mock{}
	for _, name := range sortedKeys(p.spec.Mocks) {
		item, err := p.reg.Lookup(p.namespace(p.reg, name), name)
		if err != nil {
			if other, there := p.runner.base.Lookup("", name); there == nil && p.spec.Tools != nil {
				err = fmt.Errorf("spec.tools does not name %q", other.Tool().Metadata.Name)
			}
			if p.ofUnstarted(name) {
				err = fmt.Errorf("%w: no MCP server is started for mocks: %s", err, declareTool)
			}
			p.invalid(v1.Pointer("/spec/mocks", name), err.Error())
			continue
		}
		tool := item.Tool()
		if p.mocks[tool.Key()] != nil {
			p.invalid(v1.Pointer("/spec/mocks", name), fmt.Sprintf("tool %q has two mocks", tool.Metadata.Name))
			continue
		}
		if p.runner.opts.Live != nil {
			continue
		}
		m := p.spec.Mocks[name]
		p.mocks[tool.Key()] = p.newMock(name, &m, tool)
	}
	if p.spec.Policy != nil {
		p.overlay = policy.NewOverlay(s.Head(), *p.spec.Policy)
	}
	for i := range p.spec.Turns {
		p.checkTurn(i)
	}
	p.checkAssertions(0, "/spec/assertions", p.spec.Assertions)
	return !p.broken
}

// declareTool is what to do about a tool of a server that is not started.
const declareTool = "declare the tool in a manifest, as 'toolctl import mcp --tools' writes them"

// ofUnstarted reports whether a name belongs to a tool of a declared MCP server that is not started.
func (p *player) ofUnstarted(name string) bool {
	server, _, ok := strings.Cut(strings.TrimPrefix(name, v1.MCPPrefix), "__")
	if !ok || p.runner.opts.Live != nil {
		return false
	}
	_, err := p.runner.base.Get(v1.KindMCPServer, "", server)
	return err == nil
}

// checkTurn finds violations of a turn.
func (p *player) checkTurn(i int) {
	turn, field := &p.spec.Turns[i], v1.Pointer("/spec/turns", strconv.Itoa(i))
	p.checkAssertions(i+1, field+"/assertions", turn.Assertions)
	if p.promptKit {
		return
	}
	switch {
	case len(turn.Calls) > 0 && len(turn.Model) > 0:
		p.invalid(field+"/model", "a turn has either calls or a scripted model, not both")
	case len(turn.Calls)+len(turn.Model)+len(turn.Search) == 0:
		p.invalid(field, "a turn needs calls, or model with the replies of a scripted model")
	case len(turn.Calls) > 0 && turn.Prompt+turn.User != "":
		p.invalid(field+"/calls", "prompt and user need a scripted model, not calls")
	case len(turn.Calls) > 0 && (turn.Expect != nil || turn.Approve != nil):
		p.invalid(field+"/calls", "expect and approve of a turn need a scripted model; each call has its own")
	case turn.Approve != nil && turn.Prompt == "":
		p.invalid(field+"/approve", "approve needs prompt: only the run of a prompt can be pending and continue")
	case len(turn.Args) > 0 && turn.Prompt == "":
		p.invalid(field+"/args", "args are the variables of a prompt, and the turn has no prompt")
	}
	p.checkSearches(field+"/search", turn.Search)
	if turn.Prompt != "" {
		if _, err := p.promptOf(turn); err != nil {
			p.invalid(field+"/prompt", err.Error())
		}
	}
}

// play plays all turns.
func (p *player) play(ctx context.Context) {
	played := 0
	script := p.runner.opts.Responses.script(len(p.spec.Turns), p.spec.ID, p.res.Name)
	for i := range p.spec.Turns {
		if ctx.Err() != nil {
			return
		}
		p.turn, p.call = i+1, 0
		p.res.Turns = append(p.res.Turns, Turn{Calls: []Call{}})
		turn, field := &p.spec.Turns[i], v1.Pointer("/spec/turns", strconv.Itoa(i))
		model := asReplies(turn.Model)
		if len(turn.Calls)+len(turn.Search) == 0 && len(model) == 0 {
			model = script.turn(i + 1)
		}
		p.playSearches(field+"/search", turn.Search)
		if len(turn.Calls)+len(turn.Search) == 0 && len(model) == 0 {
			p.warn(field, "turn %d was not run: no script has the model's reply (see --mock-responses FILE)", i+1)
			p.pass(field+"/assertions", turn.Assertions, fmt.Sprintf("turn %d was not run", i+1))
			continue
		}
		played++
		within := p.governed(ctx, turn)
		p.playCalls(within, field+"/calls", turn.Calls)
		if p.promptKit {
			script.unread(len(model) - p.playModel(within, field+"/model", turn.User, model))
		} else if len(model) > 0 {
			p.converse(within, field, turn)
		}
		p.call = 0
		p.assert(ctx, field+"/assertions", turn.Assertions, i)
	}
	p.turn, p.call = 0, 0
	if played == 0 || played < len(p.spec.Turns) {
		p.pass("/spec/assertions", p.spec.Assertions, "not every turn is run")
		return
	}
	p.assert(ctx, "/spec/assertions", p.spec.Assertions, 0)
}

// governed returns the context for the calls of a turn, with the scenario's policy and its
// decisions on calls that need consent.
func (p *player) governed(ctx context.Context, turn *v1.Turn) context.Context {
	if p.overlay != nil {
		ctx = policy.WithOverlay(ctx, p.overlay)
	}
	return registry.WithAsker(ctx, func(_ context.Context, info v1.PendingToolInfo) (v1.Decision, bool, error) {
		answer, ok := turn.ConsentOverrides[info.ToolName]
		if !ok && p.promptKit && registry.AsksConsent(&info) {
			answer, ok = v1.ConsentGrant, true // PromptKit's simulation grants by default
		}
		if !ok || answer == v1.ConsentTimeout {
			return v1.Decision{}, false, nil
		}
		granted := answer == v1.ConsentGrant || p.promptKit && answer != v1.ConsentDeny // PromptKit grants for any other word
		return v1.Decision{Approved: granted, By: "the scenario", Simulated: true}, true, nil
	})
}

// finish sets the status.
func (p *player) finish() {
	for _, t := range p.res.Turns {
		for _, c := range t.Calls {
			p.res.DurationMS += c.Result.DurationMS
		}
	}
	p.res.DurationMS = math.Round(p.res.DurationMS*1000) / 1000
	p.res.Total = total(p.res.scenario)
	switch {
	case p.res.Judged > 0:
	case p.res.Total == 0:
		p.res.Reason = "it asserts nothing"
	default:
		p.res.Reason = "nothing is judged: " + p.reasons()
	}
	if p.runner.opts.Strict {
		p.failUnjudged()
	}
	switch {
	case len(p.res.Failures) > 0:
		p.res.Status, p.res.Reason = Failed, ""
	case p.res.Reason != "":
		p.res.Status = Skipped
	default:
		p.res.Status = Passed
	}
}

// reasons returns the reasons why assertions were not judged, each once.
func (p *player) reasons() string {
	var all []string
	for _, u := range p.res.Unjudged {
		if text := u.Type + ": " + u.Reason; !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	const most = 3
	if len(all) > most {
		all = append(all[:most], "and more")
	}
	return strings.Join(all, "; ")
}

// failUnjudged turns everything that is not judged into a failure.
func (p *player) failUnjudged() {
	for _, u := range p.res.Unjudged {
		p.turn = u.Turn
		p.fail(Failure{What: u.Type, Message: "not judged: " + u.Reason, Field: u.Field})
	}
	if p.turn = 0; p.res.Total == 0 {
		p.fail(Failure{What: "scenario", Message: p.res.Reason})
	}
}

// total counts the checks of a scenario: one expectation for each call and each run of a
// scripted model, and the assertions.
func total(s *v1.Scenario) int {
	n := len(s.Spec.Assertions)
	for i := range s.Spec.Turns {
		t := &s.Spec.Turns[i]
		n += len(t.Calls) + len(t.Search) + len(t.Assertions)
		if len(t.Model) > 0 && !s.FromPromptKit() {
			n++
		}
	}
	return n
}

// playCalls makes the calls of a turn and compares the results.
func (p *player) playCalls(ctx context.Context, field string, calls []v1.ScenarioCall) {
	if len(calls) == 0 {
		return
	}
	asked, answers := make([]v1.Call, len(calls)), make([]*bool, len(calls))
	for i, c := range calls {
		asked[i], answers[i] = p.newCall(c.Tool, c.Args), c.Approve
	}
	done := p.execute(ctx, field, asked, answers)
	for i := range calls {
		p.call = i + 1
		p.res.Judged++
		p.expect(v1.Pointer(field, strconv.Itoa(i)), calls[i].Expect, &done[i].Result, calls[i].Tool)
	}
}

// playModel plays the replies of a PromptKit manifest's scripted model without the loop of a
// prompt. Only the validators of the prompt apply. It returns how many replies were used.
func (p *player) playModel(ctx context.Context, field, user string, replies []modelReply) int {
	turn := &p.res.Turns[len(p.res.Turns)-1]
	turn.user = user
	if v := p.validators.ValidateInput(user); v != nil {
		turn.validated(v)
		turn.say(v.Text)
		return 0
	}
	p.context += len(user)
	for i, reply := range replies {
		turn.usage.in += tokens(p.context)
		turn.usage.out += tokens(reply.size())
		p.context += reply.size()
		if v := p.validators.ValidateReply(reply.Text); v != nil {
			turn.validated(v)
			turn.say(v.Text)
			return i + 1
		}
		turn.say(reply.Text)
		turn.Parts = append(turn.Parts, reply.parts...)
		asked := make([]v1.Call, len(reply.ToolCalls))
		for i, c := range reply.ToolCalls {
			args := c.Args
			if text := ""; v1.JSONKind(args) == "string" && json.Unmarshal(args, &text) == nil {
				args = json.RawMessage(text) // a text is passed on unchanged, even if it is malformed JSON
			}
			asked[i] = p.newCall(c.Tool, args)
		}
		for _, c := range p.execute(ctx, v1.Pointer(field, strconv.Itoa(i), "tool_calls"), asked, make([]*bool, len(asked))) {
			p.context += len(c.resultText())
		}
	}
	return len(replies)
}

// say adds a reply of the model.
func (t *Turn) say(text string) {
	t.replies++
	if text != "" {
		t.Text = strings.TrimPrefix(t.Text+"\n"+text, "\n")
		t.said = append(t.said, text)
	}
}

// namespace returns the namespace of the scenario if tools of several namespaces have the name, and otherwise "" (all
// namespaces).
func (p *player) namespace(reg *registry.Registry, name string) string {
	var missing *v1.NotFoundError
	if _, err := reg.Lookup("", name); errors.As(err, &missing) && missing.Ambiguous {
		return p.res.scenario.Namespace()
	}
	return ""
}

func (p *player) newCall(tool string, args json.RawMessage) v1.Call {
	return v1.Call{Tool: tool, Namespace: p.namespace(p.reg, tool), Args: args, Session: scenarioName(p.res.scenario), Turn: strconv.Itoa(p.turn)}
}

// execute makes calls and adds them to the report. It makes mocked calls one after the other,
// so that it is certain which call gets the first response of a mock. Tools and policies
// notice no difference. field is the list of calls in the manifest, and answers are the
// decisions on calls that need approval.
func (p *player) execute(ctx context.Context, field string, asked []v1.Call, answers []*bool) []Call {
	turn := &p.res.Turns[len(p.res.Turns)-1]
	first := len(turn.Calls)
	if p.runner.opts.Live != nil && slices.ContainsFunc(answers, func(a *bool) bool { return a != nil }) {
		for i := range asked { // one by one, because each call has its own decision
			res, _ := p.reg.Execute(answered(ctx, answers[i]), asked[i])
			turn.Calls = append(turn.Calls, p.record(asked[i], res, ranLive(res)))
		}
		return turn.Calls[first:]
	}
	if p.runner.opts.Live != nil {
		for i, o := range p.reg.ExecuteAll(ctx, asked) {
			turn.Calls = append(turn.Calls, p.record(asked[i], o.Result, ranLive(o.Result)))
		}
		return turn.Calls[first:]
	}
	for i := range asked {
		p.call, p.field = first+i+1, v1.Pointer(field, strconv.Itoa(i))
		out, executed := p.mocked(answered(ctx, answers[i]), asked[i])
		res := out.Result
		if res.Error != nil && res.Error.Type == v1.TypeNotFound && p.ofUnstarted(asked[i].Tool) {
			res.Error.Message += ": no MCP server is started without --live: " + declareTool + ", and give it a mock"
		}
		turn.Calls = append(turn.Calls, p.record(asked[i], res, executed))
	}
	p.field = ""
	return turn.Calls[first:]
}

// mocked makes a call in virtual time, and reports whether it reached an executor.
func (p *player) mocked(ctx context.Context, call v1.Call) (out registry.Outcome, executed bool) {
	s := &slot{player: p}
	out.Result, out.Err = p.reg.Execute(context.WithValue(ctx, slotKey{}, s), call)
	out.Result.DurationMS = float64(s.took) / float64(time.Millisecond)
	return out, s.executed
}

// answered returns a context with the decision on calls that need approval; nil means none.
func answered(ctx context.Context, yes *bool) context.Context {
	if yes == nil {
		return ctx
	}
	return registry.WithAsker(ctx, func(context.Context, v1.PendingToolInfo) (v1.Decision, bool, error) {
		return v1.Decision{Approved: *yes, By: "the scenario", Simulated: true}, true, nil
	})
}

// ranLive reports whether a call reached its executor, by its error.
func ranLive(res v1.Result) bool {
	if res.Error == nil {
		return res.Status != v1.StatusPending
	}
	switch res.Error.Type {
	case v1.ArgsInvalid, v1.ManifestInvalid, v1.TypePolicyRefused, v1.TypeNotFound:
		return false
	}
	return true
}

// fail adds a failure at the current turn and call.
func (p *player) fail(f Failure) {
	f.Turn, f.Call = p.turn, p.call
	if f.Field == "" {
		f.Field = p.field
	}
	if f.Source.IsZero() {
		f.Source = p.source(f.Field)
	}
	p.res.Failures = append(p.res.Failures, f)
}

// invalid adds a violation of the manifest, which keeps the scenario from being played.
func (p *player) invalid(field, message string) {
	p.broken = true
	p.fail(Failure{What: "scenario", Message: v1.FieldPath(field) + ": " + message, Field: field})
}

func (p *player) warn(field, format string, args ...any) {
	p.res.Warnings = append(p.res.Warnings, v1.Violation{Path: field, Message: fmt.Sprintf(format, args...), Severity: v1.SeverityWarning, Source: p.source(field)})
}

// source returns the place of a field. PromptKit has another name for spec.assertions.
func (p *player) source(field string) v1.Source {
	const ours, theirs = "/spec/assertions", "/spec/conversation_assertions"
	if rest, ok := strings.CutPrefix(field, ours); ok && p.promptKit {
		if _, ok := p.res.scenario.Fields[ours]; !ok {
			field = theirs + rest
		}
	}
	return p.res.scenario.Field(field)
}

// warnUnread adds the warnings of the reader of a PromptKit manifest, except those about roles
// and types of assertions, which this package handles.
func (p *player) warnUnread() {
	for _, f := range p.res.scenario.Violations {
		if !strings.HasSuffix(f.Path, "/role") && !strings.HasSuffix(f.Path, "/type") {
			p.res.Warnings = append(p.res.Warnings, f)
		}
	}
}
