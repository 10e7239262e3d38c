package diff

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/parallel"
	"toolctl.dev/toolctl/pkg/policy"
)

// Action is what happens to an object.
type Action string

// The actions of a [Change].
const (
	Created Action = "create"
	Changed Action = "change"
	Deleted Action = "delete"
	Drifted Action = "drift" // an override replaces its text, and an apply keeps the override
)

// Pair is an object before and after a change; one of the two may be nil.
type Pair struct {
	Before, After v1.Object
	// TakenFrom is the set that the object comes from, if it changes sets.
	TakenFrom string
}

// Report lists all changes.
type Report struct {
	// Changes are sorted by the order of [v1.Kinds], then by namespace and name. Drifted objects
	// follow.
	Changes []Change `json:"changes"`
	Summary Summary  `json:"summary"`
}

// Summary counts the changes.
type Summary struct {
	Create    int `json:"create"`
	Change    int `json:"change"`
	Delete    int `json:"delete"`
	Unchanged int `json:"unchanged"`
	// Overridden counts the objects whose override is served in place of the manifest. The other
	// counters include these objects.
	Overridden int `json:"overridden,omitempty"`
	// Class is the worst class of all changes; empty if nothing changes.
	Class Class `json:"class,omitempty"`
	// Classes counts the changes of each class.
	Classes map[Class]int `json:"classes"`
}

