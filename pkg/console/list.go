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

// column is a column of a list. Lists can be sorted by columns with text or number, and the filter searches the texts.
type column[T any] struct {
	name, title string // the name is used in the address
	class       string // CSS class of the cells; "none" for a column that only filters the list
	text        func(*T) string
	number      func(*T) float64 // sort key, the largest first
	given       bool             // the rows are already in the order of this column
	// chosen says that the list can be filtered by a text of the column: one of choices, which are by
	// default the texts of all rows.
	chosen  bool
	choices []string
}

const (
	perPage     = 50
	perMorePage = 20 // rows per page of the lists after the first one
	maxQuery    = 200
)

// listing is the state of a list as the address of a page gives it, with links to other orders and pages.
type listing struct {
	ID            string // id of the HTML element
	Path          string // path of the page, without the query
	Fields        []filterField
	Keeps         []filterField // parameters that the filter passes on unchanged
	Columns       []heading
	Known, Total  int // all rows, and those that match the filter
	First, Last   int
	Pages         []pageLink
	Before, After string // links; may be empty
	Filtered      bool
	Reload        bool // the filter reloads the whole page, since it affects more than the list
	Ordered       bool // sorted in another order, or not on the first page

	Key   string // prefix of the parameters in the address; empty for the first list of a page
	query url.Values
}

// filterField is a control of the filter form.
type filterField struct {
	ID, Name, Label, Value string
	Choices                []string
}

// heading is the header of a column. Sort is the value of aria-sort.
type heading struct{ Title, Class, Link, Sort string }

// pageLink is a link to a page; number 0 stands for a gap.
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

// listOf returns the requested page of a list. Lists after the first one of a page have a key, with which
// the names of their parameters begin.
func listOf[T any](r *http.Request, key string, all []T, columns []column[T]) listPage[T] {
	// The code that filters and sorts rows knows only their indexes, so that it is compiled once for all lists.
	numbered := make([]column[int], len(columns))
	for i, c := range columns {
		n := &numbered[i]
		n.name, n.title, n.class, n.given, n.chosen, n.choices = c.name, c.title, c.class, c.given, c.chosen, c.choices
		if c.text != nil {
			n.text = func(row *int) string { return c.text(&all[*row]) }
		}
		if c.number != nil {
			n.number = func(row *int) float64 { return c.number(&all[*row]) }
		}
	}
	t := listPage[T]{listing: newListing(r, key)}
	for _, row := range t.choose(len(all), numbered) {
		t.Rows = append(t.Rows, &all[row])
	}
	return t
}

// choose filters and sorts rows, and returns those of the requested page.
func (l *listing) choose(known int, columns []column[int]) []int {
	l.Known = known
	text := l.get("q")
	words := strings.Fields(strings.ToLower(text))
	l.Fields = append(l.Fields, filterField{ID: l.ID + "-q", Name: l.param("q"), Label: "Search", Value: text})
	if l.Key == "" {
		l.Fields[0].ID = "q"
	}
	rows := make([]int, known)
	for i := range rows {
		rows[i] = i
	}
	for _, c := range columns {
		if !c.chosen {
			continue
		}
		field := filterField{ID: l.param(c.name), Name: l.param(c.name), Label: c.title, Value: l.get(c.name), Choices: c.choices}
		if c.choices == nil {
			field.Choices = distinct(known, c.text)
		}
		l.Fields = append(l.Fields, field)
		if field.Value != "" {
			rows = slices.DeleteFunc(rows, func(row int) bool { return c.text(&row) != field.Value })
		}
	}
	if len(words) > 0 {
		rows = slices.DeleteFunc(rows, func(row int) bool { return !hasWords(row, columns, words) })
	}
	for i := range l.Fields {
		l.Filtered = l.Filtered || l.Fields[i].Value != ""
	}
	order := l.get("sort")
	by := slices.IndexFunc(columns, func(c column[int]) bool {
		return c.name == strings.TrimPrefix(order, "-") && (c.text != nil || c.number != nil)
	})
	switch {
	case by >= 0:
		sortBy(rows, columns[by], strings.HasPrefix(order, "-"))
	case len(words) > 0: // rows with the word in the first column come before others
		named := func(row int) bool { return strings.Contains(strings.ToLower(columns[0].text(&row)), words[0]) }
		rows = append(slices.DeleteFunc(slices.Clone(rows), func(row int) bool { return !named(row) }), slices.DeleteFunc(rows, named)...)
	}
	l.Total = len(rows)
	for i, c := range columns {
		if c.class == "none" {
			continue
		}
		h := heading{Title: c.title, Class: c.class}
		down := c.number != nil // the order after the first click
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
			h.Link = l.link("sort", next)
		}
		l.Columns = append(l.Columns, h)
	}
	return rows[l.page(by >= 0):l.Last]
}

// newListing returns the listing of a request.
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

// link returns the address with another value of a parameter, and back at the first page.
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

// page selects the requested page, and returns the index of its first row.
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

// sortBy sorts rows by a column, whose values it computes once.
func sortBy(rows []int, c column[int], down bool) {
	type keyed struct {
		row    int
		text   string
		number float64
	}
	all := make([]keyed, len(rows))
	for i, row := range rows {
		all[i].row = row
		if c.number != nil {
			all[i].number = c.number(&row)
		} else {
			all[i].text = strings.ToLower(c.text(&row))
		}
	}
	slices.SortStableFunc(all, func(a, b keyed) int {
		if down {
			a, b = b, a
		}
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.text, b.text))
	})
	for i := range all {
		rows[i] = all[i].row
	}
}

// hasWords reports whether a row has every word in a column without choices.
func hasWords(row int, columns []column[int], words []string) bool {
	var b strings.Builder
	for _, c := range columns {
		if c.text != nil && !c.chosen {
			b.WriteString(c.text(&row) + "\n")
		}
	}
	text := strings.ToLower(b.String())
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// distinct returns the distinct texts of a column, sorted.
func distinct(rows int, text func(*int) string) []string {
	known := map[string]bool{}
	for i := range rows {
		if s := text(&i); s != "" {
			known[s] = true
		}
	}
	return slices.Sorted(maps.Keys(known))
}
