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

// snapshot is one whole set of objects. It does not change after build, except that entries cache the results of
// checks.
type snapshot struct {
	contents
	objects []v1.Object // the given objects, each key once, with the Tool of each GoTool in its place
	byKey   map[v1.Key]*entry
	entries []*entry // one for each of objects
	names   map[string][]*tool
	tools   map[string]int    // number of tools by namespace
	rules   map[string]*rules // by namespace
}

// contents are the inputs of a snapshot.
type contents struct {
	given []v1.Object // in the order of compareObjects, once there is a snapshot
	// discovered is what servers offer; see discovered.go.
	discovered map[v1.Key]*Discovery
	// descriptions replace the descriptions of tools.
	descriptions map[v1.Key]string
}

// entry is one object with its state.
type entry struct {
	origin
	object v1.Object
	tool   *tool    // nil for other kinds
	own    Executor // of a tool that is made in Go; nil for declared tools
	// servers checks the variables of an MCPServer; nil for other kinds, or without such an executor.
	servers Environment
	// violations are the reasons found by New why the object is not ready.
	violations []v1.Violation
	// closed is the violation of the broken policy that might have refused the calls of a tool.
	closed *v1.Violation
	// checked are the violations that a later Check found.
	checked atomic.Pointer[[]v1.Violation]
	// unready makes the object not ready without refusing calls; refused refuses them.
	unready, refused error
}

// origin holds all inputs of an entry. An entry of the previous snapshot is reused if its origin is equal, so that the
// cost of an update depends on the number of changed objects only.
type origin struct {
	given v1.Object
	twice v1.Object // another object with the same key; nil if there is none
	// server is the MCPServer that offers the tool; it is zero for declared objects.
	server v1.Key
	// The other fields apply to tools; an MCPServer has a discovery too.
	described   bool // in other words than the manifest's
	description string
	rules       *rules
	calls       *v1.MCPServer // nil if the tool calls no server or the server does not exist
	bare        bool          // the bare name of the server's tool finds this tool
	discovery   *Discovery
}

// rules govern the tools of a namespace.
type rules struct {
	policies []*v1.ToolPolicy
	set      *policy.Set
	broken   v1.Object // a policy that cannot be read; nil if all can
}

// tool is a Tool that is ready to be called.
type tool struct {
	*entry
	spec     *v1.Tool
	chain    *policy.Chain
	executor Executor
	redact   []string         // from spec.redact and spec.http.redact
	in, out  *validate.Schema // out is nil when every result is accepted

	static atomic.Pointer[staticCheck] // nil until a static mock result was checked
}

// build builds the snapshot for contents. It reuses unchanged entries and rules of the old snapshot.
func (r *Registry) build(c contents, old *snapshot) *snapshot {
	s := &snapshot{
		contents: contents{slices.Clone(c.given), map[v1.Key]*Discovery{}, c.descriptions},
		byKey:    make(map[v1.Key]*entry, len(c.given)),
		entries:  make([]*entry, 0, len(c.given)),
		names:    make(map[string][]*tool, len(c.given)),
		tools:    map[string]int{},
		rules:    map[string]*rules{"": {}}, // for the namespaces without policies
	}
	b := &builder{Registry: r, snapshot: s, old: old, twice: map[v1.Key]v1.Object{}, servers: map[v1.Key]*v1.MCPServer{}}
	if !slices.IsSortedFunc(s.given, compareObjects) {
		slices.SortStableFunc(s.given, compareObjects)
	}
	once := slices.CompactFunc(slices.Clone(s.given), func(first, o v1.Object) bool {
		key := o.Head().Key()
		twice := first.Head().Key() == key
		if twice && b.twice[key] == nil {
			b.twice[key] = o
		}
		return twice
	})
	s.objects = declared(once)
	for _, o := range once {
		switch o := o.(type) {
		case *v1.ToolPolicy:
			b.govern(o)
		case *v1.MCPServer:
			key := o.Key()
			b.servers[key] = o
			if d := c.discovered[key]; d != nil {
				s.discovered[key] = d
			}
		}
	}
	b.compileRules()
	for i, o := range once {
		e := b.entry(o, s.objects[i], v1.Key{})
		s.byKey[o.Head().Key()] = e
		s.entries = append(s.entries, e)
	}
	b.offered()
	parallel.Each(len(b.made), func(i int) { r.prepare(b.made[i]) })
	for _, e := range s.entries {
		if e.tool != nil {
			s.index(e.tool)
		}
	}
	return s
}

// builder builds a snapshot next to the old one.
type builder struct {
	*Registry
	*snapshot
	old     *snapshot
	twice   map[v1.Key]v1.Object // the second object with the same key
	servers map[v1.Key]*v1.MCPServer
	bare    bareNames // nil until the first tool that calls a server
	made    []*entry  // new entries to prepare
}

// govern adds a policy to the rules of its namespace.
func (b *builder) govern(p *v1.ToolPolicy) {
	key := p.Key()
	of := b.rules[key.Namespace]
	if of == nil {
		of = &rules{}
		b.rules[key.Namespace] = of
	}
	if !hasError(b.faults(p)) {
		of.policies = append(of.policies, p)
		return
	}
	of.broken = p
	if key.Name == "" { // even its namespace could not be read
		b.rules[""].broken = p
	}
}

// compileRules compiles the rules of each namespace whose policies changed.
func (b *builder) compileRules() {
	for namespace, of := range b.rules {
		if of.broken == nil {
			of.broken = b.rules[""].broken
		}
		if old := b.old.rules[namespace]; old != nil && old.broken == of.broken && slices.Equal(old.policies, of.policies) {
			b.rules[namespace] = old
			continue
		}
		of.set = policy.Compile(of.policies, b.opts.Rules...)
	}
}

