package validate

import (
	"bytes"
	"cmp"
	"strconv"
	"unicode/utf8"

	"toolctl.dev/toolctl/internal/jsontext"
)

// SurelyValid reports whether one pass over the bytes of a JSON text shows that it is valid. False decides
// nothing: use [Schema.ValidateJSON] then. [Decode] reads a surely valid text, and [Schema.Check] finds
// nothing in it, so there is nothing to coerce either.
func (s *Schema) SurelyValid(raw []byte) bool {
	if s.Compile() != nil || len(raw) > MaxDocumentBytes {
		return false
	}
	f := s.fast
	if f == nil || !utf8.Valid(raw) {
		return false
	}
	p := pass{text: raw}
	if p.skip(); !p.value(f, 0) {
		return false
	}
	if p.skip(); p.i != len(raw) {
		return false
	}
	return s.costs.affordable(&survey{values: p.values, depth: p.depth, text: len(raw), longest: p.values})
}

// maxOthers is the maximum number of members of one object that its schema does not name. Each name is
// compared with all previous ones, because no name may occur twice.
const maxOthers = 64

// A pass reads the bytes of one text once.
type pass struct {
	text   []byte
	i      int      // the position
	names  [][]byte // names of other members, of all enclosing objects
	values int
	depth  int // depth of the deepest object or array
	match  int // cost of pattern matches, in bytes times instructions
}

func (p *pass) skip() { p.i = jsontext.SkipSpace(p.text, p.i) }

func (p *pass) take(c byte) bool {
	if p.i < len(p.text) && p.text[p.i] == c {
		p.i++
		return true
	}
	return false
}

