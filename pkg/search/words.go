package search

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"
)

// token is one word of a text in lower case. Of a word that case or digits split (GitHub), neighbouring parts come once
// more as a whole, for people write it either way (git, hub, github); such a whole takes no place of its own.
type token struct {
	text  string
	whole bool
	gram  bool // two characters of a script that puts no spaces between words, or one that stands alone
}

// maxText is how many bytes of a text are read, maxWord how long a word may be: what is longer is data.
const (
	maxText = 32 << 10
	maxWord = 128
)

// words splits a text at everything that is no letter, digit or mark, and within words where lower case meets upper,
// where letters meet digits, and before the last capital of several (HTTPServer). Scripts without spaces are cut into
// overlapping pairs of characters.
func words(text string) []token {
	var tokens []token
	text = norm.NFKC.String(strings.ToValidUTF8(text[:min(len(text), maxText)], " "))
	for text != "" {
		first, _ := utf8.DecodeRuneInString(text)
		n := strings.IndexFunc(text, func(r rune) bool { return scriptOf(r) != scriptOf(first) })
		if n < 0 {
			n = len(text)
		}
		switch run := text[:n]; {
		case scriptOf(first) == unspacedScript:
			tokens = pairs(tokens, run)
		case scriptOf(first) == spacedScript && n <= maxWord:
			word, _, _ := strings.Cut(strings.Trim(strings.ReplaceAll(run, "’", "'"), "'"), "'") // it's, user's
			tokens = split(tokens, word)
		}
		text = text[n:]
	}
	return tokens
}

const (
	noScript = iota
	spacedScript
	unspacedScript
)

func scriptOf(r rune) int {
	switch {
	case r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar):
		return unspacedScript
	case unicode.In(r, unicode.L, unicode.N, unicode.M) || r == '\'' || r == '’':
		return spacedScript
	}
	return noScript
}

func split(tokens []token, word string) []token {
	runes, from, last := []rune(word), 0, ""
	cut := func(to int) {
		part := strings.ToLower(string(runes[from:to]))
		tokens = append(tokens, token{text: part})
		if last != "" {
			tokens = append(tokens, token{text: last + part, whole: true})
		}
		from, last = to, part
	}
	for i := 1; i < len(runes); i++ {
		before, r := runes[i-1], runes[i]
		switch {
		case unicode.IsDigit(before) != unicode.IsDigit(r) && !unicode.IsMark(r), unicode.IsLower(before) && unicode.IsUpper(r):
			cut(i)
		case unicode.IsUpper(before) && unicode.IsLower(r) && i-1 > from:
			if r == 's' && (i+1 == len(runes) || !unicode.IsLower(runes[i+1])) { // PDFs
				cut(i)
				from++
			} else {
				cut(i - 1)
			}
		}
	}
	if from < len(runes) {
		cut(len(runes))
	}
	return tokens
}

func pairs(tokens []token, run string) []token {
	runes := []rune(run)
	for i := range max(1, len(runes)-1) {
		tokens = append(tokens, token{text: string(runes[i:min(i+2, len(runes))]), gram: true})
	}
	return tokens
}

// rootLength is how many letters a word shares with its relatives whose endings no stemmer takes off: finance and
// financial, analysis and analyze.
const rootLength = 5

// A word counts by its stem, by its first letters, and by the pair that it makes with the word before it.
const (
	stemTerm = 's'
	rootTerm = 'r'
	pairTerm = 'p'
)

// term is one thing that a document and a query may have in common, as a hash: of a million terms, a word that none of
// them is looks like one of them once in four thousand times, and then adds a little noise to a score.
type term uint32

func hash(kind byte, texts ...string) term {
	h := (uint32(2166136261) ^ uint32(kind)) * 16777619 // FNV-1a
	for _, text := range texts {
		for i := range len(text) {
			h = (h ^ uint32(text[i])) * 16777619
		}
		h = (h ^ 0xff) * 16777619 // no byte of UTF-8
	}
	return term(h)
}

// terms calls yield with the terms of a text, each with its kind and its word, and returns the number of words that
// carry meaning.
func terms(text string, yield func(t term, kind byte, word string)) (length int) {
	before := ""
	for _, w := range words(text) {
		if w.gram {
			yield(hash(stemTerm, w.text), stemTerm, w.text)
			length, before = length+1, ""
			continue
		}
		if english.IsStopWord(w.text) {
			before = ""
			continue
		}
		stem := english.Stem(w.text, true)
		yield(hash(stemTerm, stem), stemTerm, w.text)
		if w.whole {
			continue
		}
		length++
		if letters := []rune(w.text); len(letters) >= 3 {
			yield(hash(rootTerm, string(letters[:min(rootLength, len(letters))])), rootTerm, w.text)
		}
		if before != "" {
			yield(hash(pairTerm, before, stem), pairTerm, w.text)
		}
		before = stem
	}
	return length
}
