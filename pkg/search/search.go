// Package search finds the tools that fit a request in plain words, by BM25F over what their manifests say. It needs no
// network and no model, and reads nothing but the documents that it is given.
//
// What a word weighs depends on how many documents have it, so a score tells something of every document that was
// counted. An [Index] therefore holds exactly the documents that its callers may see: there is none that filters what
// others may see out of one big index, whose scores, counts and timing would speak of hidden tools. Such indexes are
// cheap, since they share their documents, analysed once ([Analyse]); a [Library] keeps the ones in use.
package search

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
)

// Document is what a search can find: a tool as those who look for it know it.
type Document struct {
	Name, Title, Description string
	Parameters               []Parameter
	Labels                   map[string]string
	Server                   string
	ServerDescription        string
	Asks                     []string // how people ask for it: keywords, and the asks of examples
}

// Parameter is one parameter of a tool.
type Parameter struct {
	Name, Description string
	Enum              []string
}

// field is a part of a document. A word counts weight/(1-slope+slope*length/typical) there, where length is the
// number of words in the field: a word among few says more. Lengths are compared with a typical one and not with the
// mean of the set, so that a document is analysed once for all sets.
type field struct {
	name                   string
	weight, slope, typical float64
	phrases                bool // whether pairs of words count, which take the most memory
	texts                  func(*Document) []string
}

var fields = []field{
	{"name", 4, 0.7, 4, true, func(d *Document) []string { return []string{d.Name} }},
	{"title", 4, 0.7, 4, true, func(d *Document) []string { return []string{d.Title} }},
	{"description", 1, 0.45, 12, true, func(d *Document) []string { return []string{d.Description} }},
	{"parameters", 0.4, 0.6, 12, false, parameterTexts},
	{"asks", 1, 0.5, 12, true, func(d *Document) []string { return d.Asks }},
	{"labels", 1, 0.7, 4, false, func(d *Document) []string { return slices.Sorted(maps.Values(d.Labels)) }},
	{"server", 1, 0.7, 4, true, func(d *Document) []string { return []string{d.Server} }},
	{"server description", 0.3, 0.6, 12, false, func(d *Document) []string { return []string{d.ServerDescription} }},
}

func parameterTexts(d *Document) (texts []string) {
	for _, p := range d.Parameters {
		texts = append(append(texts, p.Name, p.Description), p.Enum...)
	}
	return texts
}

// saturation is how soon a word that is said again adds nothing (k1 of BM25).
const saturation = 4

// Entry is a document, analysed. It does not change; any number of indexes share it.
type Entry struct {
	Document
	terms   []term   // each once
	weights []uint16 // of the terms, from 1 to maxWeight
}

// Analyse reads a document.
func Analyse(d Document) *Entry {
	type said struct {
		term
		weight float64
	}
	var all []said
	name := 0 // terms of the name
	for i := range fields {
		f, from, length := &fields[i], len(all), 0
		for _, text := range f.texts(&d) {
			length += terms(text, func(t term, kind byte, _ string) {
				repeated := f.name == "title" && slices.ContainsFunc(all[:name], func(s said) bool { return s.term == t })
				if !repeated && (kind != pairTerm || f.phrases) {
					all = append(all, said{term: t})
				}
			})
		}
		for j := range all[from:] {
			all[from+j].weight = f.weight / (1 - f.slope + f.slope*float64(length)/f.typical)
		}
		if f.name == "name" {
			name = len(all)
		}
	}
	slices.SortStableFunc(all, func(a, b said) int { return cmp.Compare(a.term, b.term) })
	distinct := 0
	for i := range all {
		if i == 0 || all[i].term != all[i-1].term {
			distinct++
		}
	}
	e := &Entry{Document: d, terms: make([]term, 0, distinct), weights: make([]uint16, 0, distinct)}
	for i := 0; i < len(all); {
		t, sum := all[i].term, 0.0
		for ; i < len(all) && all[i].term == t; i++ {
			sum += all[i].weight
		}
		e.terms = append(e.terms, t)
		e.weights = append(e.weights, uint16(math.Ceil(sum/(saturation+sum)*maxWeight)))
	}
	return e
}

// posting says that a document has a term, in one number, so that the postings of an index are one sorted slice: the
// term, the document, and the weight.
type posting uint64

