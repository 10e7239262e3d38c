package registry

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/parallel"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/validate"
)

// snapshot is one whole set of objects. Nothing in it changes after build,
// except that a tool remembers what a check found.
type snapshot struct {
	given   []v1.Object // in the order of compareObjects
	objects []v1.Object // the same, with the Tool of each GoTool in its place
	byKey   map[v1.Key]*entry
	entries []*entry // one for each of objects
	names   map[string][]*tool
	policy  *policy.Set
	bare    bareNames
	// discovered is what servers offer; see discovered.go.
	discovered map[v1.Key]Discovery
}

// entry is one object and whether it can be used.
type entry struct {
	object v1.Object
	tool   *tool    // nil for other kinds
	own    Executor // of a tool that is made in Go; nil for what a manifest declares
	// servers knows the variables of an MCPServer; nil for other kinds, or when nobody does.
	servers Environment
	// violations is why the object is not ready, as New found it.
	violations []v1.Violation
	// closed names the broken policy that might have refused the calls of a tool.
	closed *v1.Violation
	// checked is what a later Check found.
	checked atomic.Pointer[[]v1.Violation]
	// server is the MCPServer that offers the tool; zero for what a manifest declares.
	server v1.Key
	// unready makes the object not ready without refusing calls; refused refuses them.
	unready, refused error
}

// tool is a Tool that is ready to be called.
type tool struct {
	*entry
	spec     *v1.Tool
	chain    *policy.Chain
	executor Executor
	redact   []string         // spec.redact and spec.http.redact
	in, out  *validate.Schema // out is nil when every result is accepted

	static atomic.Pointer[staticCheck] // nil until a static mock result was checked
}

func (r *Registry) build(objects []v1.Object, discovered map[v1.Key]Discovery) *snapshot {
	s := &snapshot{
		given:   slices.Clone(objects),
		byKey:   make(map[v1.Key]*entry, len(objects)),
		entries: make([]*entry, 0, len(objects)),
		names:   make(map[string][]*tool, len(objects)),
	}
	slices.SortStableFunc(s.given, compareObjects)
	var policies []*v1.ToolPolicy
	brokenPolicies := map[string]v1.Object{} // by namespace
	s.given = slices.DeleteFunc(s.given, func(o v1.Object) bool {
		key := o.Head().Key()
		if first, twice := s.byKey[key]; twice {
			if !hasError(first.violations) {
				first.violations = append(slices.Clip(first.violations), v1.Violation{
					Path: "/metadata/name", Expected: "a name of its own", Got: key.Name,
					Message: fmt.Sprintf("%s is declared twice: at %s and at %s", key, place(first.object), place(o)), Source: first.object.Head().Source,
				})
			}
			return true
		}
		e := &entry{object: o, violations: allViolations(o)}
		if g, ok := o.(*GoTool); ok {
			e.object, e.own = &g.Tool, g.executor
		}
		if !hasError(e.violations) {
			e.violations = append(slices.Clip(e.violations), r.checkExtensions(e.object)...)
		}
		if key.Kind == v1.KindMCPServer {
			e.servers, _ = r.executors[v1.ModeMCP].(Environment)
		}
		s.byKey[key] = e
		s.entries = append(s.entries, e)
		if p, ok := o.(*v1.ToolPolicy); ok {
			if hasError(e.violations) {
				brokenPolicies[key.Namespace] = o
				if key.Name == "" { // not even its namespace could be read
					brokenPolicies[""] = o
				}
			} else {
				policies = append(policies, p)
			}
		}
		return false
	})
	s.objects = declared(s.given)
	s.policy, s.bare = policy.Compile(policies, r.opts.Rules...), bareNames{}
	s.bare.add(s.objects, discovered)
	parallel.Each(len(s.entries), func(i int) {
		if t, ok := s.entries[i].object.(*v1.Tool); ok {
			broken := brokenPolicies[t.Namespace()]
			if broken == nil {
				broken = brokenPolicies[""]
			}
			s.entries[i].tool = r.prepare(s, s.entries[i], t, broken)
		}
	})
	for _, e := range s.entries {
		if e.tool != nil {
			s.index(e.tool)
		}
	}
	if len(discovered) > 0 {
		r.addDiscovered(s, discovered, brokenPolicies)
	}
	return s
}