// value reads the value at the current place and reports whether it is surely valid.
func (p *pass) value(f *fastSchema, depth int) bool {
	if p.values++; p.values > MaxValues || p.i == len(p.text) {
		return false
	}
	if f == nil {
		f = anything
	}
	switch p.text[p.i] {
	case '{':
		f = f.of(kindObject)
		return f != nil && f.enum == nil && p.object(f, depth+1)
	case '[':
		f = f.of(kindArray)
		return f != nil && f.enum == nil && p.array(f, depth+1)
	case '"':
		f = f.of(kindString)
		return f != nil && p.string(f)
	case 't':
		return p.word(f.of(kindBool), "true")
	case 'f':
		return p.word(f.of(kindBool), "false")
	case 'n':
		return p.word(f.of(kindNull), "null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return p.number(f)
	}
	return false
}

// of returns the schema for values of a kind, or nil if such values are not surely valid.
func (f *fastSchema) of(kind kinds) *fastSchema {
	for f.choice != nil {
		next := f
		for _, b := range f.choice {
			if b.kinds&kind != 0 {
				next = b
			}
		}
		if next == f || f.unknown {
			return nil
		}
		f = next
	}
	if f.unknown || f.kinds&kind == 0 {
		return nil
	}
	return f
}

func (p *pass) word(f *fastSchema, w string) bool {
	if f == nil || !bytes.HasPrefix(p.text[p.i:], []byte(w)) || f.enum != nil && !f.enum.words[w] {
		return false
	}
	p.i += len(w)
	return true
}

func (p *pass) object(f *fastSchema, depth int) bool {
	var seen [maxMembers / 64]uint64
	before, n, required := len(p.names), 0, 0
	if p.depth = max(p.depth, depth); depth > MaxDepth {
		return false
	}
	p.i++
	if p.skip(); p.take('}') {
		return f.required == 0 && f.nMembers.hold(0)
	}
	for {
		name, escaped, ok := p.quoted()
		if !ok || escaped {
			return false
		}
		if p.skip(); !p.take(':') {
			return false
		}
		p.skip()
		next := f.others
		if i, ok := f.index[string(name)]; ok {
			m, bit := &f.members[i], uint64(1)<<(i%64)
			if seen[i/64]&bit != 0 {
				return false
			}
			seen[i/64] |= bit
			if next = m.schema; m.required {
				required++
			}
		} else if f.closed || !p.other(name, before) {
			return false
		}
		if !p.value(next, depth) {
			return false
		}
		n++
		if p.skip(); p.take(',') {
			p.skip()
			continue
		}
		p.names = p.names[:before]
		return p.take('}') && required == f.required && f.nMembers.hold(n)
	}
}

// other records a member that the schema does not name. It returns false if the name occurred before.
func (p *pass) other(name []byte, before int) bool {
	for _, o := range p.names[before:] {
		if bytes.Equal(o, name) {
			return false
		}
	}
	if p.names == nil {
		p.names = make([][]byte, 0, 16)
	}
	p.names = append(p.names, name)
	return len(p.names)-before <= maxOthers
}

func (p *pass) array(f *fastSchema, depth int) bool {
	if p.depth = max(p.depth, depth); depth > MaxDepth {
		return false
	}
	p.i++
	if p.skip(); p.take(']') {
		return f.nItems.hold(0)
	}
	for n := 1; ; n++ {
		if !p.value(f.items, depth) {
			return false
		}
		if p.skip(); p.take(',') {
			p.skip()
			continue
		}
		return p.take(']') && f.nItems.hold(n)
	}
}

// quoted reads the text between the quotes of a string, without decoding it.
func (p *pass) quoted() (text []byte, escaped, ok bool) {
	if p.i == len(p.text) || p.text[p.i] != '"' {
		return nil, false, false
	}
	from := p.i + 1
	end := jsontext.Plain(p.text, from)
	if end < len(p.text) && p.text[end] == '"' {
		p.i = end + 1
		return p.text[from:end], false, true
	}
	if end = jsontext.ValidString(p.text, from-1); end < 0 {
		return nil, false, false
	}
	p.i = end
	return p.text[from : end-1], true, true
}

func (p *pass) string(f *fastSchema) bool {
	start := p.i
	text, escaped, ok := p.quoted()
	if !ok {
		return false
	}
	if f.enum == nil && f.pattern == nil && f.length == noLimits {
		return true
	}
	if escaped {
		text = []byte(jsontext.Unquote(p.text[start:p.i]))
	}
	if f.enum != nil && !f.enum.texts[string(text)] {
		return false
	}
	// A character has one to four bytes, so the byte length often decides without counting.
	if !(f.length.hold(len(text)) && f.length.hold((len(text)+3)/4)) && !f.length.hold(utf8.RuneCount(text)) {
		return false
	}
	if f.pattern == nil {
		return true
	}
	p.match += f.size * len(text)
	return p.match <= maxText && f.pattern.Match(text)
}

func (p *pass) number(f *fastSchema) bool {
	start := p.i
	if p.i = jsontext.ValidNumber(p.text, start); p.i < 0 {
		return false
	}
	text, kind := p.text[start:p.i], kindInteger
	short := len(text) <= shortNumber
	if at := bytes.IndexAny(text, ".eE"); at >= 0 {
		kind = kindFraction
		if at = bytes.IndexAny(text, "eE"); at >= 0 {
			if short = false; len(text)-at > len("e99") {
				return false
			}
		}
	}
	const long = 100 // length at which the bounds of a number begin to matter; see checkNumber
	if f = f.of(kind); f == nil || len(text) > long || f.enum != nil && !f.enum.words[string(text)] {
		return false
	}
	if f.bounds == nil && f.multiple == 0 {
		return true
	}
	n, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return false
	}
	for i := range f.bounds {
		if !f.bounds[i].holds(n, short) {
			return false
		}
	}
	return f.multiple == 0 || kind == kindInteger && short && int64(n)%f.multiple == 0
}

// holds reports whether a number is certainly within the bound. Rounding to doubles keeps the order of two
// numbers or makes them equal, but never makes two short numbers equal.
func (b *fastBound) holds(n float64, short bool) bool {
	order := cmp.Compare(n, b.limit)
	switch {
	case order == 0:
		return short && b.short && !b.exclusive
	case b.upper:
		return order < 0
	}
	return order > 0
}
