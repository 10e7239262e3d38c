package console

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// column is a column of a list. One with text or number can be sorted by, and the filter searches the texts.
type column[T any] struct {
	name, title string // the name stands in the address
	class       string // of its cells; "none" for a column that only narrows the list
	text        func(*T) string
	number      func(*T) float64 // for order; it begins with the largest
	given       bool             // the rows come in the order of the column
	// chosen says that the list can be narrowed to one text of the column: to one of choices, by
	// default to those that there are.
	chosen  bool
	choices []string
}

const (
	perPage     = 50
	perMorePage = 20 // of the lists that are not the first one of a page
	maxQuery    = 200
)

// listing is what the address of a page says of a list, with links to its other orders and pages.
type listing struct {
	ID            string // of the element that holds it
	Path          string // of the page, without the query
	Fields        []filterField
	Keeps         []filterField // what the filter leaves as it is
	Columns       []heading
	Known, Total  int // in all, and of those that fit the filter
	First, Last   int
	Pages         []pageLink
	Before, After string // links; empty for none
	Filtered      bool
	Reload        bool // the filter loads the page again, for what else is on it
	Ordered       bool // in another order than its own, or not at the first page

	Key   string // of its parameters in the address; empty for the first list of a page
	query url.Values
}

// filterField is one control of a filter.
type filterField struct {
	ID, Name, Label, Value string
	Choices                []string
}

// heading is the head of a column. Sort is what aria-sort says.
type heading struct{ Title, Class, Link, Sort string }

// pageLink is one of the pages; 0 stands for those that are left out.
type pageLink struct {
	Number  int
	Link    string
	Current bool
}

// listPage is one page of a list.
type listPage[T any] struct {
	listing
	Rows []*T
}

// listOf returns the page of a list that an address asks for. With a key, which lists after the
// first one of a page have, the names of its parameters begin with it.
func listOf[T any](r *http.Request, key string, all []T, columns []column[T]) listPage[T] {
	t := listPage[T]{listing: newListing(r, key)}
	t.Known = len(all)
	text := t.get("q")
	words := strings.Fields(strings.ToLower(text))
	t.Fields = append(t.Fields, filterField{ID: t.ID + "-q", Name: t.param("q"), Label: "Search", Value: text})
	if key == "" {
		t.Fields[0].ID = "q"
	}
	rows := make([]*T, len(all))
	for i := range all {
		rows[i] = &all[i]
	}
	for _, c := range columns {
		if !c.chosen {
			continue
		}
		field := filterField{ID: t.param(c.name), Name: t.param(c.name), Label: c.title, Value: t.get(c.name), Choices: c.choices}
		if c.choices == nil {
			field.Choices = distinct(all, c.text)
		}
		t.Fields = append(t.Fields, field)
		if field.Value != "" {
			rows = slices.DeleteFunc(rows, func(row *T) bool { return c.text(row) != field.Value })
		}
	}
	if len(words) > 0 {
		rows = slices.DeleteFunc(rows, func(row *T) bool { return !hasWords(row, columns, words) })
	}
	for i := range t.Fields {
		t.Filtered = t.Filtered || t.Fields[i].Value != ""
	}
	order := t.get("sort")
	by := slices.IndexFunc(columns, func(c column[T]) bool {
		return c.name == strings.TrimPrefix(order, "-") && (c.text != nil || c.number != nil)
	})
	switch {
	case by >= 0:
		rows = sorted(rows, columns[by], strings.HasPrefix(order, "-"))
	case len(words) > 0: // what has the word in its name comes before what only speaks of it
		named := func(row *T) bool { return strings.Contains(strings.ToLower(columns[0].text(row)), words[0]) }
		rows = append(slices.DeleteFunc(slices.Clone(rows), func(row *T) bool { return !named(row) }), slices.DeleteFunc(rows, named)...)
	}
	t.Total = len(rows)
	for i, c := range columns {
		if c.class == "none" {
			continue
		}
		h := heading{Title: c.title, Class: c.class}
		down := c.number != nil // as the first click orders
		if i == by || by < 0 && c.given && len(words) == 0 {
			if by >= 0 {
				down = strings.HasPrefix(order, "-")
			}
			h.Sort = "ascending"
			if down {
				h.Sort = "descending"
			}
			down = !down
		}
		next := c.name
		if down {
			next = "-" + next
		}
		if c.text != nil || c.number != nil {
			h.Link = t.link("sort", next)
		}
		t.Columns = append(t.Columns, h)
	}
	t.Rows = rows[t.page(by >= 0):t.Last]
	return t
}