// of returns the rules of a namespace.
func (s *snapshot) of(namespace string) *rules {
	if of := s.rules[namespace]; of != nil {
		return of
	}
	return s.rules[""]
}

// faults returns the violations that an object has by itself.
func (r *Registry) faults(o v1.Object) []v1.Violation {
	all := allViolations(o)
	if !hasError(all) {
		all = append(slices.Clip(all), r.checkExtensions(o)...)
	}
	return all
}

// entry returns the entry of an object: the old one if its origin is equal, else a new one. For a [GoTool], object is
// its Tool. The server is the MCPServer that offers the object.
func (b *builder) entry(given, object v1.Object, server v1.Key) *entry {
	key := object.Head().Key()
	from := origin{given: given, server: server}
	if server == (v1.Key{}) {
		from.twice = b.twice[key]
	}
	switch o := object.(type) {
	case *v1.Tool:
		from.rules = b.of(key.Namespace)
		if callsServer(o) {
			called := v1.Key{Kind: v1.KindMCPServer, Namespace: key.Namespace, Name: o.Spec.MCP.Server}
			from.calls = b.servers[called]
			if b.bare == nil {
				b.bare = newBareNames(b.objects, b.discovered)
			}
			from.bare, from.discovery = b.bare.reaches(o), b.discovered[called]
		}
		if server != (v1.Key{}) {
			key.Name = server.Name + "__" + o.RemoteName()
		}
		from.description, from.described = b.descriptions[key]
	case *v1.MCPServer:
		from.discovery = b.discovered[key]
	}
	if old := b.old.byKey[object.Head().Key()]; old != nil && old.origin == from {
		return old
	}
	e := &entry{origin: from, object: object}
	b.made = append(b.made, e)
	return e
}

// prepare fills an entry from its origin. It compiles no schema: that happens on first use.
func (r *Registry) prepare(e *entry) {
	if g, ok := e.given.(*GoTool); ok {
		e.own = g.executor
	}
	e.violations = r.faults(e.object)
	if e.twice != nil && !hasError(e.violations) {
		key := e.object.Head().Key()
		e.violations = append(slices.Clip(e.violations), v1.Violation{
			Path: "/metadata/name", Expected: "a unique name", Got: key.Name,
			Message: fmt.Sprintf("%s is declared twice: at %s and at %s", key, place(e.object), place(e.twice)), Source: e.object.Head().Source,
		})
	}
	if e.discovery != nil {
		e.unready = e.discovery.Err
	}
	switch o := e.object.(type) {
	case *v1.Tool:
		e.tool = r.prepareTool(e, o)
	case *v1.MCPServer:
		e.servers, _ = r.executors[v1.ModeMCP].(Environment)
	}
}

func (r *Registry) prepareTool(e *entry, t *v1.Tool) *tool {
	if e.described {
		changed := *t
		changed.Spec.Description = e.description
		t, e.object = &changed, &changed
	}
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
	if e.discovery != nil {
		e.refused = e.discovery.Refused[t.RemoteName()]
	}
	if hasError(e.violations) {
		return p
	}
	notReady := func(path, format string, args ...any) {
		e.violations = append(slices.Clip(e.violations), v1.Violation{Path: path, Message: fmt.Sprintf(format, args...), Source: t.Field(path)})
	}
	if broken := e.rules.broken; broken != nil {
		e.closed = &v1.Violation{Expected: "a policy that can be read", Got: "a broken one", Message: fmt.Sprintf("policy %q is broken and might have refused the call: fix %s", broken.Head().Metadata.Name, place(broken))}
	}
	p.chain = e.rules.set.For(e.subject(t))
	if t.AsksConsent() {
		p.chain = policy.NewOverlay(t.Head(), v1.ToolPolicySpec{RequireApproval: []string{"*"}, Approvers: &v1.Approvers{Ask: v1.AskClient}}).Over(p.chain)
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
	case t.Mode() == v1.ModeMCP && e.calls == nil:
		notReady("/spec/mcp/server", "no MCPServer %q in namespace %q", t.Spec.MCP.Server, t.Namespace())
	}
	return p
}

// goTool reports whether the tool is made in Go.
func (t *tool) goTool() bool { return t.own != nil }

// index adds every name by which a tool can be found, in addition to its key. A prefix that no name can have separates
// the names of different ranks.
func (s *snapshot) index(t *tool) {
	name := t.spec.Metadata.Name
	s.tools[t.spec.Namespace()]++
	s.names[name] = append(s.names[name], t)
	if m := t.spec.Spec.MCP; m != nil && t.spec.Mode() == v1.ModeMCP {
		remote := t.spec.RemoteName()
		for _, alias := range []string{rankWire + m.Server + "__" + remote, rankDotted + m.Server + "." + remote, rankMCP + v1.MCPPrefix + m.Server + "__" + remote, rankBare + remote} {
			s.names[alias] = append(s.names[alias], t)
		}
	}
}

// Ranks of a name, in the order of lookup.
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

// reasons returns why the object is not ready; nil if it is ready.
func (e *entry) reasons() []v1.Violation {
	bad := v1.Errors(e.violations)
	if e.closed != nil && bad == nil {
		bad = append(bad, *e.closed)
	}
	if checked := e.checked.Load(); checked != nil && bad == nil {
		bad = v1.Errors(*checked)
	}
	return bad
}
