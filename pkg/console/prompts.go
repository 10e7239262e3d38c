package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/scenario"
	jsonschema "toolctl.dev/toolctl/pkg/schema"
)

// promptRow is a prompt in a list.
type promptRow struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Server is the MCP server of the prompt; empty for a Prompt manifest.
	Server      string           `json:"server,omitempty"`
	Title       string           `json:"title,omitempty"`
	Description string           `json:"description,omitempty"`
	Arguments   []promptArgument `json:"arguments,omitempty"`
	Ready       bool             `json:"ready"`
	Reasons     []v1.Violation   `json:"reasons,omitempty"`
	Source      v1.Source        `json:"source,omitzero"`
	Path        string           `json:"path"` // path below prompts/ of the page and of the API
}

type promptArgument struct {
	Name        string `json:"name"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Required    bool   `json:"required,omitempty"`
}

func rowOfPrompt(p *gateway.Prompt) promptRow {
	r := promptRow{Namespace: p.Owner.Namespace, Name: p.Name, Title: p.Title, Description: p.Description, Ready: p.Ready, Reasons: p.Reasons, Source: p.Source}
	r.Path = url.PathEscape(r.Namespace) + "/" + url.PathEscape(p.Owner.Name)
	if p.Owner.Kind != v1.KindPrompt {
		r.Server = p.Owner.Name
		r.Path += "/" + url.PathEscape(p.Name)
	}
	for _, a := range p.Arguments {
		r.Arguments = append(r.Arguments, promptArgument{a.Name, a.Title, a.Description, a.Required})
	}
	return r
}

func promptRows(view gateway.View) []promptRow {
	all := view.Prompts()
	rows := make([]promptRow, len(all))
	for i := range all {
		rows[i] = rowOfPrompt(&all[i])
	}
	return rows
}

func (c *Console) prompts(r *request) error {
	tests := c.tests(r)
	var covered []scenario.CoveredObject
	if tests.Coverage != nil {
		covered = slices.Concat(tests.Coverage.Tools, tests.Coverage.Policies)
	}
	c.show(r, http.StatusOK, "prompts", "Prompts and scenarios", "prompts", struct {
		listPage[promptRow]
		Tests     testView
		Scenarios listPage[scenarioView]
		Covered   listPage[scenario.CoveredObject]
	}{
		listOf(r.Request, "", promptRows(r.view), []column[promptRow]{
			{name: "name", title: "Name", text: func(p *promptRow) string { return p.Namespace + "/" + p.Name }},
			{name: "description", title: "Description", class: "wide", text: func(p *promptRow) string { return strings.TrimSpace(p.Title + " " + p.Description) }},
			{name: "variables", title: "Variables", class: "num", number: func(p *promptRow) float64 { return float64(len(p.Arguments)) }},
			{name: "server", title: "Server", text: func(p *promptRow) string { return p.Server }},
			{name: "state", title: "State", chosen: true, choices: []string{stateReady, stateNotReady}, text: func(p *promptRow) string {
				if p.Ready {
					return stateReady
				}
				return stateNotReady
			}},
		}),
		tests,
		listOf(r.Request, "scenarios", tests.Scenarios, []column[scenarioView]{
			{name: "name", title: "Scenario", text: func(s *scenarioView) string { return s.Name }},
			{name: "status", title: "Status", chosen: true, text: func(s *scenarioView) string { return s.Status }},
			{name: "checks", title: "Checks", number: func(s *scenarioView) float64 { return float64(s.Judged) }},
			{name: "took", title: "Took", class: "num", number: func(s *scenarioView) float64 { return s.DurationMS }},
			{name: "source", title: "Source", class: "wide", text: func(s *scenarioView) string {
				if s.Source.IsZero() {
					return ""
				}
				return s.Source.String()
			}},
		}),
		listOf(r.Request, "coverage", covered, []column[scenario.CoveredObject]{
			{name: "name", title: "Name", text: func(o *scenario.CoveredObject) string { return o.Namespace + "/" + o.Name }},
			{name: "covered", title: "Covered", number: func(o *scenario.CoveredObject) float64 { return o.Percent }},
			{name: "calls", title: "Calls", class: "num", number: func(o *scenario.CoveredObject) float64 { return float64(o.Calls) }},
			{title: "Not covered"},
		}),
	})
	return nil
}

// findPrompt returns the prompt that a request names.
func (r *request) findPrompt() (gateway.Prompt, error) {
	owner := v1.Key{Kind: v1.KindPrompt, Namespace: r.PathValue("namespace"), Name: r.PathValue("owner")}
	name := owner.Name
	if offered := r.PathValue("name"); offered != "" {
		owner.Kind, name = v1.KindMCPServer, offered
	}
	all := r.view.Prompts()
	i := slices.IndexFunc(all, func(p gateway.Prompt) bool { return p.Owner == owner && p.Name == name })
	if i < 0 {
		return gateway.Prompt{}, &v1.NotFoundError{Kind: v1.KindPrompt, Name: owner.Namespace + "/" + name}
	}
	return all[i], nil
}

// variables returns the schema for the form of a prompt: its input schema, extended by the arguments that are
// missing there.
func variables(p *gateway.Prompt) (schema, error) {
	root := newObject()
	if p.Input != nil {
		v, err := decode(p.Input)
		if err != nil {
			return schema{}, err
		}
		root = v.(*object)
	}
	own, _ := root.get("properties").(*object)
	properties, required := newObject(), []any{}
	for _, a := range p.Arguments {
		if own.has(a.Name) {
			continue
		}
		one := newObject()
		one.Set("type", "string")
		if a.Title != a.Name {
			one.Set("title", a.Title)
		}
		one.Set("description", a.Description)
		properties.Set(a.Name, one)
		if a.Required {
			required = append(required, a.Name)
		}
	}
	more := newObject()
	more.Set("type", "object")
	more.Set("properties", properties)
	more.Set("required", required)
	if !root.has("additionalProperties") { // a form offers only the variables in use
		more.Set("additionalProperties", false)
	}
	whole := jsonschema.Join(root, more)
	return schema{doc: jsonschema.NewDocument(whole)}.sub(whole), nil
}

// promptPage is the form to render a prompt, and the outcome.
type promptPage struct {
	promptRow
	editor
	Messages []messageView
	Rendered bool
}

// messageView is a message of a prompt as it is shown.
type messageView struct {
	Role string
	Part partView
}

const actionRender = "run"

func (c *Console) prompt(r *request) error {
	found, err := r.findPrompt()
	if err != nil {
		return err
	}
	s, err := variables(&found)
	if err != nil {
		return err
	}
	p := promptPage{promptRow: rowOfPrompt(&found), editor: editor{Target: "./" + url.PathEscape(found.Name)}}
	status, err := p.answer(r, s, nil, func(action string, args json.RawMessage) int {
		if action != actionRender && (!p.Checked || found.Owner.Kind != v1.KindPrompt) { // query a server only once
			return http.StatusOK
		}
		messages, err := r.view.RenderPrompt(r.Context(), found, args)
		switch {
		case action != actionRender:
			p.invalid(err)
		case err == nil:
			p.Rendered = true
			for _, m := range messages {
				p.Messages = append(p.Messages, messageView{m.Role, viewPart(m.Content)})
			}
		case p.invalid(err):
			return http.StatusUnprocessableEntity
		default:
			p.Problem = err.Error()
		}
		return http.StatusOK
	})
	if err == nil {
		c.show(r, status, "prompt", "Prompt "+found.Name, "prompts", p)
	}
	return err
}

func (c *Console) apiPrompts(r *request) (any, error) { return items(promptRows(r.view)), nil }

// apiRender renders a prompt.
func (c *Console) apiRender(r *request) (any, error) {
	found, err := r.findPrompt()
	if err != nil {
		return nil, err
	}
	var in struct {
		Args json.RawMessage `json:"args"`
	}
	if err := r.body(&in); err != nil {
		return nil, err
	}
	messages, err := r.view.RenderPrompt(r.Context(), found, in.Args)
	if err != nil {
		return nil, err
	}
	return renderAnswer{messages}, nil
}

// renderAnswer is a rendered prompt.
type renderAnswer struct {
	Messages []mcp.PromptMessage `json:"messages"`
}
