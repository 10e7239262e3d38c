package overlay

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	v1 "toolctl.dev/toolctl/api/v1"
)

// apply executes one operation of a JSON patch (RFC 6902).
func (b *builder) apply(doc, op *yaml.Node) error {
	name, path := text(op, "op"), text(op, "path")
	if child(op, "path") == nil {
		return errors.New("an operation needs op and path")
	}
	v := child(op, "value")
	switch name {
	case "add", "replace", "test":
		if v == nil {
			return fmt.Errorf("%s %s needs a value", name, path)
		}
	case "move", "copy":
		from, err := find(doc, text(op, "from"))
		if err != nil {
			return err
		}
		v = from.value()
		if v == nil {
			return fmt.Errorf("%s: nothing is at %q", name, text(op, "from"))
		}
	case "remove":
	default:
		return fmt.Errorf("unknown operation %q: expected add, remove, replace, move, copy or test", name)
	}
	if name == "move" {
		if strings.HasPrefix(path+"/", text(op, "from")+"/") && path != text(op, "from") {
			return fmt.Errorf("move: %q is inside %q", path, text(op, "from"))
		}
		from, err := find(doc, text(op, "from"))
		if err == nil {
			err = from.remove()
		}
		if err != nil {
			return err
		}
	}
	at, err := find(doc, path)
	if err != nil {
		return err
	}
	switch name {
	case "remove":
		return at.remove()
	case "replace":
		if at.value() == nil {
			return fmt.Errorf("replace: nothing is at %q", path)
		}
		if err := at.put(b.clone(v), false); err != nil {
			return err
		}
		b.keyFrom(at.parent, at.key)
		return nil
	case "test":
		if have := at.value(); have == nil || !equal(have, v) {
			return fmt.Errorf("test: %q is not %s", path, v.Value)
		}
		return nil
	}
	if err := at.put(b.clone(v), true); err != nil {
		return err
	}
	b.keyFrom(at.parent, at.key)
	return nil
}

// place is the location that a JSON pointer names: a key or an item of a parent. parent is nil for
// the document.
type place struct {
	doc, parent *yaml.Node
	key, text   string
}

func find(doc *yaml.Node, pointer string) (place, error) {
	if pointer == "" {
		return place{doc: doc}, nil
	}
	if pointer[0] != '/' {
		return place{}, fmt.Errorf("%q is not a JSON pointer: expected it to begin with /", pointer)
	}
	tokens := v1.Tokens(pointer)
	at := place{doc: doc, parent: doc, text: pointer}
	for i, t := range tokens {
		at.key = t
		if i == len(tokens)-1 {
			break
		}
		if at.parent = at.value(); at.parent == nil {
			return place{}, fmt.Errorf("nothing is at %q", v1.Pointer("", tokens[:i+1]...))
		}
	}
	return at, nil
}

func (p place) value() *yaml.Node {
	switch {
	case p.parent == nil:
		return p.doc
	case p.parent.Kind == yaml.MappingNode:
		return child(p.parent, p.key)
	case p.parent.Kind == yaml.SequenceNode:
		if i, err := p.item(len(p.parent.Content) - 1); err == nil {
			return p.parent.Content[i]
		}
	}
	return nil
}

// item returns the index, which must not exceed last.
func (p place) item(last int) (int, error) {
	i, err := strconv.Atoi(p.key)
	if err != nil || i < 0 || i > last || p.key != strconv.Itoa(i) {
		return 0, fmt.Errorf("%q: the list has no item %q", p.text, p.key)
	}
	return i, nil
}

func (p place) put(v *yaml.Node, insert bool) error {
	switch {
	case p.parent == nil:
		*p.doc = *v
		return nil
	case p.parent.Kind == yaml.MappingNode:
		set(p.parent, p.key, v)
		return nil
	case p.parent.Kind != yaml.SequenceNode:
		return fmt.Errorf("%q: its parent is neither an object nor a list", p.text)
	case insert && p.key == "-":
		p.parent.Content = append(p.parent.Content, v)
		return nil
	}
	last := len(p.parent.Content) - 1
	if insert {
		last++
	}
	i, err := p.item(last)
	switch {
	case err != nil:
		return err
	case insert:
		p.parent.Content = slices.Insert(p.parent.Content, i, v)
	default:
		p.parent.Content[i] = v
	}
	return nil
}

func (p place) remove() error {
	switch {
	case p.parent == nil:
		return errors.New("the whole object cannot be removed: use a patch with $patch: delete")
	case p.value() == nil:
		return fmt.Errorf("remove: nothing is at %q", p.text)
	case p.parent.Kind == yaml.MappingNode:
		remove(p.parent, p.key)
		return nil
	}
	i, err := p.item(len(p.parent.Content) - 1)
	if err == nil {
		p.parent.Content = slices.Delete(p.parent.Content, i, i+1)
	}
	return err
}

// equal compares values as in JSON, where the order of an object's members does not matter.
func equal(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || len(a.Content) != len(b.Content) {
		return false
	}
	switch a.Kind {
	case yaml.ScalarNode:
		return a.Tag == b.Tag && a.Value == b.Value
	case yaml.MappingNode:
		for i := 0; i+1 < len(a.Content); i += 2 {
			if v := child(b, a.Content[i].Value); v == nil || !equal(a.Content[i+1], v) {
				return false
			}
		}
		return true
	}
	return slices.EqualFunc(a.Content, b.Content, equal)
}