// Change is the change of one object.
type Change struct {
	Action    Action `json:"action"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Class is the worst class of the reasons.
	Class Class `json:"class"`
	// Source is the place of the manifest, or its last place if it is deleted.
	Source v1.Source `json:"source,omitzero"`
	// Fields are the differing fields, sorted by path. Values have a bounded length, and secrets are
	// masked.
	Fields []Field `json:"fields"`
	// Reasons say what the change means, the worst first.
	Reasons []Reason `json:"reasons"`
	// Abandoned lists the counts of a policy that the change discards.
	Abandoned []string `json:"abandoned_counts,omitempty"`
	// TakenFrom is the set that the object comes from, if it changes sets.
	TakenFrom string `json:"taken_from,omitempty"`
}

// Key returns the identity of the object.
func (c *Change) Key() v1.Key { return v1.Key{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name} }

// Reason is the meaning of a part of a change. The witness is a document of arguments or results, or
// for a policy a [policy.Case].
type Reason struct {
	SchemaChange
	// Source is the place of the changed field; zero if unknown.
	Source v1.Source `json:"source,omitzero"`
}

// Pairs matches the objects of two sides by kind, namespace and name.
func Pairs(before, after []v1.Object) []Pair {
	was := make(map[v1.Key]v1.Object, len(before))
	for _, o := range before {
		was[o.Head().Key()] = o
	}
	pairs := make([]Pair, 0, len(after))
	for _, o := range after {
		key := o.Head().Key()
		pairs = append(pairs, Pair{Before: was[key], After: o})
		delete(was, key)
	}
	for _, o := range before {
		if was[o.Head().Key()] == o {
			pairs = append(pairs, Pair{Before: o})
		}
	}
	return pairs
}

// Manifests reports what the pairs change. around are all objects of both sides: their tools
// show the effect of policies, and their policies the effect of labels of tools.
func (c *Checker) Manifests(ctx context.Context, pairs []Pair, around []v1.Object) (*Report, error) {
	w := newWorld(pairs, around)
	changes := make([]*Change, len(pairs))
	errs := make([]error, len(pairs))
	parallel.Each(len(pairs), func(i int) {
		if ctx.Err() == nil {
			changes[i], errs[i] = c.pair(ctx, pairs[i], w)
		}
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := &Report{Changes: []Change{}, Summary: Summary{Classes: map[Class]int{}}}
	for i, ch := range changes {
		if errs[i] != nil {
			return nil, errs[i]
		}
		if ch == nil {
			r.Summary.Unchanged++
		} else {
			r.add(*ch)
		}
	}
	slices.SortFunc(r.Changes, func(a, b Change) int { return compareKeys(a.Key(), b.Key()) })
	return r, nil
}

func (r *Report) add(c Change) {
	r.Changes = append(r.Changes, c)
	s := &r.Summary
	switch c.Action {
	case Created:
		s.Create++
	case Changed:
		s.Change++
	case Deleted:
		s.Delete++
	case Drifted:
		s.Overridden++
	}
	s.Classes[c.Class]++
	if s.Class == "" || c.Class.Worse(s.Class) {
		s.Class = c.Class
	}
}

// Override adds an object with an override, and its reasons. served is the description that replaces
// that of a tool.
func (r *Report) Override(o v1.Object, served string, why ...string) {
	h := o.Head()
	key := h.Key()
	c := Change{Action: Drifted, Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, Class: Neutral, Source: h.Source, Fields: []Field{}}
	pointer := ""
	if t, ok := o.(*v1.Tool); ok {
		pointer = "/spec/description"
		w := fieldWalk{}
		w.walk(pointer, served, t.Spec.Description, served, t.Spec.Description)
		c.Fields = w.fields
	}
	for _, text := range why {
		c.Reasons = append(c.Reasons, Reason{SchemaChange{Class: Neutral, Reason: "overridden: " + text, Pointer: pointer}, h.Field(pointer)})
	}
	r.add(c)
}

// Locate sets the places of the reasons from current objects that know the places of their fields.
func (r *Report) Locate(objects []v1.Object) {
	heads := make(map[v1.Key]*v1.Header, len(objects))
	for _, o := range objects {
		heads[o.Head().Key()] = o.Head()
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		h := heads[c.Key()]
		if h == nil || c.Action == Deleted {
			continue
		}
		for j := range c.Reasons {
			c.Reasons[j].Source = h.Field(c.Reasons[j].Pointer)
		}
	}
}

// Fails reports whether a change has the class or a worse one. A tighter change counts as breaking if
// a call shows it.
func (r *Report) Fails(class Class) bool {
	return slices.ContainsFunc(r.Changes, func(c Change) bool {
		return slices.ContainsFunc(c.Reasons, func(why Reason) bool {
			return !class.Worse(why.Class) || class == Breaking && why.Class == Tighter && why.Witness != nil
		})
	})
}

// compareKeys compares object keys in the order of lists.
func compareKeys(a, b v1.Key) int {
	kinds := v1.Kinds()
	return cmp.Or(
		cmp.Compare(slices.Index(kinds, a.Kind), slices.Index(kinds, b.Kind)),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// world holds the objects around a change.
type world struct {
	tools       *policy.Tools
	older       *policy.Tools               // without new tools
	created     map[v1.Key]bool             // new tools
	policies    map[string][]*v1.ToolPolicy // by namespace
	selectables []selectable
}

func newWorld(pairs []Pair, around []v1.Object) *world {
	w := &world{policies: map[string][]*v1.ToolPolicy{}, created: map[v1.Key]bool{}}
	for _, p := range pairs {
		if t, ok := p.After.(*v1.Tool); ok && p.Before == nil {
			w.created[t.Key()] = true
		}
	}
	var subjects, older []policy.Subject
	servers := map[v1.Key]map[string]string{} // labels
	for _, o := range around {
		if s, ok := o.(*v1.MCPServer); ok {
			servers[s.Key()] = s.Metadata.Labels
		}
	}
	for _, o := range around {
		switch o := o.(type) {
		case *v1.Tool:
			s := subject(o)
			s.ServerLabels = servers[v1.Key{Kind: v1.KindMCPServer, Namespace: s.Namespace, Name: s.Server}]
			subjects = append(subjects, s)
			w.selectables = append(w.selectables, selectable{v1.KindTool, s})
			if !w.created[o.Key()] {
				older = append(older, s)
			}
		case *v1.Prompt:
			w.selectables = append(w.selectables, selectable{v1.KindPrompt, policy.Subject{Namespace: o.Namespace(), Name: o.Metadata.Name, Labels: o.Metadata.Labels}})
		case *v1.ToolPolicy:
			w.policies[o.Namespace()] = append(w.policies[o.Namespace()], o)
		}
	}
	w.tools, w.older = policy.NewTools(subjects), policy.NewTools(older)
	return w
}

// subject returns a tool in the form that policies match.
func subject(t *v1.Tool) policy.Subject {
	s := policy.Subject{Namespace: t.Namespace(), Name: t.Metadata.Name, Labels: t.Metadata.Labels}
	if m := t.Spec.MCP; m != nil && t.Mode() == v1.ModeMCP {
		s.Server, s.Remote = m.Server, cmp.Or(m.Tool, t.Metadata.Name)
	}
	return s
}

// pair returns the change of a pair, or nil if nothing changes.
func (c *Checker) pair(ctx context.Context, p Pair, w *world) (*Change, error) {
	fields, err := fieldsOf(p)
	if err != nil || p.Before != nil && p.After != nil && len(fields) == 0 && p.TakenFrom == "" {
		return nil, err
	}
	of := p.After
	ch := &Change{Action: Changed, TakenFrom: p.TakenFrom}
	switch {
	case p.Before == nil:
		ch.Action = Created
	case p.After == nil:
		ch.Action, of = Deleted, p.Before
	}
	key := of.Head().Key()
	ch.Kind, ch.Namespace, ch.Name, ch.Source = key.Kind, key.Namespace, key.Name, of.Head().Source
	ch.Fields = fields
	j := &judgement{checker: c, world: w, pair: p, fields: fields, head: of.Head()}
	j.judge(ctx)
	slices.SortStableFunc(j.reasons, func(a, b Reason) int {
		return cmp.Or(slices.Index(classes, b.Class)-slices.Index(classes, a.Class), strings.Compare(a.Pointer, b.Pointer))
	})
	ch.Reasons, ch.Class, ch.Abandoned = j.reasons, j.reasons[0].Class, j.abandoned
	return ch, nil
}

// judgement finds the reasons of one change.
type judgement struct {
	checker   *Checker
	world     *world
	pair      Pair
	fields    []Field
	head      *v1.Header // of the current object, or of a deleted object
	reasons   []Reason
	abandoned []string
}

// add adds a reason. witness may be nil.
func (j *judgement) add(class Class, pointer, reason string, witness any) {
	change := SchemaChange{Class: class, Reason: reason, Pointer: pointer}
	switch w := witness.(type) {
	case nil:
	case json.RawMessage:
		change.Witness = w
	default:
		change.Witness = encode(w)
	}
	j.addSchema("", change)
}

// addSchema adds the change of a schema at a pointer.
func (j *judgement) addSchema(at string, change SchemaChange) {
	change.Pointer = at + change.Pointer
	j.reasons = append(j.reasons, Reason{change, j.head.Field(change.Pointer)})
}

// first returns the first changed field at or below a pointer, or "" if no such field changed.
func (j *judgement) first(prefix string) string {
	for _, f := range j.fields {
		if under(f.Path, prefix) {
			return f.Path
		}
	}
	return ""
}

// under reports whether a pointer equals prefix or points below it.
func under(pointer, prefix string) bool {
	rest, ok := strings.CutPrefix(pointer, prefix)
	return ok && (rest == "" || rest[0] == '/' || prefix == "")
}
