package console

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
)

// editor is a form for a schema, with the JSON beside it.
type editor struct {
	// Target is the action of the form: the last part of the page's address.
	Target   string
	Form     *field
	Raw      string
	RawError string
	Wrong    []*field       // fields with violations
	Left     []v1.Violation // violations without a field
	Checked  bool           // the arguments were validated, and are validated again as they change
	Problem  string
}

// tryPage is the form to call a tool, and the outcome.
type tryPage struct {
	toolRow
	editor
	Examples []v1.ToolExample
	Result   *resultView
	Plan     string
	Explain  *policy.Explanation
	Copies   []copyText
	Notice   string // why calls are refused or wait; empty for neither
}

// Actions of the form.
const (
	actionRun     = "run"
	actionPlan    = "plan"
	actionExplain = "explain"
	actionRaw     = "raw"  // fill the form from the JSON
	actionForm    = "form" // write the JSON from the form
)

func (c *Console) try(r *request) error {
	it, err := c.find(r)
	if err != nil {
		return err
	}
	p := tryPage{toolRow: rowOf(r.view, it), editor: editor{Target: "try"}, Examples: it.Tool().ExampleCalls()}
	s, err := readSchema(it.Tool().Spec.InputSchema)
	if err != nil {
		return err
	}
	var first any
	if n, err := strconv.Atoi(r.URL.Query().Get("example")); err == nil && n >= 0 && n < len(p.Examples) {
		first, _ = decode(p.Examples[n].Args)
	}
	if r.Method == http.MethodGet {
		p.Notice = c.notice(r, it)
	}
	status, err := p.answer(r, s, first, func(action string, args json.RawMessage) int {
		switch {
		case slices.Contains([]string{actionRun, actionPlan, actionExplain}, action):
			return c.carryOut(r, &p, it, action, args)
		case p.Checked:
			_, err := c.explain(r, v1.Call{Tool: it.FullName, Args: args, Session: r.id})
			p.invalid(err)
		}
		return http.StatusOK
	})
	if err == nil {
		c.show(r, status, "try", "Try "+p.Name, "tools", p)
	}
	return err
}

// answer draws the page of a form. A new form starts with the value first if that is an object. For a submitted form,
// answer reads the arguments and calls do with the action and the arguments. It returns the HTTP status of the page.
func (p *editor) answer(r *request, s schema, first any, do func(action string, args json.RawMessage) int) (int, error) {
	if err := r.form(); err != nil {
		return 0, err
	}
	if r.Method == http.MethodGet {
		if _, ok := first.(*object); !ok {
			first = begin(s)
		}
		p.fill(s, first, nil)
		return http.StatusOK, nil
	}
	action := r.PostForm.Get("action")
	value, ok := p.take(s, r, action)
	if !ok {
		return http.StatusUnprocessableEntity, nil
	}
	return do(action, json.RawMessage(jsonText(value))), nil
}

// notice returns why calls of a tool are refused or wait now; empty for neither.
func (c *Console) notice(r *request, it registry.Item) string {
	if !it.Ready {
		return "This tool is not ready: " + it.Reason()
	}
	ex, err := c.explain(r, v1.Call{Tool: it.FullName, Session: r.id})
	switch {
	case err != nil:
	case ex.Decision == v1.DecisionDeny:
		why := ""
		for _, v := range ex.Verdicts {
			if v.Policy == ex.Policy && v.Rule == ex.Rule {
				why = ": " + v.Message
			}
		}
		return "You may not call this tool now. Policy " + ex.Policy + ", rule " + ex.Rule + ", refuses the call" + why + "."
	case ex.Decision == v1.DecisionPending:
		return "Each call of this tool waits until a person approves it, by policy " + ex.Policy + "."
	}
	return ""
}

// take reads the submitted form and draws it again; it returns false for invalid JSON.
func (p *editor) take(s schema, r *request, action string) (any, bool) {
	p.Checked = r.PostForm.Has("checked")
	value, ok := p.read(s, r, action)
	if !ok {
		p.Form, p.Raw = drawForm(s, collect(s, r.PostForm, ""), r.PostForm), r.PostForm.Get("raw")
		return nil, false
	}
	posted := r.PostForm
	if action == actionRaw || r.PostForm.Get("source") == "raw" {
		posted = nil
	}
	p.fill(s, value, posted)
	return settled(value), true
}

// invalid assigns the violations of arguments to their fields; it returns false for any other error.
func (p *editor) invalid(err error) bool {
	var invalid *v1.ValidationError
	if !errors.As(err, &invalid) || invalid.Type != v1.ArgsInvalid {
		return false
	}
	p.Wrong, p.Left = place(p.Form, invalid.Violations)
	p.Checked = true
	return true
}

// read returns the arguments of a form: those of its fields, or the JSON beside them if that was edited
// last.
func (p *editor) read(s schema, r *request, action string) (any, bool) {
	if action == actionRaw || action != actionForm && r.PostForm.Get("source") == "raw" {
		text := strings.TrimSpace(r.PostForm.Get("raw"))
		if text == "" {
			return newObject(), true
		}
		value, err := decode([]byte(text))
		if err != nil {
			p.RawError = "This is not valid JSON: " + err.Error()
			return nil, false
		}
		return value, true
	}
	return collect(s, r.PostForm, action), true
}

func (p *editor) fill(s schema, value any, posted map[string][]string) {
	p.Form = drawForm(s, value, posted)
	p.Raw = indented([]byte(jsonText(settled(value))))
}

// carryOut makes, plans or explains the call.
func (c *Console) carryOut(r *request, p *tryPage, it registry.Item, action string, args json.RawMessage) int {
	call := v1.Call{Tool: it.FullName, Args: args, Session: r.id}
	var err error
	switch action {
	case actionPlan:
		var plan registry.Plan
		if plan, err = r.view.Plan(r.Context(), call); err == nil {
			raw, _ := jsontext.Marshal(c.viewPlan(r, plan))
			p.Plan = indented(raw)
		}
	case actionExplain:
		var ex policy.Explanation
		if ex, err = c.explain(r, call); err == nil {
			p.Explain = &ex
		}
	default:
		var res v1.Result
		res, err = r.view.Call(r.Context(), call)
		if refused := (*admission.RefusedError)(nil); errors.As(err, &refused) {
			break
		}
		p.Result = viewResult(res)
		p.Copies = copies(it.Tool(), it.FullName, args, &res, c.mcpAddress(r.Request), c.access.Required())
	}
	switch {
	case err == nil:
		return http.StatusOK
	case p.invalid(err):
		p.Result, p.Copies = nil, nil
		return http.StatusUnprocessableEntity
	case p.Result != nil:
		p.Result.Problem = err.Error()
	default:
		p.Problem = err.Error()
	}
	status, _ := explained(err)
	if status == http.StatusInternalServerError { // the tool failed, not the page
		status = http.StatusOK
	}
	return status
}

// mcpAddress returns the address of the MCP endpoint, as far as the request reveals it.
func (c *Console) mcpAddress(r *http.Request) string {
	if at := c.link(""); at != "" {
		return strings.TrimSuffix(strings.TrimSuffix(at, "/"), "/ui") + "/mcp"
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host + "/mcp"
}
