package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/wirename"
	"toolctl.dev/toolctl/pkg/prompt"
	"toolctl.dev/toolctl/pkg/registry"
)

// offer is the set of tools that the model may call at one hop.
type offer struct {
	specs  []ToolSpec // the heaviest first, then by name; includes the submit tool
	tools  []offered  // the tools of the prompt
	choice string
	submit string // name of the tool that takes the answer; may be ""
}

// offered is a tool or a prompt that the model may call.
type offered struct {
	wire string
	full string
	item registry.Item
	sub  *prompt.Prompt // set for a prompt
}

func (o *offered) name() string { return o.item.Object.Head().Metadata.Name }

// weight returns the preference of a tool; prompts have no preference.
func (o *offered) weight() int {
	if t := o.item.Tool(); t != nil {
		return t.Weight()
	}
	return 0
}

// candidate is a tool or prompt that spec.tools names. Hidden ones are not offered but keep
// their wire names.
type candidate struct {
	offered
	hidden bool
}

// offer reads the registry again, because tools come and go during a run.
func (l *loop) offer() (*offer, error) {
	all, err := l.candidates()
	if err != nil {
		return nil, err
	}
	ids := make([]wirename.ID, len(all))
	for i := range all {
		ids[i] = wirename.ID{Namespace: all[i].item.Object.Head().Namespace(), Name: all[i].name(), Full: all[i].full}
	}
	o := &offer{}
	requires := l.spec.Policy != nil && l.spec.Policy.ToolChoice == v1.ToolChoiceRequired && l.spec.Policy.Mode != v1.PolicyAudit
	for i, wire := range wirename.Names(ids) {
		if wire == "" || all[i].hidden {
			continue
		}
		blocked, _ := all[i].item.Under(l.overlay, l.opts.Principal)
		_, wants := all[i].item.Under(nil, l.opts.Principal) // tool_choice of the callers does not apply here
		if blocked != nil {
			continue
		}
		requires = requires || wants
		if wire == v1.SubmitOutput { // reserved for the answer
			l.warn("%s %q is not offered: the name %s is reserved", strings.ToLower(all[i].item.Object.Head().Kind), all[i].full, wire)
			continue
		}
		all[i].wire = wire
		o.tools = append(o.tools, all[i].offered)
	}
	slices.SortFunc(o.tools, func(a, b offered) int {
		return cmp.Or(b.weight()-a.weight(), strings.Compare(a.wire, b.wire))
	})
	if len(o.tools) > l.opts.MaxTools {
		l.warn("%d tools match the prompt, and the model is offered the first %d by preference.weight and name", len(o.tools), l.opts.MaxTools)
		o.tools = o.tools[:l.opts.MaxTools]
	}
	o.specs = make([]ToolSpec, 0, len(o.tools)+1)
	for i := range o.tools {
		o.specs = append(o.specs, o.tools[i].spec())
	}
	switch {
	case len(o.tools) == 0:
		if len(all) > 0 {
			o.choice = v1.ToolChoiceNone
		}
	case requires && !l.Called:
		o.choice = v1.ToolChoiceRequired
	}
	l.offerSubmit(o)
	return o, nil
}

