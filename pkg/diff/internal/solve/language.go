package solve

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// language is the set of strings that contain a match of a pattern, as an automaton that is built
// lazily.
type language struct {
	prog   *syntax.Prog
	match  *regexp.Regexp
	ids    map[string]int
	states []langState
}

// langState is the state of the automaton after a prefix of a string.
type langState struct {
	at      []uint32 // instructions, before empty-width instructions are followed
	before  rune     // the last rune; -1 at the start
	matched bool     // a match was found; any suffix is accepted
	next    map[rune]int
	ends    int8 // whether the string may end here: 0 unknown, 1 yes, -1 no
}

// maxProgram is the maximum size of a compiled pattern, in instructions.
const maxProgram = 2000

// newLanguage returns nil for a pattern that is too large or that Go's regexp cannot read, such as
// one with lookaround.
func newLanguage(text string) *language {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil
	}
	prog, err := syntax.Compile(re.Simplify())
	if err != nil || len(prog.Inst) > maxProgram {
		return nil
	}
	match, err := regexp.Compile(text)
	if err != nil {
		return nil
	}
	l := &language{prog: prog, match: match, ids: map[string]int{}}
	l.state([]uint32{uint32(prog.Start)}, -1, false)
	return l
}

// state returns the number of a state. It reduces the last rune to a class, because only
// empty-width assertions depend on it.
func (l *language) state(at []uint32, before rune, matched bool) int {
	switch {
	case before < 0:
	case before == '\n':
	case syntax.IsWordChar(before):
		before = 'a'
	default:
		before = ' '
	}
	if matched {
		at, before = nil, ' '
	}
	slices.Sort(at)
	at = slices.Compact(at)
	var key strings.Builder
	key.WriteString(strconv.Itoa(int(before)))
	if matched {
		key.WriteByte('!')
	}
	for _, pc := range at {
		key.WriteByte(' ')
		key.WriteString(strconv.Itoa(int(pc)))
	}
	if id, ok := l.ids[key.String()]; ok {
		return id
	}
	id := len(l.states)
	l.ids[key.String()] = id
	l.states = append(l.states, langState{at: at, before: before, matched: matched, next: map[rune]int{}})
	return id
}

// follow walks the empty-width instructions of a state before the rune r, or before the end if r is
// -1. It returns the instructions that read a rune, and whether a match was found.
func (l *language) follow(s *langState, r rune) (reads []uint32, matched bool) {
	flags := syntax.EmptyOpContext(s.before, r)
	seen := map[uint32]bool{}
	todo := slices.Clone(s.at)
	for len(todo) > 0 {
		pc := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[pc] {
			continue
		}
		seen[pc] = true
		switch in := &l.prog.Inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			todo = append(todo, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			todo = append(todo, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				todo = append(todo, in.Out)
			}
		case syntax.InstMatch:
			matched = true
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			reads = append(reads, pc)
		}
	}
	return reads, matched
}

func (l *language) step(id int, r rune) int {
	if next, ok := l.states[id].next[r]; ok {
		return next
	}
	s := l.states[id]
	next := id
	if !s.matched {
		reads, matched := l.follow(&s, r)
		at := []uint32{uint32(l.prog.Start)} // a match may start anywhere
		for _, pc := range reads {
			if l.prog.Inst[pc].MatchRune(r) {
				at = append(at, l.prog.Inst[pc].Out)
			}
		}
		next = l.state(at, r, matched)
	}
	l.states[id].next[r] = next
	return next
}

// accepts reports whether a string that ends in a state belongs to the language.
func (l *language) accepts(id int) bool {
	s := &l.states[id]
	if s.ends == 0 {
		s.ends = -1
		if s.matched {
			s.ends = 1
		} else if _, matched := l.follow(s, -1); matched {
			s.ends = 1
		}
	}
	return s.ends > 0
}

