package search_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kljensen/snowball/english"
	_ "modernc.org/sqlite"

	"toolctl.dev/toolctl/pkg/search"
)

// publishedSet is one public set of tools, with requests for them.
type publishedSet struct {
	Tools []struct {
		Name, Title, Description string
		Parameters               map[string]string
	}
	Queries []search.Case
}

func (s publishedSet) documents() []search.Document {
	var docs []search.Document
	for _, t := range s.Tools {
		d := search.Document{Name: t.Name, Title: t.Title, Description: t.Description}
		for name, description := range t.Parameters {
			d.Parameters = append(d.Parameters, search.Parameter{Name: name, Description: description})
		}
		slices.SortFunc(d.Parameters, func(a, b search.Parameter) int { return strings.Compare(a.Name, b.Name) })
		docs = append(docs, d)
	}
	return docs
}

func index(docs []search.Document) *search.Index {
	var entries []*search.Entry
	for _, d := range docs {
		entries = append(entries, search.Analyse(d))
	}
	return search.New(entries)
}

func names(ix *search.Index) func(string, int) []string {
	return func(ask string, limit int) (found []string) {
		for _, h := range ix.Search(ask, limit, nil) {
			found = append(found, h.Name)
		}
		return found
	}
}

var published = []struct {
	key, name string
	floor     float64 // recall@5 that may not be lost
}{
	{"stb", "StableToolBench", .74}, {"metatool", "MetaTool", .63}, {"metatool-multi", "MetaTool double", .68},
	{"livemcp", "LiveMCPBench", .33}, {"bfcl", "BFCL", .87},
}

// TestPublishedSets measures the search on public sets and prints a table (make bench-search), beside SQLite's FTS5.
func TestPublishedSets(t *testing.T) {
	file := os.Getenv("TOOLCTL_TOOL_SEARCH")
	if file == "" {
		t.Skip("TOOLCTL_TOOL_SEARCH names no file with the public sets of tools and requests")
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var sets map[string]publishedSet
	if err := json.Unmarshal(raw, &sets); err != nil {
		t.Fatal(err)
	}
	head, line := "| ranker (recall@5) |", "| --- |"
	for _, p := range published {
		head += fmt.Sprintf(" %s, %d tools, %d asks |", p.name, len(sets[p.key].Tools), len(sets[p.key].Queries))
		line += " --- |"
	}
	fmt.Println(head + "\n" + line)
	if testing.Verbose() { // nobody else reads the table
		for _, way := range fullTextWays {
			row := "| " + way.name + " |"
			for _, p := range published {
				row += fmt.Sprintf(" %.3f |", fullText(t, sets[p.key], way))
			}
			fmt.Println(row)
		}
	}
	row, more := "| toolctl |", "| recall@1 / @10, nDCG@10 |"
	for _, p := range published {
		s := sets[p.key]
		r := search.Evaluate(s.Queries, names(index(s.documents())))
		row += fmt.Sprintf(" %.3f ± %.3f |", r.Recall5, standardError(r))
		more += fmt.Sprintf(" %.3f / %.3f, %.3f |", r.Recall1, r.Recall10, r.NDCG10)
		if r.Recall5 < p.floor {
			t.Errorf("%s: recall@5 is %.3f, less than %.2f", p.name, r.Recall5, p.floor)
		}
	}
	fmt.Println(row + "\n" + more)
	if r := withAsks(sets["metatool"]); r.Recall5 < .76 {
		t.Errorf("MetaTool with five asks a tool: recall@5 is %.3f, less than .76", r.Recall5)
	} else {
		fmt.Printf("\nMetaTool with at most five asks a tool, from the half of the requests that is not measured: %.3f ± %.3f\n", r.Recall5, standardError(r))
	}
}

// withAsks measures each half of the requests with five asks a tool from the other half.
func withAsks(s publishedSet) (both search.Report) {
	for half := range 2 {
		docs, at := s.documents(), map[string]int{}
		for i, d := range docs {
			at[d.Name] = i
		}
		var measured []search.Case
		for i, q := range s.Queries {
			if d := &docs[at[q.Right[0][0]]]; i%2 == half {
				measured = append(measured, q)
			} else if len(d.Asks) < 5 {
				d.Asks = append(d.Asks, q.Ask)
			}
		}
		r := search.Evaluate(measured, names(index(docs)))
		both.Recall5 += r.Recall5 * float64(r.Cases) / float64(len(s.Queries))
		both.Cases += r.Cases
		both.Misses = append(both.Misses, r.Misses...)
	}
	return both
}

// standardError is that of recall@5: what is no miss has a recall of 1.
func standardError(r search.Report) float64 {
	n := float64(r.Cases)
	sum := (n - float64(len(r.Misses))) * (1 - r.Recall5) * (1 - r.Recall5)
	for _, m := range r.Misses {
		sum += (m.Recall5 - r.Recall5) * (m.Recall5 - r.Recall5)
	}
	return math.Sqrt(sum) / n
}

// fullTextWays are the ways to use FTS5 that the table has.
var fullTextWays = []struct {
	name  string
	split bool // names, and parameters as a third column
	stop  bool // leave out stop words of the query
	order string
}{
	{"FTS5, porter, name and description", false, false, "bm25(t, 1, 1, 0)"},
	{"FTS5, names split, parameters, weights 3 / 1 / .5", true, false, "bm25(t, 3, 1, .5)"},
	{"the same without stop words", true, true, "bm25(t, 3, 1, .5)"},
}

var (
	anyWord  = regexp.MustCompile(`[\p{L}\p{N}]+`)
	caseEdge = regexp.MustCompile(`(\p{Ll})(\p{Lu})`)
)

func fullText(t *testing.T, s publishedSet, way struct {
	name  string
	split bool
	stop  bool
	order string
}) float64 {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE VIRTUAL TABLE t USING fts5(name, description, parameters, tokenize='porter unicode61')"); err != nil {
		t.Fatal(err)
	}
	for i, d := range s.documents() {
		name, parameters := d.Name, ""
		if way.split {
			name = strings.Join(anyWord.FindAllString(caseEdge.ReplaceAllString(name, "$1 $2"), -1), " ")
			for _, p := range d.Parameters {
				parameters += caseEdge.ReplaceAllString(p.Name, "$1 $2") + " " + p.Description + " "
			}
		}
		if _, err := db.Exec("INSERT INTO t (rowid, name, description, parameters) VALUES (?, ?, ?, ?)", i, name, d.Description, parameters); err != nil {
			t.Fatal(err)
		}
	}
	return search.Evaluate(s.Queries, func(ask string, limit int) (found []string) {
		var terms []string
		for _, w := range anyWord.FindAllString(ask, -1) {
			if !way.stop || !english.IsStopWord(strings.ToLower(w)) {
				terms = append(terms, `"`+w+`"`)
			}
		}
		if len(terms) == 0 {
			return nil
		}
		rows, err := db.Query("SELECT rowid FROM t WHERE t MATCH ? ORDER BY "+way.order+" LIMIT ?", strings.Join(terms, " OR "), limit)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var i int
			if err := rows.Scan(&i); err != nil {
				t.Fatal(err)
			}
			found = append(found, s.Tools[i].Name)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		return found
	}).Recall5
}