// candidates finds the tools and prompts of spec.tools. It looks for a name in the namespace of the prompt first, and
// then in all others. A pattern matches tools in the namespace of the prompt, or in the namespace before its slash.
// Missing names are reported once.
func (l *loop) candidates() ([]candidate, error) {
	own := l.prompt.Object().Namespace()
	all := make([]candidate, 0, len(l.spec.Tools))
	seen := make(map[v1.Key]string, len(l.spec.Tools))
	add := func(it registry.Item) {
		key, full := it.Object.Head().Key(), it.FullName
		full = cmp.Or(full, key.Namespace+"/"+key.Name)
		if seen[key] == full || l.opts.Only != nil && !l.opts.Only(it.Object) {
			return
		}
		seen[key] = full
		c := candidate{offered: offered{full: full, item: it}, hidden: !it.Ready || it.Tool() != nil && !it.Tool().Offered()}
		if p, ok := it.Object.(*v1.Prompt); ok && it.Ready {
			sub, err := l.shared.compile(p)
			if c.sub = sub; err != nil {
				c.hidden = true
				l.warn("prompt %q is not offered: %v", full, err)
			}
		}
		if !it.Ready {
			l.warn("%s %q is not offered: %s", strings.ToLower(key.Kind), full, it.Reason())
		}
		all = append(all, c)
	}
	for _, name := range l.spec.Tools {
		if strings.HasSuffix(name, "*") {
			namespace, pattern, ok := strings.Cut(name, "/")
			if !ok {
				namespace, pattern = own, name
			}
			page, err := l.reg.List(registry.Query{Kind: v1.KindTool, Namespace: namespace, Name: pattern})
			if err != nil {
				return nil, err
			}
			if page.Total == 0 {
				l.warn("no tool in namespace %q matches %q", name, namespace)
			}
			for _, it := range page.Items {
				add(it)
			}
			continue
		}
		it, err := l.named(own, name)
		if err != nil {
			l.warn("%v", err)
			continue
		}
		add(it)
	}
	if len(all) == 0 && len(l.spec.Tools) > 0 && l.opts.Only != nil {
		l.warn("none of the prompt's tools is selected: the model gets no tools")
	}
	return all, nil
}

// named finds a tool or, if no tool has the name, a prompt.
func (l *loop) named(own, name string) (registry.Item, error) {
	var first error
	for _, kind := range []string{v1.KindTool, v1.KindPrompt} {
		for _, namespace := range []string{own, ""} {
			if strings.Contains(name, "/") && namespace != "" {
				continue
			}
			it, err := l.reg.Get(kind, namespace, name)
			if err == nil {
				return it, nil
			}
			var missing *v1.NotFoundError
			if !errors.As(err, &missing) || missing.Ambiguous {
				return registry.Item{}, err
			}
			if namespace == "" && first == nil {
				first = err // the error of the search in all namespaces
			}
		}
	}
	return registry.Item{}, first
}

// warn adds a warning, unless the list already has it.
func (l *loop) warn(format string, args ...any) {
	const most = 100
	text := fmt.Sprintf(format, args...)
	if len(l.res.Warnings) < most && !slices.Contains(l.res.Warnings, text) {
		l.res.Warnings = append(l.res.Warnings, text)
	}
}

// spec returns the form that the model sees.
func (o *offered) spec() ToolSpec {
	if o.sub != nil {
		p := o.sub.Object()
		description := p.Spec.Description
		if description == "" {
			description = p.Spec.Title
		}
		return ToolSpec{Name: o.wire, Description: description, Parameters: parameters(o.sub)}
	}
	t := o.item.Tool()
	return ToolSpec{Name: o.wire, Description: t.Spec.Description, Parameters: t.Spec.InputSchema}
}

// find returns the tool that the model means. The name is its wire name, or another name that matches only one tool,
// because small models often write such names.
func (o *offer) find(name string) *offered {
	for i := range o.tools {
		if o.tools[i].wire == name {
			return &o.tools[i]
		}
	}
	var found *offered
	local := strings.TrimPrefix(name, "functions.")
	for i := range o.tools {
		t := &o.tools[i]
		if t.full != name && t.name() != name && t.wire != local && !t.remote(name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = t
	}
	return found
}

// remote reports whether name is a usual name for the tool of an MCP server: mcp__server__tool, server__tool or
// server.tool.
func (o *offered) remote(name string) bool {
	t := o.item.Tool()
	if t == nil || t.Spec.MCP == nil {
		return false
	}
	tool := t.RemoteName()
	full := t.Spec.MCP.Server + "__" + tool
	return name == full || name == v1.MCPPrefix+full || name == t.Spec.MCP.Server+"."+tool
}

func names(specs []ToolSpec) []string {
	if len(specs) == 0 {
		return nil
	}
	all := make([]string, len(specs))
	for i := range specs {
		all[i] = specs[i].Name
	}
	return all
}