// runes adds the bounds of the rune classes that the pattern distinguishes.
func (l *language) runes(bounds map[rune]bool) {
	for i := range l.prog.Inst {
		in := &l.prog.Inst[i]
		switch in.Op {
		case syntax.InstRuneAnyNotNL:
			bounds['\n'], bounds['\n'+1] = true, true
		case syntax.InstEmptyWidth:
			for _, r := range []rune{'\n', '\n' + 1, '0', '9' + 1, 'A', 'Z' + 1, '_', '_' + 1, 'a', 'z' + 1} {
				bounds[r] = true
			}
		case syntax.InstRune, syntax.InstRune1:
			if len(in.Rune) == 1 {
				bounds[in.Rune[0]], bounds[in.Rune[0]+1] = true, true
				if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
					for _, r := range foldOrbit(in.Rune[0]) {
						bounds[r], bounds[r+1] = true, true
					}
				}
				continue
			}
			for i := 0; i+1 < len(in.Rune); i += 2 {
				bounds[in.Rune[i]], bounds[in.Rune[i+1]+1] = true, true
			}
		}
	}
}

// text is the set of requirements for a string.
type text struct {
	min, max int // characters; no upper bound if max < 0
	in, out  []*language
}

const (
	maxClasses = 400
	maxWalk    = 4_000 // states of all languages in total
)

// find searches for the shortest string. The answer is Unknown if a bound is exceeded.
func (t *text) find() (string, Answer) {
	if t.max >= 0 && t.min > t.max {
		return "", Empty
	}
	langs := slices.Concat(t.in, t.out)
	alphabet := classes(langs)
	if len(alphabet) > maxClasses {
		return "", Unknown
	}
	type step struct {
		states       []int
		length, from int
		r            rune
	}
	steps := []step{{states: make([]int, len(langs)), from: -1}}
	seen := map[string]bool{}
	most := max(t.min, t.max+1) // all lengths beyond both bounds count as the same
	for i := 0; i < len(steps); i++ {
		if len(steps) > maxWalk {
			return "", Unknown
		}
		at := steps[i]
		if at.length >= t.min && t.accepts(langs, at.states) {
			var rs []rune
			for ; steps[i].from >= 0; i = steps[i].from {
				rs = append(rs, steps[i].r)
			}
			slices.Reverse(rs)
			return string(rs), Found
		}
		if t.max >= 0 && at.length == t.max {
			continue
		}
		for _, r := range alphabet {
			next, dead := make([]int, len(langs)), false
			key := make([]byte, 0, 8*len(langs)+8)
			for j, l := range langs {
				next[j] = l.step(at.states[j], r)
				dead = dead || j >= len(t.in) && l.states[next[j]].matched
				key = append(strconv.AppendInt(key, int64(next[j]), 32), ' ')
			}
			key = strconv.AppendInt(key, int64(min(at.length+1, most)), 32)
			if dead || seen[string(key)] {
				continue
			}
			seen[string(key)] = true
			steps = append(steps, step{next, at.length + 1, i, r})
		}
	}
	return "", Empty
}

func (t *text) accepts(langs []*language, states []int) bool {
	for i, l := range langs {
		if l.accepts(states[i]) != (i < len(t.in)) {
			return false
		}
	}
	return true
}

// fits reports whether a string meets the requirements.
func (t *text) fits(s string) bool {
	n := utf8.RuneCountInString(s)
	if n < t.min || t.max >= 0 && n > t.max {
		return false
	}
	matches := func(l *language) bool { return l.match.MatchString(s) }
	for _, l := range t.in {
		if !matches(l) {
			return false
		}
	}
	return !slices.ContainsFunc(t.out, matches)
}

// oneOf returns the language that consists of some strings, or nil if there are too many strings.
func oneOf(all []string) *language {
	parts := make([]string, len(all))
	for i, s := range all {
		parts[i] = regexp.QuoteMeta(s)
	}
	return newLanguage(`\A(?:` + strings.Join(parts, "|") + `)\z`)
}