// newListing begins a listing; the parameters of the address that are not its filter's stay.
func newListing(r *http.Request, key string) listing {
	l := listing{ID: "results", Path: "./" + r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], Key: key, query: r.URL.Query()}
	if key != "" {
		l.ID += "-" + key
	}
	return l
}

func (l *listing) param(name string) string {
	if l.Key != "" {
		return l.Key + "." + name
	}
	return name
}

func (l *listing) get(name string) string {
	s := l.query.Get(l.param(name))
	return s[:min(len(s), maxQuery)]
}

// link is the address with another value of a parameter, at the first page if that is not the parameter.
func (l *listing) link(name, value string) string {
	q := url.Values{}
	for k, v := range l.query {
		if k != l.param(name) && k != l.param("page") {
			q[k] = v
		}
	}
	q.Set(l.param(name), value)
	link := l.Path + "?" + q.Encode()
	if l.Key != "" {
		link += "#" + l.ID
	}
	return link
}

// page finds the page that is asked for, and returns where its rows begin.
func (l *listing) page(ordered bool) int {
	size := perPage
	if l.Key != "" {
		size = perMorePage
	}
	last := max(1, (l.Total+size-1)/size)
	n, _ := strconv.Atoi(l.get("page"))
	n = min(max(1, n), last)
	from := (n - 1) * size
	l.Last = min(from+size, l.Total)
	l.First = min(from+1, l.Last)
	l.Ordered = ordered || n > 1
	own := map[string]bool{l.param("page"): true}
	for _, f := range l.Fields {
		own[f.Name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(l.query)) {
		if !own[name] {
			l.Keeps = append(l.Keeps, filterField{Name: name, Value: l.query.Get(name)})
		}
	}
	for i := 1; i <= last && last > 1; i++ {
		switch {
		case i == 1, i == last, i >= n-2 && i <= n+2:
			l.Pages = append(l.Pages, pageLink{i, l.link("page", strconv.Itoa(i)), i == n})
		case l.Pages[len(l.Pages)-1].Number != 0:
			l.Pages = append(l.Pages, pageLink{})
		}
	}
	if n > 1 {
		l.Before = l.link("page", strconv.Itoa(n-1))
	}
	if n < last {
		l.After = l.link("page", strconv.Itoa(n+1))
	}
	return from
}

// sorted returns rows in the order of a column, each looked at once.
func sorted[T any](rows []*T, c column[T], down bool) []*T {
	type keyed struct {
		row    *T
		text   string
		number float64
	}
	all := make([]keyed, len(rows))
	for i, row := range rows {
		all[i].row = row
		if c.number != nil {
			all[i].number = c.number(row)
		} else {
			all[i].text = strings.ToLower(c.text(row))
		}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		if down {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
	})
	out := make([]*T, len(all))
	for i := range all {
		out[i] = all[i].row
	}
	return out
}

// hasWords reports whether each word is in one of the columns of a row that have no choices.
func hasWords[T any](row *T, columns []column[T], words []string) bool {
	var b strings.Builder
	for _, c := range columns {
		if c.text != nil && !c.chosen {
			b.WriteString(c.text(row) + "\n")
		}
	}
	text := strings.ToLower(b.String())
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// distinct returns the texts of a column, sorted.
func distinct[T any](all []T, text func(*T) string) []string {
	known := map[string]bool{}
	for i := range all {
		if s := text(&all[i]); s != "" {
			known[s] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}
