package solve

import (
	"cmp"
	"maps"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// classes returns the most readable rune of each class that the languages distinguish, readable
// classes first.
func classes(langs []*language) []rune {
	bounds := map[rune]bool{0: true}
	for _, l := range langs {
		l.runes(bounds)
	}
	starts := slices.Sorted(maps.Keys(bounds))
	var all []rune
	for i, start := range starts {
		end := rune(utf8.MaxRune)
		if i+1 < len(starts) {
			end = starts[i+1] - 1
		}
		if r, ok := readable(start, end); ok {
			all = append(all, r)
		}
	}
	if len(all) > 64 {
		all = distinct(langs, all)
	}
	slices.SortStableFunc(all, func(a, b rune) int { return cmp.Compare(rank(a), rank(b)) })
	return all
}

// readable returns a rune from a range. It returns false if a string cannot contain any rune of the
// range.
func readable(start, end rune) (rune, bool) {
	for _, r := range []rune{'x', 'a', 'A', '1', '0', '-', '_', ' ', '.'} {
		if start <= r && r <= end {
			return r, true
		}
	}
	if start < ' ' && end >= '!' {
		return '!', true
	}
	if start >= 0xD800 && start <= 0xDFFF {
		start = 0xE000
	}
	return start, start <= end && start <= utf8.MaxRune
}

func rank(r rune) int {
	switch {
	case r >= 'a' && r <= 'z':
		return 0
	case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return 1
	case r >= ' ' && r < 0x7f:
		return 2
	case r < ' ':
		return 4
	}
	return 3
}

// foldOrbit returns the runes that are equal to r except for case.
func foldOrbit(r rune) []rune {
	all := []rune{r}
	for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
		all = append(all, f)
	}
	return all
}

// distinct keeps one rune from each group that no instruction distinguishes.
func distinct(langs []*language, all []rune) []rune {
	seen := map[string]bool{}
	return slices.DeleteFunc(all, func(r rune) bool {
		key := []byte{'0', '0'}
		if r == '\n' {
			key[0] = '1'
		}
		if syntax.IsWordChar(r) {
			key[1] = '1'
		}
		for _, l := range langs {
			for i := range l.prog.Inst {
				switch in := &l.prog.Inst[i]; in.Op {
				case syntax.InstRune, syntax.InstRune1:
					bit := byte('0')
					if in.MatchRune(r) {
						bit = '1'
					}
					key = append(key, bit)
				}
			}
		}
		told := seen[string(key)]
		seen[string(key)] = true
		return told
	})
}