const (
	documentBits = 22
	weightBits   = 10
	maxDocuments = 1 << documentBits // more are not indexed
	maxWeight    = 1<<weightBits - 1
)

func (p posting) document() uint32 { return uint32(p>>weightBits) & (maxDocuments - 1) }
func (p posting) weight() float32  { return float32(p&maxWeight) * ((saturation + 1.0) / maxWeight) }

// Index finds documents of one set. It does not change and may be used by any number of goroutines.
type Index struct {
	entries  []*Entry // by name
	postings []posting
	scores   sync.Pool // of *[]score, one for each entry
}

type score struct{ sum, matched float32 }

// New returns an index of these documents.
func New(entries []*Entry) *Index {
	ix := &Index{entries: slices.SortedStableFunc(slices.Values(entries), func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })}
	ix.entries = ix.entries[:min(len(ix.entries), maxDocuments)]
	n := 0
	for _, e := range ix.entries {
		n += len(e.terms)
	}
	ix.postings = make([]posting, 0, n)
	for doc, e := range ix.entries {
		for i, t := range e.terms {
			ix.postings = append(ix.postings, posting(t)<<(documentBits+weightBits)|posting(doc)<<weightBits|posting(e.weights[i]))
		}
	}
	slices.Sort(ix.postings)
	ix.scores.New = func() any { s := make([]score, len(ix.entries)); return &s }
	return ix
}

// Entries returns the documents by name. The caller must not change the slice.
func (ix *Index) Entries() []*Entry { return ix.entries }

// having returns the postings of a term.
func (ix *Index) having(t term) []posting {
	const shift = documentBits + weightBits
	from, _ := slices.BinarySearch(ix.postings, posting(t)<<shift)
	to, _ := slices.BinarySearchFunc(ix.postings[from:], t, func(p posting, t term) int { return cmp.Or(cmp.Compare(term(p>>shift), t), -1) })
	return ix.postings[from : from+to]
}

// rarity is what a term weighs that n of all documents have (idf).
func rarity(n, all int) float64 {
	return math.Log(1 + (float64(all-n)+0.5)/(float64(n)+0.5))
}

// A document that has more of the different words of the query is better than one that has a few of them often. Few
// requests have more to say than enough, as a sum of weights.
const (
	breadth = 0.2
	enough  = 25
)

// Hit is a document that was found.
type Hit struct {
	*Entry
	Score float64
}

// Search returns the documents that fit the query best, at most limit, the best first and those of one score by name.
// Without a word in the query it returns the first documents by name. Where keep is given, only documents for which it
// returns true are found; that changes no score.
func (ix *Index) Search(query string, limit int, keep func(*Entry) bool) []Hit {
	if limit <= 0 {
		return nil
	}
	var best []Hit
	add := func(h Hit) {
		if len(best) >= limit && h.Score <= best[limit-1].Score || keep != nil && !keep(h.Entry) {
			return // of one score, the first by name came first
		}
		i, _ := slices.BinarySearchFunc(best, h, func(in, h Hit) int { return cmp.Or(cmp.Compare(h.Score, in.Score), -1) })
		best = slices.Insert(best[:min(len(best), limit-1)], i, h)
	}
	if strings.TrimSpace(query) == "" {
		for _, e := range ix.entries {
			add(Hit{e, 0})
		}
		return best
	}
	scores := ix.scores.Get().(*[]score)
	defer func() {
		clear(*scores)
		ix.scores.Put(scores)
	}()
	total := 0.0
	for _, w := range understand(query) {
		list := ix.having(w.term)
		weight := w.weight * rarity(len(list), len(ix.entries))
		if len(list) > 0 {
			total += weight
		}
		for _, p := range list {
			s := &(*scores)[p.document()]
			s.sum += float32(weight) * p.weight()
			s.matched += float32(weight)
		}
	}
	for doc, s := range *scores {
		if s.sum > 0 && (len(best) < limit || float64(s.sum) > best[limit-1].Score) { // a share makes no score higher
			share := min(1, float64(s.matched)/min(total, enough))
			add(Hit{ix.entries[doc], float64(s.sum) * math.Pow(share, breadth)})
		}
	}
	return best
}
