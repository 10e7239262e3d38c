package search_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"toolctl.dev/toolctl/pkg/search"
)

func find(t *testing.T, docs []search.Document, query string) string {
	t.Helper()
	return strings.Join(names(index(docs))(query, 10), " ")
}

func named(names ...string) (docs []search.Document) {
	for _, n := range names {
		docs = append(docs, search.Document{Name: n})
	}
	return docs
}

func TestNamesAreSplit(t *testing.T) {
	for _, c := range []struct{ name, query string }{
		{"get-order_status.v2", "status of an order"},
		{"sendHTTPRequest", "http"},
		{"sendHTTPRequest", "request"},
		{"DNA2AminoAcid", "amino acids"},
		{"listPDFs", "pdf"},
		{"GitHubSearch", "github"},
		{"github_search", "GitHub"},
		{"OAuth2Login", "login with oauth"},
		{"wetter_für_München", "MÜNCHEN"},
		{"ﬁle_read", "file"},       // NFKC
		{"Ｆｕｌｌｗｉｄｔｈ", "fullwidth"}, // NFKC
		{"financial_report", "finance"},
		{"delete_orders", "deleting an order"},
		{"天気予報を取得", "天気"},
		{"查询火车票", "火车"},
		{"ค้นหาโรงแรม", "โรงแรม"},
		{"render茶", "茶"},
		{"Привет_мир", "привет"},
	} {
		if got := find(t, append(named("zzz", "unrelated-thing"), search.Document{Name: c.name}), c.query); got != c.name {
			t.Errorf("%q finds %q in %q", c.query, got, c.name)
		}
	}
}

func TestEveryFieldIsFound(t *testing.T) {
	d := search.Document{
		Name: "alpha", Title: "Bravo", Description: "Does charlie.", Labels: map[string]string{"team": "delta"},
		Server: "echo", ServerDescription: "A foxtrot.", Asks: []string{"golf, please"},
		Parameters: []search.Parameter{{Name: "hotel", Description: "An india.", Enum: []string{"juliet"}}},
	}
	for word, field := range map[string]string{
		"alpha": "name", "bravo": "title", "charlie": "description", "delta": "labels", "echo": "server",
		"foxtrot": "server description", "golf": "asks", "hotel": "parameters", "india": "parameters", "juliet": "parameters",
	} {
		if got := find(t, append(named("zulu"), d), "I need the "+word); got != "alpha" {
			t.Errorf("%s finds %q", word, got)
		}
		if got, want := search.Analyse(d).Matches("I need the "+word), []search.Match{{Word: word, Fields: []string{field}}}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: matches %v, want %v", word, got, want)
		}
	}
}

