package search

import (
	"regexp"
	"strings"
	"sync"
)

// What a term of the query counts beside a stem.
const (
	rootWeight    = 0.4
	pairWeight    = 0.4
	requestWeight = 0.4 // a word of the request, not of what is wanted
	kindWeight    = 2   // the kind of a value that stands in the query
)

// requestWords say that somebody asks, seldom for what: in a long query they are noise, and in a short one all there
// is, so they count less. Most are from the stop words of the SMART system (Salton, 1971), which was made for
// questions in sentences.
var requestWords = sync.OnceValue(func() map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(`additionally also appreciate ask asking assist available could currently finally
		find finding furthermore get gets getting give given gives go going hello help helps hey hi hopefully interested
		know let like liked look looking make may maybe might moreover need needed needs ok okay please possible provide
		provided provides providing regarding see shall show shows something someone suggest sure take tell thank thanks
		think try trying use used using want wanted wants way welcome well wish wonder wondering would`) {
		set[w] = true
	}
	return set
})

const path = "file path"

// kinds are the values that people write into a query. Such a value says nothing of a tool, but its kind does: a query
// with a path wants a tool that takes one.
var kinds = sync.OnceValue(func() []kind {
	return []kind{
		{regexp.MustCompile(`(?i)\b(?:https?://|www\.)[^\s'"<>)]+`), "url"},
		{regexp.MustCompile(`[\w.+-]+@[\w-]+\.[\w.]*\w`), "email"},
		{regexp.MustCompile(`(?:^|[\s'"(=])(?:~|\.{1,2})?/[\w./-]*\w`), path},
	}
})

type kind struct {
	value *regexp.Regexp
	words string
}

var number = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\d(?:[ .-]?\d){3,}`) })

// WithoutValues returns a query with "…" for addresses, paths, and numbers of at least four digits, which say who asked
// and nothing of a tool.
func WithoutValues(query string) string {
	for _, k := range kinds() {
		query = k.value.ReplaceAllString(query, " … ")
	}
	return number().ReplaceAllString(query, "…")
}

// maxQuery is how many bytes of a query are read.
const maxQuery = 8 << 10

// wanted is one term of a query, and the word that it is from.
type wanted struct {
	term
	weight float64
	word   string
}

// understand returns the terms of a query in the order of the text, each once.
func understand(query string) []wanted {
	query = query[:min(len(query), maxQuery)]
	var found []wanted
	at := map[term]int{}
	add := func(text string, factor float64) {
		terms(text, func(t term, kind byte, word string) {
			weight := factor
			switch kind {
			case rootTerm:
				weight *= rootWeight
			case pairTerm:
				weight *= pairWeight
			}
			if kind != pairTerm && requestWords()[word] {
				weight *= requestWeight
			}
			i, ok := at[t]
			if !ok {
				i = len(found)
				at[t] = i
				found = append(found, wanted{term: t, word: word})
			}
			found[i].weight += weight
		})
	}
	var values []string
	for _, k := range kinds() {
		rest := k.value.ReplaceAllStringFunc(query, func(value string) string {
			if dot := strings.LastIndexByte(value, '.'); dot > 0 && k.words == path {
				return " " + value[dot:] + " " // the extension is a word
			}
			return " "
		})
		if rest != query {
			query, values = rest, append(values, k.words)
		}
	}
	add(query, 1)
	for _, text := range values {
		add(text, kindWeight)
	}
	for i := range found {
		found[i].weight *= 2 / (1 + found[i].weight) // a word said twice counts more, not double
	}
	return found
}
