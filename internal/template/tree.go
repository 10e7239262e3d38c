package template

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"text/template"
	"text/template/parse"
)

// A parsed template is rewritten before its first use:
//
//   - every action that prints ends in escapeFunc, which passes the value to the
//     writer, marked and with the number of the action;
//   - an action that only prints an argument becomes its number, and the writer
//     looks up the argument: most templates contain nothing else, and this is cheaper;
//   - every loop body and every {{define}} starts with a tick, so that the writer
//     counts iterations that print nothing.
//
// The writer receives all text and all values in order, so it knows the context of each
// value, and it enforces the limits. All renderings share the tree.

const escapeFunc = "_escape"

// site is an action that prints.
type site struct {
	line int
	// src is the source of the action, truncated to a readable length.
	src string
	// arg is the argument if the action only prints an argument.
	arg string
}

type tree struct {
	name   string
	root   *template.Template
	sites  []site
	fields map[string]bool
	needed map[string]bool // names of the fields that the template always prints
	whole  bool            // the template uses all arguments at once
	// lenient renders missing and null values as text/template does.
	lenient bool
}

// parseTree parses and rewrites a source. name is its name in messages.
func parseTree(name, src string) (t *tree, err error) {
	defer func() {
		if p := recover(); p != nil {
			t, err = nil, &Error{Name: name, Message: fmt.Sprintf("the template cannot be read: %v", p)}
		}
	}()
	if err := checkSource(name, src); err != nil {
		return nil, err
	}
	// An empty name cannot be confused with another name in the messages of text/template.
	root, err := template.New("").Funcs(funcs()).Parse(src)
	if err != nil {
		return nil, parseError(name, err)
	}
	return newTree(name, root)
}

