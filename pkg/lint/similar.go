package lint

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Two tools are similar if they share at least this fraction of their words and have enough words
// for a comparison.
const (
	similarity = 0.8
	fewWords   = 5
)

// similarTools finds tools with nearly the same words as another tool.
func similarTools(s *surface, found func(Finding)) {
	texts := map[string]int{}
	text := make([]int, len(s.tools)) // number of each tool's description; equal descriptions share a number
	for i, t := range s.tools {
		plain := plain(t.description)
		if _, ok := texts[plain]; !ok {
			texts[plain] = len(texts)
		}
		text[i] = texts[plain]
	}
	others, _ := similar(ranked(s.tools), text)
	for i, other := range others {
		if other >= 0 {
			f := s.tools[i].at("/spec/description", "%s has nearly the same words and arguments", s.tools[other].name)
			f.also = s.tools[other].head
			found(f)
		}
	}
}

// similar returns for each tool the index of an earlier similar tool, or -1 if there is no such
// tool, and the number of places that it examined. Tools with equal descriptions do not count as
// similar, because another rule reports them.
//
// Two sets that share 80 % of their words share a word among the rarest 20 % plus one (Chaudhuri et
// al. 2006, prefix filtering), and the positions of the first shared word bound how many words they
// can share (Xiao et al. 2008, positional filtering). Therefore few pairs are compared. Tools with
// equal descriptions are adjacent, so that they can be skipped together.
func similar(words [][]int, text []int) (others []int, looked int) {
	order := make([]int, len(words))
	others, compared := make([]int, len(words)), make([]int, len(words))
	for i := range words {
		order[i], others[i], compared[i] = i, -1, -1
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(text[i], text[j]) })
	type place struct{ tool, at int }
	by := map[int][]place{} // earlier tools by each of their rarest words
	for _, i := range order {
		mine := words[i]
		if len(mine) < fewWords {
			continue
		}
		rare := mine[:len(mine)-int(similarity*float64(len(mine)))+1]
		for at, w := range rare {
			for _, p := range by[w] {
				if others[i] >= 0 || text[p.tool] == text[i] {
					break // one similar tool is enough, and all that follow have the same description
				}
				looked++
				theirs := words[p.tool]
				most := min(len(mine)-at, len(theirs)-p.at) // maximum number of shared words if no earlier word is shared
				if compared[p.tool] == i || float64(most) < similarity*float64(len(mine)+len(theirs)-most) {
					continue
				}
				if compared[p.tool] = i; shared(mine, theirs) >= similarity {
					others[i] = p.tool
				}
			}
		}
		for at, w := range rare {
			by[w] = append(by[w], place{i, at})
		}
	}
	return others, looked
}

// ranked returns the words of each tool as numbers, with the rarest words of all tools first.
func ranked(tools []*tool) [][]int {
	texts, often := make([][]string, len(tools)), map[string]int{}
	for i, t := range tools {
		texts[i] = t.words()
		for _, w := range texts[i] {
			often[w]++
		}
	}
	rank := map[string]int{}
	for i, w := range slices.SortedFunc(maps.Keys(often), func(a, b string) int { return cmp.Or(often[a]-often[b], strings.Compare(a, b)) }) {
		rank[w] = i
	}
	words := make([][]int, len(tools))
	for i, text := range texts {
		for _, w := range text {
			words[i] = append(words[i], rank[w])
		}
		slices.Sort(words[i])
	}
	return words
}

// words returns the distinct words of the description and the arguments.
func (t *tool) words() []string {
	all := strings.FieldsFunc(strings.ToLower(t.description), isBreak)
	if t.manifest != nil {
		for name := range t.properties() {
			all = append(all, "."+strings.ToLower(name))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func isBreak(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// shared returns the fraction of all words of a and b that both contain (Jaccard index).
func shared(a, b []int) float64 {
	both := 0
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			both, i, j = both+1, i+1, j+1
		case a[i] < b[j]:
			i++
		default:
			j++
		}
	}
	return float64(both) / float64(len(a)+len(b)-both)
}
