package search

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"

	"toolctl.dev/toolctl/internal/parallel"
)

// Library keeps the indexes of the sets of documents that are in use, and analyses a document once for all of them. After
// a reload only what changed is read. It may be used by any number of goroutines.
type Library struct {
	// Whole keeps the parameters in the documents of entries. Without it they are dropped after they were analysed, because
	// they are most of a document. It must be set before the first index is made.
	Whole bool

	mu        sync.Mutex
	documents int
	entries   map[digest]*Entry
	shelf     []volume // the last used first
}

type digest [sha256.Size]byte

type volume struct {
	set   digest
	index *Index
}

// NewLibrary returns a library that keeps indexes of so many documents in sum, and at least the one used last. An index
// takes about 2 KB a document.
func NewLibrary(documents int) *Library {
	return &Library{documents: documents, entries: map[digest]*Entry{}}
}

// Index returns the index of these documents, and only of these. It reads all their texts, so the caller should hold on
// to the index for as long as the set stays the same.
func (l *Library) Index(docs []Document) *Index {
	members := make([]digest, len(docs))
	parallel.Each(len(docs), func(i int) { members[i] = sha256.Sum256(fmt.Appendf(nil, "%q", docs[i])) })
	set := setOf(members)

	l.mu.Lock() // who asks for the same set meanwhile waits for it
	defer l.mu.Unlock()
	at := slices.IndexFunc(l.shelf, func(v volume) bool { return v.set == set })
	if at < 0 {
		entries := make([]*Entry, len(docs))
		parallel.Each(len(docs), func(i int) {
			if entries[i] = l.entries[members[i]]; entries[i] == nil {
				if entries[i] = Analyse(docs[i]); !l.Whole {
					entries[i].Parameters = nil
				}
			}
		})
		for i, m := range members {
			l.entries[m] = entries[i]
		}
		at, l.shelf = len(l.shelf), append(l.shelf, volume{set, New(entries)})
	}
	v := l.shelf[at]
	l.shelf = slices.Insert(slices.Delete(l.shelf, at, at+1), 0, v)
	l.clearOut()
	return v.index
}

func setOf(members []digest) digest {
	h := sha256.New()
	for _, m := range slices.SortedFunc(slices.Values(members), func(a, b digest) int { return bytes.Compare(a[:], b[:]) }) {
		h.Write(m[:])
	}
	return digest(h.Sum(nil))
}

// clearOut forgets the indexes that were used longest ago, with the documents that no other index has.
func (l *Library) clearOut() {
	sum, used := 0, map[*Entry]bool{}
	for i, v := range l.shelf {
		if sum += len(v.index.entries); i > 0 && sum > l.documents {
			l.shelf = slices.Delete(l.shelf, i, len(l.shelf))
			maps.DeleteFunc(l.entries, func(_ digest, e *Entry) bool { return !used[e] })
			return
		}
		for _, e := range v.index.entries {
			used[e] = true
		}
	}
}