// newTree checks and rewrites a parsed template.
func newTree(name string, root *template.Template) (*tree, error) {
	t := &tree{name: name, root: root, fields: map[string]bool{}, needed: map[string]bool{}}
	w := walker{tree: t, state: map[string]visit{}}
	if err := w.define(root, true, 0); err != nil {
		return nil, err
	}
	for _, sub := range root.Templates() { // unused templates are checked as well
		if err := w.define(sub, false, 0); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// Fields returns the names of the arguments that the template uses, sorted: `{{.a.b}}` uses a. It only finds top-level
// fields. ReadsAll reports other uses, such as `{{index . "a"}}`.
func (t *tree) Fields() []string {
	return slices.Sorted(maps.Keys(t.fields))
}

// Needed returns the fields that the template always prints, sorted. Rendering fails without them.
func (t *tree) Needed() []string {
	if t.lenient {
		return nil
	}
	return slices.Sorted(maps.Keys(t.needed))
}

// ReadsAll reports whether the template uses all its arguments at once, as in `{{json .}}` or `{{index . "a"}}`. Then
// [Text.Fields] may be incomplete.
func (t *tree) ReadsAll() bool { return t.whole }

// visit is the state of the walk through a {{define}}.
type visit struct {
	open, rewritten bool
	// asRoot and asOther report that the walk has collected the fields with dot as all arguments, or as another value.
	asRoot, asOther bool
}

type walker struct {
	tree  *tree
	state map[string]visit
	calls int // functions in the current action
}

func (w *walker) fail(line int, format string, args ...any) error {
	return &Error{Name: w.tree.name, Line: line, Message: fmt.Sprintf(format, args...)}
}

// define walks the body of a template. root reports whether dot is all arguments.
func (w *walker) define(t *template.Template, root bool, line int) error {
	v := w.state[t.Name()]
	if v.open {
		return w.fail(line, "template %q calls itself", t.Name())
	}
	if v.asRoot && root || v.asOther && !root || t.Tree == nil || t.Root == nil {
		return nil
	}
	v.open = true
	w.state[t.Name()] = v
	s := scope{root: root, dollar: root, rewrite: !v.rewritten, main: t.Name() == ""}
	if err := w.list(t.Root, s); err != nil {
		return err
	}
	if !v.rewritten {
		addTick(t.Root)
	}
	w.state[t.Name()] = visit{rewritten: true, asRoot: v.asRoot || root, asOther: v.asOther || !root}
	return nil
}

// scope is the context of a place in the template.
type scope struct {
	root    bool // dot is all arguments
	dollar  bool // $ is all arguments
	rewrite bool // the first walk of this body
	main    bool // outside of any {{define}}, where dot does not depend on the caller
	depth   int
}

func (s scope) deeper(root bool) scope {
	s.depth++
	s.root = root
	return s
}

func (w *walker) list(l *parse.ListNode, s scope) error {
	if l == nil {
		return nil
	}
	for i, n := range l.Nodes {
		var err error
		if a, ok := n.(*parse.ActionNode); ok {
			l.Nodes[i], err = w.action(a, s)
		} else {
			err = w.node(n, s)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) node(n parse.Node, s scope) error {
	switch n := n.(type) {
	case *parse.IfNode:
		return w.branch(&n.BranchNode, s, s.root)
	case *parse.WithNode:
		return w.branch(&n.BranchNode, s, s.root && isDot(n.Pipe))
	case *parse.RangeNode:
		if err := w.branch(&n.BranchNode, s, false); err != nil {
			return err
		}
		if s.rewrite {
			addTick(n.List)
		}
	case *parse.TemplateNode:
		if err := w.pipe(n.Pipe, n.Line, s); err != nil {
			return err
		}
		sub := w.tree.root.Lookup(n.Name)
		if sub == nil || sub.Tree == nil {
			return w.fail(n.Line, "template %q is not defined", n.Name)
		}
		return w.define(sub, s.root && isDot(n.Pipe) || s.dollar && isDollar(n.Pipe), n.Line)
	}
	return nil
}

func (w *walker) branch(b *parse.BranchNode, s scope, rootInside bool) error {
	if s.depth >= maxNesting {
		return w.fail(b.Line, "if, range and with are nested more than %d deep", maxNesting)
	}
	if err := w.pipe(b.Pipe, b.Line, s); err != nil {
		return err
	}
	if err := w.list(b.List, s.deeper(rootInside)); err != nil {
		return err
	}
	return w.list(b.ElseList, s.deeper(s.root))
}

// action returns the replacement for n in the rewritten tree.
func (w *walker) action(n *parse.ActionNode, s scope) (parse.Node, error) {
	if err := w.pipe(n.Pipe, n.Line, s); err != nil {
		return nil, err
	}
	if !s.rewrite || len(n.Pipe.Decl) > 0 {
		return n, nil
	}
	id, arg := len(w.tree.sites), argOf(n.Pipe, s)
	w.tree.sites = append(w.tree.sites, site{line: n.Line, src: line(n.Pipe.String(), maxShown), arg: arg})
	if arg != "" && s.main && s.depth == 0 {
		w.tree.needed[arg] = true
	}
	if _, isField := single(n.Pipe).(*parse.FieldNode); s.main && isField && arg != "" {
		return &parse.TextNode{NodeType: parse.NodeText, Pos: n.Pos, Text: appendMark(nil, isArgument, id)}, nil
	}
	n.Pipe.Cmds = append(n.Pipe.Cmds, &parse.CommandNode{
		NodeType: parse.NodeCommand,
		Pos:      n.Pos,
		Args: []parse.Node{
			parse.NewIdentifier(escapeFunc).SetTree(w.tree.root.Tree).SetPos(n.Pos),
			&parse.NumberNode{NodeType: parse.NodeNumber, Pos: n.Pos, IsInt: true, Int64: int64(id), Text: strconv.Itoa(id)},
		},
	})
	return n, nil
}

// argOf returns the argument that a pipeline prints unchanged; "" if it does anything else.
func argOf(p *parse.PipeNode, s scope) string {
	switch n := single(p).(type) {
	case *parse.FieldNode:
		if s.root && len(n.Ident) == 1 {
			return n.Ident[0]
		}
	case *parse.VariableNode:
		if s.dollar && len(n.Ident) == 2 && n.Ident[0] == "$" {
			return n.Ident[1]
		}
	}
	return ""
}

// pipe counts the functions of an action and collects the arguments that it uses.
func (w *walker) pipe(p *parse.PipeNode, line int, s scope) error {
	w.calls = 0
	return w.expr(p, line, s)
}

func (w *walker) expr(n parse.Node, line int, s scope) error {
	switch n := n.(type) {
	case *parse.PipeNode:
		if n == nil {
			return nil
		}
		if s.depth++; s.depth > maxNesting+1 {
			return w.fail(line, "parentheses, if, range and with are nested more than %d deep", maxNesting)
		}
		for _, c := range n.Cmds {
			for _, a := range c.Args {
				if err := w.expr(a, line, s); err != nil {
					return err
				}
			}
		}
	case *parse.ChainNode:
		return w.expr(n.Node, line, s)
	case *parse.IdentifierNode:
		if w.calls++; w.calls > maxCalls {
			return w.fail(line, "more than %d function calls in one action: use variables", maxCalls)
		}
	case *parse.DotNode:
		w.tree.whole = w.tree.whole || s.root
	case *parse.FieldNode:
		if s.root {
			w.tree.fields[n.Ident[0]] = true
		}
	case *parse.VariableNode:
		switch {
		case !s.dollar || n.Ident[0] != "$":
		case len(n.Ident) > 1:
			w.tree.fields[n.Ident[1]] = true
		default:
			w.tree.whole = true
		}
	}
	return nil
}

func isDot(p *parse.PipeNode) bool {
	return single(p) != nil && single(p).Type() == parse.NodeDot
}

func isDollar(p *parse.PipeNode) bool {
	v, ok := single(p).(*parse.VariableNode)
	return ok && len(v.Ident) == 1 && v.Ident[0] == "$"
}

// single returns the only operand of a pipeline; nil if it has more than that.
func single(p *parse.PipeNode) parse.Node {
	if p == nil || len(p.Decl) > 0 || len(p.Cmds) != 1 || len(p.Cmds[0].Args) != 1 {
		return nil
	}
	return p.Cmds[0].Args[0]
}

func addTick(l *parse.ListNode) {
	l.Nodes = slices.Insert(l.Nodes, 0, parse.Node(&parse.TextNode{NodeType: parse.NodeText, Pos: l.Pos, Text: tick}))
}