// prepare readies a tool. It compiles no schema: that happens on first use.
func (r *Registry) prepare(s *snapshot, e *entry, t *v1.Tool, brokenPolicy v1.Object) *tool {
	t = r.described(e, t)
	p := &tool{entry: e, spec: t, redact: t.RedactRules()}
	draft := validate.Draft2020
	if t.FromPromptKit() {
		draft = validate.Draft7
	}
	p.in = r.schemas.Schema(t.Spec.InputSchema, draft)
	if len(t.Spec.OutputSchema) > 0 {
		p.out = r.schemas.Schema(t.Spec.OutputSchema, draft)
	}
	if p.executor = e.own; p.executor == nil {
		p.executor = r.executors[t.ExecutorName()]
	}
	if hasError(e.violations) {
		return p
	}
	notReady := func(path, format string, args ...any) {
		e.violations = append(slices.Clip(e.violations), v1.Violation{Path: path, Message: fmt.Sprintf(format, args...), Source: t.Field(path)})
	}
	if brokenPolicy != nil {
		e.closed = &v1.Violation{Expected: "a policy that can be read", Got: "a broken one", Message: fmt.Sprintf("policy %q is broken and might have refused the call: fix %s", brokenPolicy.Head().Metadata.Name, place(brokenPolicy))}
	}
	p.chain = s.policy.For(s.subject(e, t))
	if t.AsksConsent() {
		p.chain = policy.NewOverlay(t.Head(), v1.ToolPolicySpec{RequireApproval: []string{"*"}}).Over(p.chain)
	}
	switch {
	case p.executor == nil:
		if unknown, ok := t.UnknownMode(r.published()); ok && !t.FromPromptKit() {
			notReady("/spec/mode", "%s", unknown.Message)
		} else {
			notReady("/spec/mode", "no executor for mode %q", t.Mode())
		}
	case t.MissingBlock() != "":
		notReady("/spec/mode", "mode %s needs spec.%s", t.Mode(), t.MissingBlock())
	case t.Mode() == v1.ModeMCP:
		if server := (v1.Key{Kind: v1.KindMCPServer, Namespace: t.Namespace(), Name: t.Spec.MCP.Server}); s.byKey[server] == nil {
			notReady("/spec/mcp/server", "no MCPServer %q in namespace %q", server.Name, server.Namespace)
		}
	}
	return p
}

// goTool reports whether the tool is made in Go.
func (t *tool) goTool() bool { return t.own != nil }

// index enters every name by which a tool can be found, besides its key. The
// names of one rank are kept apart by a prefix that no name can have.
func (s *snapshot) index(t *tool) {
	name := t.spec.Metadata.Name
	s.names[name] = append(s.names[name], t)
	if m := t.spec.Spec.MCP; m != nil && t.spec.Mode() == v1.ModeMCP {
		remote := t.spec.RemoteName()
		for _, alias := range []string{rankWire + m.Server + "__" + remote, rankDotted + m.Server + "." + remote, rankMCP + v1.MCPPrefix + m.Server + "__" + remote, rankBare + remote} {
			s.names[alias] = append(s.names[alias], t)
		}
	}
}

// Ranks of a name, in the order in which a lookup asks them.
const (
	rankWire   = "\x01"
	rankDotted = "\x02"
	rankMCP    = "\x03"
	rankBare   = "\x04"
)

func compareObjects(a, b v1.Object) int {
	ka, kb := a.Head().Key(), b.Head().Key()
	if ka.Kind != kb.Kind {
		kinds := v1.Kinds()
		return cmp.Compare(slices.Index(kinds, ka.Kind), slices.Index(kinds, kb.Kind))
	}
	return cmp.Or(strings.Compare(ka.Namespace, kb.Namespace), strings.Compare(ka.Name, kb.Name))
}

func place(o v1.Object) string {
	if s := o.Head().Source; !s.IsZero() {
		return s.String()
	}
	return o.Head().Key().String()
}

// reasons returns why the object is not ready; nil when it is.
func (e *entry) reasons() []v1.Violation {
	var bad []v1.Violation
	for _, f := range e.violations {
		if !f.IsWarning() {
			bad = append(bad, f)
		}
	}
	if e.closed != nil && bad == nil {
		bad = append(bad, *e.closed)
	}
	if checked := e.checked.Load(); checked != nil && bad == nil {
		for _, f := range *checked {
			if !f.IsWarning() {
				bad = append(bad, f)
			}
		}
	}
	return bad
}
