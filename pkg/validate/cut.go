package validate

import (
	"maps"
	"slices"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
)

// part is some of the values of a document, within all that hold them.
type part struct {
	root any
	// open are the objects and arrays of which other children are in other parts, by their
	// pointers in this one.
	open map[string]*opened
}

type opened struct {
	path   []string // in the document
	offset int      // of the first item of an array
	again  bool     // it was in the part before, too
}

// place is the path in the document of what has a path in the part.
func (p *part) place(path []string) []string {
	out := slices.Clone(path)
	at := ""
	for i, tok := range path {
		if o := p.open[at]; o != nil && o.offset > 0 {
			if n, err := strconv.Atoi(tok); err == nil {
				out[i] = strconv.Itoa(n + o.offset)
			}
		}
		at = v1.Pointer(at, tok)
	}
	return out
}

// cutter goes through a document once and hands out its parts.
type cutter struct {
	most  int                   // values of a part
	emit  func(*part) (on bool) // takes each, until it has enough
	n     int
	done  bool
	stack []frame
	open  map[string]*opened // in the part that is made now
}

// frame is an object or array that the cutter is in.
type frame struct {
	token  string // its name or index in what holds it
	object map[string]any
	array  []any // when object is nil
	offset int
}

func (f *frame) add(token string, v any) {
	if f.object != nil {
		f.object[token] = v
	} else {
		f.array = append(f.array, v)
	}
}

func (f *frame) value() any {
	if f.object != nil {
		return f.object
	}
	return f.array
}

// local is the token in the part of the child with a token in the document.
func (f *frame) local(token string) string {
	if n, err := strconv.Atoi(token); err == nil && f.object == nil {
		return strconv.Itoa(n - f.offset)
	}
	return token
}

func (c *cutter) cut(doc any) {
	c.open = map[string]*opened{}
	if root := c.value(doc, ""); !c.done {
		c.emit(&part{root, c.open})
	}
}

// value copies a value into the part that is made now, and goes on to others when that is full.
func (c *cutter) value(v any, token string) any {
	c.n++
	switch v := v.(type) {
	case map[string]any:
		c.stack = append(c.stack, frame{token: token, object: map[string]any{}})
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if c.child(v[k], k); c.done {
				return nil
			}
		}
	case []any:
		c.stack = append(c.stack, frame{token: token, array: []any{}})
		for i, item := range v {
			if c.child(item, strconv.Itoa(i)); c.done {
				return nil
			}
		}
	default:
		return v
	}
	top := &c.stack[len(c.stack)-1]
	c.stack = c.stack[:len(c.stack)-1]
	return top.value()
}

func (c *cutter) child(v any, token string) {
	if c.n >= c.most {
		if c.flush(token); c.done {
			return
		}
	}
	depth := len(c.stack) - 1
	if child := c.value(v, token); !c.done {
		c.stack[depth].add(token, child)
	}
}

// flush hands out the part that was made and begins the next, with the child of a token.
func (c *cutter) flush(next string) {
	at, path := "", []string{}
	for i := range c.stack {
		f := &c.stack[i]
		if i > 0 {
			at, path = v1.Pointer(at, c.stack[i-1].local(f.token)), append(path, f.token)
		}
		if c.open[at] == nil {
			c.open[at] = &opened{path: slices.Clone(path)}
		}
	}
	for i := len(c.stack) - 1; i > 0; i-- {
		c.stack[i-1].add(c.stack[i].token, c.stack[i].value())
	}
	if c.done = !c.emit(&part{c.stack[0].value(), c.open}); c.done {
		return
	}
	c.n, c.open = 0, map[string]*opened{}
	at, path = "", []string{}
	for i := range c.stack {
		f := &c.stack[i]
		if i > 0 {
			at, path = v1.Pointer(at, c.stack[i-1].local(f.token)), append(path, f.token)
		}
		child := next
		if i+1 < len(c.stack) {
			child = c.stack[i+1].token
		}
		if f.object != nil {
			f.object = map[string]any{}
		} else {
			f.array = []any{}
			f.offset, _ = strconv.Atoi(child) // an index
		}
		c.open[at] = &opened{path: slices.Clone(path), offset: f.offset, again: true}
	}
}