func TestMatchesNameWordsOfTheQuery(t *testing.T) {
	d := search.Document{Name: "refund_order", Description: "Refunds orders of a customer."}
	want := []search.Match{{"refunding", []string{"name", "description"}}, {"orders", []string{"name", "description"}}, {"customer", []string{"description"}}}
	if got := search.Analyse(d).Matches("Please help: refunding two orders for a customer, quickly"); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestValuesSpeakByTheirKind(t *testing.T) {
	docs := []search.Document{
		{Name: "write_file", Parameters: []search.Parameter{{Name: "path"}, {Name: "content"}}},
		{Name: "fetch", Parameters: []search.Parameter{{Name: "url"}}},
		{Name: "invite", Parameters: []search.Parameter{{Name: "email"}}},
		{Name: "acme", Description: "acme notes"},
	}
	for query, want := range map[string]string{
		"save it to /home/me/notes/acme.md": "write_file",
		"https://acme.example/notes?x=1":    "fetch",
		"ann@acme.example":                  "invite",
	} {
		if got := names(index(docs))(query, 1); len(got) != 1 || got[0] != want {
			t.Errorf("%q finds %q, not %q", query, got, want)
		}
	}
}

func TestOrderAndLimit(t *testing.T) {
	docs := named("r-order", "p-order", "q-order", "z-other")
	if got := find(t, docs, "order"); got != "p-order q-order r-order" {
		t.Errorf("hits of one score are not by name: %s", got)
	}
	if got := find(t, docs, "  "); got != "p-order q-order r-order z-other" {
		t.Errorf("a blank query does not browse: %s", got)
	}
	if got := find(t, docs, "nowhere"); got != "" {
		t.Errorf("a word that no document has finds %s", got)
	}
	ix := index(docs)
	for _, limit := range []int{-1, 0} {
		if got := ix.Search("order", limit, nil); len(got) != 0 {
			t.Errorf("limit %d: %v", limit, got)
		}
	}
	keep := func(e *search.Entry) bool { return e.Name != "p-order" }
	if got := ix.Search("order", 1, keep); len(got) != 1 || got[0].Name != "q-order" || got[0].Score != ix.Search("order", 1, nil)[0].Score {
		t.Errorf("keep: %v", got)
	}
	if got := search.New(nil).Search("order", 5, nil); len(got) != 0 {
		t.Errorf("an empty index finds %v", got)
	}
}

// What a caller may not see is in no way told by scores, counts or order: an index over the documents of a library that
// he may see answers as one that never met the others.
func TestHiddenDocumentsChangeNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		all := catalog(rng, 60)
		var visible []search.Document
		for _, d := range all {
			if rng.IntN(2) == 0 {
				visible = append(visible, d)
			}
		}
		lib := search.NewLibrary(1000)
		lib.Index(all)
		query := sentence(rng, 1+rng.IntN(12))
		got, want := lib.Index(visible).Search(query, 10, nil), index(visible).Search(query, 10, nil)
		if len(got) != len(want) {
			t.Fatalf("%q finds %d, want %d", query, len(got), len(want))
		}
		for i := range got {
			if got[i].Name != want[i].Name || got[i].Score != want[i].Score {
				t.Fatalf("%q: hit %d is %s %v, want %s %v", query, i, got[i].Name, got[i].Score, want[i].Name, want[i].Score)
			}
		}
	})
}

func TestSearchIsTheSameEachTime(t *testing.T) {
	docs := catalog(rand.New(rand.NewPCG(1, 2)), 300)
	first := index(docs)
	for i := range 20 {
		query := sentence(rand.New(rand.NewPCG(3, uint64(i))), 8)
		want := first.Search(query, 20, nil)
		slices.Reverse(docs)
		var wg sync.WaitGroup
		ix := index(docs)
		for range 4 {
			wg.Go(func() {
				got := ix.Search(query, 20, nil)
				for j := range want {
					if got[j].Name != want[j].Name || got[j].Score != want[j].Score {
						t.Errorf("%q: hit %d is %s %v, was %s %v", query, j, got[j].Name, got[j].Score, want[j].Name, want[j].Score)
					}
				}
			})
		}
		wg.Wait()
	}
}

func TestLibraryReadsWhatChanged(t *testing.T) {
	docs := catalog(rand.New(rand.NewPCG(5, 6)), 50)
	lib := search.NewLibrary(100)
	before := lib.Index(docs)
	if lib.Index(slices.Clone(docs)) != before {
		t.Error("the same set has two indexes")
	}
	entry := func(ix *search.Index, name string) *search.Entry {
		for _, h := range ix.Search("", 1000, nil) {
			if h.Name == name {
				return h.Entry
			}
		}
		return nil
	}
	changed := slices.Clone(docs)
	changed[0].Description = "Something new about zebras."
	after := lib.Index(changed)
	if entry(after, docs[1].Name) != entry(before, docs[1].Name) {
		t.Error("a document that did not change was read again")
	}
	if got := after.Search("zebra", 5, nil); len(got) != 1 || got[0].Name != docs[0].Name {
		t.Errorf("the change is not found: %v", got)
	}
	lib.Index(docs[:30]) // 130 documents: the oldest index goes
	if lib.Index(docs) == before {
		t.Error("an index stayed beyond the bound")
	}
}

