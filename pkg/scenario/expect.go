package scenario

import (
	"encoding/json"
	"fmt"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/schema"
	"toolctl.dev/toolctl/pkg/validate"
)

// expect compares the result of a call with the expectation of the scenario.
func (p *player) expect(field string, want *v1.Expect, res *v1.Result, tool string) {
	e := &expecting{player: p, field: field + "/expect", res: res, tool: tool}
	if want == nil {
		e.field = field
		if res.Status != v1.StatusComplete {
			e.status(v1.StatusComplete, nil)
		}
		return
	}
	if isEmptyExpect(want) {
		e.fill()
		return
	}
	status := want.Status
	if status == "" && want.Error == nil {
		decision := ""
		if want.Policy != nil {
			decision = want.Policy.Decision
		}
		switch decision {
		case v1.DecisionDeny:
		case v1.DecisionPending:
			status = v1.StatusPending
		default:
			status = v1.StatusComplete
		}
	}
	if status != "" && res.Status != status {
		e.status(status, want)
		return // other differences would only follow from this one
	}
	if len(want.Result) > 0 {
		e.result(want.Result)
	}
	if want.Error != nil {
		e.error(want.Error)
	}
	if want.Policy != nil {
		e.policy(want.Policy)
	}
	if limit := want.DurationMS; limit > 0 && res.DurationMS >= float64(limit) {
		e.differ("duration_ms", "/duration_ms", "", fmt.Sprintf("under %d", limit), fmt.Sprint(res.DurationMS), nil)
	}
}

func isEmptyExpect(w *v1.Expect) bool {
	return w.Status == "" && len(w.Result) == 0 && w.Error == nil && w.Policy == nil && w.DurationMS == 0
}

// expecting compares one result.
type expecting struct {
	player *player
	field  string // JSON pointer of the expectation
	res    *v1.Result
	tool   string
}

// differ adds a difference. --update writes value at sub, unless it is nil.
func (e *expecting) differ(what, sub, path, expected, got string, value any) {
	f := Failure{Tool: e.tool, What: what, Path: path, Expected: expected, Got: got, Field: e.field + sub}
	if value != nil {
		f.update = &Update{Field: f.Field, Value: jsontext.Of(value)}
	}
	e.player.fail(f)
}

// status adds a difference in the status, with the error of the call.
func (e *expecting) status(expected string, want *v1.Expect) {
	got := e.res.Status
	if err := e.res.Error; err != nil {
		got += ": " + err.Type + ": " + err.Message
	}
	if e.res.Pending != nil {
		got += ": " + e.res.Pending.Message
	}
	f := Failure{Tool: e.tool, What: "status", Expected: expected, Got: got, Field: e.field}
	if want != nil && want.Status != "" {
		f.Field += "/status"
	}
	root := e.field
	if want == nil {
		root += "/expect"
	}
	f.update = &Update{Field: root, Value: e.observed()}
	e.player.fail(f)
}

// fill reports an empty expectation, which --update fills in.
func (e *expecting) fill() {
	if e.res.Status != v1.StatusComplete {
		e.status(v1.StatusComplete, &v1.Expect{})
		return
	}
	e.player.fail(Failure{Tool: e.tool, What: "expect", Field: e.field, Message: "the expectation is empty: write one, or let --update fill in what was observed",
		update: &Update{Field: e.field, Value: e.observed()}})
}

// observed returns an expectation that the result meets.
func (e *expecting) observed() json.RawMessage {
	out := v1.Expect{Status: e.res.Status}
	if e.res.Error != nil {
		out.Error = &v1.ExpectError{Type: e.res.Error.Type, Path: e.res.Error.Path}
	} else {
		out.Result = e.res.Content
	}
	return jsontext.Of(out)
}

func (e *expecting) result(raw json.RawMessage) {
	want, err := validate.Decode(raw)
	if err != nil {
		e.differ("result", "/result", "", "JSON", err.Error(), nil)
		return
	}
	var got any = absentValue{}
	if len(e.res.Content) > 0 {
		if got, err = validate.Decode(e.res.Content); err != nil {
			e.differ("result", "/result", "$", show(want), "a result that is not JSON: "+err.Error(), nil)
			return
		}
	}
	for _, d := range compare(want, got) {
		f := Failure{Tool: e.tool, What: "result", Path: d.Path, Expected: d.Expected, Got: d.Got, Field: e.field + "/result" + d.field}
		f.update = d.update(e.field+"/result", want)
		e.player.fail(f)
	}
}

// update returns the change that resolves a difference. It replaces the value, or the whole
// condition that does not hold.
func (d *Difference) update(root string, want any) *Update {
	field := d.field
	if i := strings.LastIndexByte(field, '/'); i >= 0 {
		outer, _, _ := schema.At(want, field[:i])
		if parent, ok := outer.(map[string]any); ok && isCondition(parent) {
			field = field[:i]
		}
	}
	u := &Update{Field: root + field}
	if !d.absent {
		u.Value = jsontext.Of(d.observed)
	}
	return u
}

func (e *expecting) error(want *v1.ExpectError) {
	got := e.res.Error
	if got == nil {
		expected := "an error"
		if want.Type != "" {
			expected += " of type " + want.Type
		}
		e.differ("error", "/error", "", expected, "none; the status is "+e.res.Status, nil)
		return
	}
	if want.Type != "" && want.Type != got.Type {
		e.differ("error.type", "/error/type", "", want.Type, got.Type+": "+got.Message, got.Type)
	}
	if want.Path != "" && want.Path != got.Path {
		e.differ("error.path", "/error/path", "", want.Path, fmt.Sprintf("%q", got.Path), got.Path)
	}
	if !strings.Contains(got.Message, want.Message) {
		e.differ("error.message", "/error/message", "", "a message that contains "+show(want.Message), show(got.Message), got.Message)
	}
}

func (e *expecting) policy(want *v1.ExpectPolicy) {
	got := v1.PolicyDecision{Decision: v1.DecisionAllow} // used if no policy governs the tool
	if e.res.Policy != nil {
		got = *e.res.Policy
	}
	said := got.Decision
	if got.Rule != "" {
		said += " by rule " + got.Rule + " of policy " + got.Policy
	}
	if want.Decision != "" && want.Decision != got.Decision {
		e.differ("policy.decision", "/policy/decision", "", want.Decision, said, got.Decision)
	}
	if want.Rule != "" && want.Rule != got.Rule {
		var value any
		if got.Rule != "" {
			value = got.Rule
		}
		e.differ("policy.rule", "/policy/rule", "", want.Rule, said, value)
	}
}
