package lint

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// Two tools are similar when they share this part of their words, and have enough words
// for that to say something.
const (
	similarity = 0.8
	fewWords   = 5
)

// similarTools finds pairs by the rarest words of each tool: two sets that share 80 % of
// their words share one of the rarest 20 % and one more (Chaudhuri et al. 2006, prefix
// filtering), so few pairs are compared.
func similarTools(s *surface, found func(Finding)) {
	words := ranked(s.tools)
	by := map[int][]int{} // tools before, by each of their rarest words
	for i, t := range s.tools {
		if len(words[i]) < fewWords {
			continue
		}
		rare := words[i][:len(words[i])-int(similarity*float64(len(words[i])))+1]
		compared, similar := map[int]bool{}, false
		for _, w := range rare {
			for _, j := range by[w] {
				if similar || compared[j] {
					continue // one that is similar is enough
				}
				compared[j] = true
				other := s.tools[j]
				if shared(words[i], words[j]) < similarity || plain(t.description) == plain(other.description) {
					continue
				}
				similar = true
				f := t.at("/spec/description", "%s has nearly the same words and arguments", other.name)
				f.also = other.head
				found(f)
			}
			by[w] = append(by[w], i)
		}
	}
}

// ranked returns the words of each tool as numbers, the rarest words of all tools first.
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

// words are those of the description and the arguments, each once.
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

// shared is the part of all words of both that both have (Jaccard).
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
