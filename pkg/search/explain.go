package search

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Match says in which fields of a document a word of the query stands, itself or another form of it.
type Match struct {
	Word   string   `json:"word"`
	Fields []string `json:"fields"`
}

// Matches explains why a document was found: the words of the query that it has, in the order of the query. It reads
// the document once more, so it is for people and not for every search.
func (e *Entry) Matches(query string) []Match {
	has := make([]map[term]bool, len(fields))
	for i := range fields {
		has[i] = map[term]bool{}
		for _, text := range fields[i].texts(&e.Document) {
			terms(text, func(t term, _ byte, _ string) { has[i][t] = true })
		}
	}
	var found []Match
	for _, w := range understand(query) {
		for i := range has {
			if !has[i][w.term] {
				continue
			}
			at := slices.IndexFunc(found, func(m Match) bool { return m.Word == w.word })
			if at < 0 {
				at, found = len(found), append(found, Match{Word: w.word})
			}
			if !slices.Contains(found[at].Fields, fields[i].name) {
				found[at].Fields = append(found[at].Fields, fields[i].name)
			}
		}
	}
	return found
}

// Pair is two documents that are alike.
type Pair struct {
	A, B     *Entry
	Likeness float64 // 1 if every query gives both the same score
}

// A pair is sought among the documents that share one of the rarest terms of a document; a term of very many documents
// leads to nothing new.
const (
	rarest       = 8
	tooMany      = 1000
	enoughOthers = 100  // documents to compare with, after which no further term is used
	amongMany    = 100  // in a set of fewer documents, terms weigh as in one of so many: else what all share would weigh nothing
	TooAlike     = 0.85 // the likeness from which on a query hardly tells two documents apart
)

// Alike returns the pairs of at least this likeness, the most alike first. Likeness is 2ab/(aa+bb) of the weights a and
// b that the terms of two documents have: the more it is, the less the scores of the two can differ for any query.
func (ix *Index) Alike(likeness float64) []Pair {
	vectors, squares := make([][]float64, len(ix.entries)), make([]float64, len(ix.entries)) // of the terms of each entry
	for doc, e := range ix.entries {
		vectors[doc] = make([]float64, len(e.terms))
		for i, t := range e.terms {
			w := float64(e.weights[i]) * rarity(len(ix.having(t)), max(len(ix.entries), amongMany))
			vectors[doc][i] = w
			squares[doc] += w * w
		}
	}
	var pairs []Pair
	for doc, e := range ix.entries {
		for _, other := range ix.candidates(uint32(doc)) {
			dot, its := 0.0, ix.entries[other].terms
			for i, j := 0, 0; i < len(e.terms) && j < len(its); {
				switch {
				case e.terms[i] < its[j]:
					i++
				case e.terms[i] > its[j]:
					j++
				default:
					dot += vectors[doc][i] * vectors[other][j]
					i, j = i+1, j+1
				}
			}
			if l := 2 * dot / (squares[doc] + squares[other]); l >= likeness {
				pairs = append(pairs, Pair{e, ix.entries[other], l})
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b Pair) int {
		return cmp.Or(cmp.Compare(b.Likeness, a.Likeness), strings.Compare(a.A.Name, b.A.Name), strings.Compare(a.B.Name, b.B.Name))
	})
	return pairs
}

// candidates returns the later documents that share one of the rarest terms of a document.
func (ix *Index) candidates(doc uint32) []uint32 {
	var shared [][]posting
	for _, t := range ix.entries[doc].terms {
		if list := ix.having(t); len(list) > 1 && len(list) <= tooMany {
			shared = append(shared, list)
		}
	}
	slices.SortStableFunc(shared, func(a, b []posting) int { return cmp.Compare(len(a), len(b)) })
	others := map[uint32]bool{}
	for _, list := range shared[:min(len(shared), rarest)] {
		if len(others) > enoughOthers {
			break
		}
		for _, p := range list {
			if p.document() > doc {
				others[p.document()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(others))
}