func TestAlike(t *testing.T) {
	docs := append(catalog(rand.New(rand.NewPCG(7, 8)), 200),
		search.Document{Name: "get-customer", Description: "Returns one customer of the shop."},
		search.Document{Name: "getCustomers", Description: "Returns one customer of this shop."},
		search.Document{Name: "delete-customer", Description: "Deletes one customer of the shop."})
	pairs := index(docs).Alike(search.TooAlike)
	found := false
	for _, p := range pairs {
		found = found || p.A.Name == "get-customer" && p.B.Name == "getCustomers"
		if p.A.Name == "delete-customer" || p.B.Name == "delete-customer" {
			t.Errorf("%s and %s are said to be alike (%.2f)", p.A.Name, p.B.Name, p.Likeness)
		}
	}
	if !found {
		t.Errorf("get-customer and getCustomers are not said to be alike: %v", pairs)
	}
}

func FuzzSearch(f *testing.F) {
	f.Add("get-order", "Returns an order.", "where is my order?")
	f.Add("天気 予報", "ค้นหาโรงแรม\xff", "’’''  /a/b.c x@y.z http://a")
	f.Add("DžDŽdžPDFs", "a\u0301 ﬃ ①②③", "İıſß")
	f.Fuzz(func(t *testing.T, name, text, query string) {
		docs := []search.Document{{Name: name, Description: text, Asks: []string{query}}, {Name: text, Title: query, Parameters: []search.Parameter{{Name: name, Enum: []string{text}}}}}
		ix := index(docs)
		hits := ix.Search(query, 5, nil)
		for i, h := range hits {
			if !(h.Score >= 0) || i > 0 && h.Score > hits[i-1].Score {
				t.Errorf("scores %v", hits)
			}
			h.Matches(query)
		}
		ix.Alike(search.TooAlike)
	})
}

// catalog returns documents of words that are as rare as words are: the second half as often as the first.
func catalog(rng *rand.Rand, n int) (docs []search.Document) {
	for i := range n {
		d := search.Document{Name: fmt.Sprintf("%s_%s_%d", word(rng), word(rng), i), Description: sentence(rng, 8+rng.IntN(24)), Server: fmt.Sprint("server", i/20)}
		for range rng.IntN(5) {
			d.Parameters = append(d.Parameters, search.Parameter{Name: word(rng) + "_" + word(rng), Description: sentence(rng, rng.IntN(10))})
		}
		docs = append(docs, d)
	}
	return docs
}

func sentence(rng *rand.Rand, n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = word(rng)
	}
	return strings.Join(list, " ")
}

func word(rng *rand.Rand) string {
	const syllables = "kalomirasenutodivepahuzocemifa"
	n := int(8000 * rng.Float64() * rng.Float64() * rng.Float64())
	var w strings.Builder
	for w.Len() < 6 || n > 0 {
		w.WriteString(syllables[2*(n%15) : 2*(n%15)+2])
		n /= 15
	}
	return w.String()
}

const many = 20_000

// BenchmarkIndex analyses and indexes 20,000 tools; BenchmarkView indexes them once more, as for another set.
func BenchmarkIndex(b *testing.B) {
	docs := catalog(rand.New(rand.NewPCG(1, 1)), many)
	for b.Loop() {
		search.NewLibrary(many).Index(docs)
	}
}

func BenchmarkView(b *testing.B) {
	docs := catalog(rand.New(rand.NewPCG(1, 1)), many)
	lib := search.NewLibrary(10 * many)
	lib.Index(docs)
	for n := 0; b.Loop(); n++ {
		lib.Index(docs[n%many/2:])
	}
}

func BenchmarkSearch(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	ix := index(catalog(rng, many))
	var queries []string
	for range 100 {
		queries = append(queries, sentence(rng, 5+rng.IntN(30)))
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		ix.Search(queries[n%len(queries)], 5, nil)
	}
}
