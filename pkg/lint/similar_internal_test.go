package lint

import (
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// What is found is what comparing each tool with each other one finds.
func TestSimilarFindsAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sets := rapid.SliceOfN(rapid.SliceOfNDistinct(rapid.IntRange(0, 14), 3, 13, rapid.ID[int]), 2, 25).Draw(t, "sets")
		text := make([]int, len(sets))
		for i := range sets {
			slices.Sort(sets[i])
			text[i] = rapid.IntRange(0, i).Draw(t, "text")
		}
		before := func(j, i int) bool { return text[j] < text[i] }
		others, _ := similar(sets, text)
		for i := range sets {
			want := slices.ContainsFunc(sets, func(other []int) bool {
				j := slices.IndexFunc(sets, func(s []int) bool { return &s[0] == &other[0] })
				return before(j, i) && len(sets[i]) >= fewWords && len(other) >= fewWords && shared(sets[i], other) >= similarity
			})
			if got := others[i]; (got >= 0) != want || got >= 0 && (shared(sets[i], sets[got]) < similarity || !before(got, i)) {
				t.Fatalf("tool %d of %v with descriptions %v: got %d, want one: %v", i, sets, text, got, want)
			}
		}
	})
}

// The work grows with the tools, be they copies, nearly copies, or of few words.
func TestSimilarLooksAtFew(t *testing.T) {
	const many = 5000
	random := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name string
		tool func(i int) (words []int, text int)
		most int // places for each tool
	}{
		{"copies", func(int) ([]int, int) { return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 0 }, 0},
		{"one description, other arguments", func(i int) ([]int, int) {
			return []int{i, many + 1, many + 2, many + 3, many + 4, many + 5, many + 6}, 0
		}, 0},
		{"nearly copies", func(i int) ([]int, int) {
			words := []int{i}
			for w := range 20 {
				words = append(words, many+w)
			}
			return words, i
		}, 1},
		{"500 words, 15 each", func(i int) ([]int, int) {
			words := random.Perm(500)[:15]
			slices.Sort(words)
			return words, i
		}, 300},
	} {
		words, text := make([][]int, many), make([]int, many)
		for i := range many {
			words[i], text[i] = tc.tool(i)
		}
		if _, looked := similar(words, text); looked > tc.most*many {
			t.Errorf("%s: %d places for each tool, want at most %d", tc.name, looked/many, tc.most)
		}
	}
}
