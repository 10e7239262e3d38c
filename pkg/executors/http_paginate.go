package executors

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptrace"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/redact"
)

// pages is the prepared spec.http.paginate.
type pages struct {
	spec               *v1.HTTPPaginate
	items, cursor      *mapping // items is nil for the body itself, cursor for Link headers and counts
	param              string
	query              []httpField // parameters of the first request
	maxPages, maxItems int
}

const (
	defaultMaxPages = 10
	defaultMaxItems = 1000
	maxNext         = 8 << 10 // the longest cursor or address of a next page, in bytes
)

func (p *httpTool) preparePages(s *v1.HTTPPaginate) {
	if s == nil {
		return
	}
	g := &pages{spec: s, param: cmp.Or(s.Param, s.Style), maxPages: cmp.Or(s.MaxPages, defaultMaxPages), maxItems: cmp.Or(s.MaxItems, defaultMaxItems)}
	expression := func(field, text string) *mapping {
		if text == "" {
			return nil
		}
		m, err := compileMapping("spec.http.paginate."+field, text)
		if err != nil {
			p.violation("/spec/http/paginate/"+field, "a JMESPath expression", quoted(text), err.Error())
		}
		return m
	}
	g.items, g.cursor = expression("items", s.Items), expression("cursor", s.Cursor)
	if s.Style == v1.PaginatePage || s.Style == v1.PaginateOffset {
		start := 0
		if s.Style == v1.PaginatePage {
			start = 1
		}
		if s.Start != nil {
			start = *s.Start
		}
		g.query = append(g.query, httpField{name: g.param, text: envText(strconv.Itoa(start))})
	}
	if s.SizeParam != "" {
		g.query = append(g.query, httpField{name: s.SizeParam, text: envText(strconv.Itoa(s.Size))})
	}
	p.pages = g
}

// all reads the pages one by one and returns a list of their items.
func (c *httpCall) all(ctx context.Context) (v1.Result, error) {
	g := c.p.pages
	first, seen := c.req.URL, map[string]bool{}
	attempts, count, list := 1, 0, []byte{'['}
	more := false
	for c.page = 1; ; c.page++ {
		status, err := c.send(ctx)
		attempts += max(0, c.attempts-1)
		if err != nil {
			return v1.Result{Status: status, Attempts: attempts, Pages: c.page}, err
		}
		seen[c.req.URL.String()] = true
		n, whole, err := c.items(&list, g.maxItems-count)
		if err != nil {
			return v1.Result{Attempts: attempts, Pages: c.page}, c.fail(v1.PhaseValidate, err.Error(), err)
		}
		count += n
		c.size += int64(len(c.answer))
		next, err := c.next(first, n)
		if err == nil && next != nil && seen[next.String()] {
			if n == 0 { // an empty page is the last one, because some servers repeat the last cursor forever
				next = nil
			} else {
				err = errors.New("the next page was already read")
			}
		}
		if err != nil {
			return v1.Result{Attempts: attempts, Pages: c.page}, c.fail(v1.PhaseValidate, err.Error(), err)
		}
		if more = !whole || next != nil; next == nil || !whole || count >= g.maxItems || c.page >= g.maxPages {
			break
		}
		c.follow(ctx, next)
	}
	content, err := c.p.mapped(ctx, c.secrets.json(append(list, ']')))
	if err != nil {
		return v1.Result{Attempts: attempts, Pages: c.page}, c.fail(v1.PhaseValidate, err.Error(), err)
	}
	res := v1.Result{Status: v1.StatusComplete, Content: content, Attempts: attempts, Pages: c.page}
	if more {
		limit := fmt.Sprintf("max_pages %d", g.maxPages)
		if count >= g.maxItems {
			limit = fmt.Sprintf("max_items %d", g.maxItems)
		}
		res.Parts = []v1.Part{{Type: v1.PartText, Text: fmt.Sprintf("The list may be incomplete: reading stopped after %s from %s (spec.http.paginate, %s).", clip.Count(count, "item"), clip.Count(c.page, "page"), limit)}}
	}
	return res, nil
}

// items appends at most room items of the page to list. whole is false if the page has more.
func (c *httpCall) items(list *[]byte, room int) (n int, whole bool, err error) {
	body := bytes.TrimSpace(bytes.TrimPrefix(c.answer, []byte("\ufeff")))
	if len(body) == 0 {
		return 0, true, nil
	}
	if !json.Valid(body) {
		return 0, false, errors.New("spec.http.paginate needs JSON pages, but this page is not valid JSON")
	}
	field := "the body of a page"
	if m := c.p.pages.items; m != nil {
		field = m.field
		// The rules apply to the body, as for a mapping.
		if body, err = m.apply(redact.JSON(body, c.p.spec.Redact)); err != nil {
			return 0, false, err
		}
	}
	switch kind := v1.JSONKind(body); {
	case kind == "null" && c.p.pages.items != nil:
		return 0, false, fmt.Errorf("%s found nothing: if a page may lack the list, end the expression with || `[]`", field)
	case kind != "array" && c.p.pages.items == nil:
		return 0, false, fmt.Errorf("the body of a page is a JSON %s: name its list in spec.http.paginate.items", kind)
	case kind != "array":
		return 0, false, fmt.Errorf("%s found a JSON %s: expected an array", field, kind)
	}
	dec := json.NewDecoder(bytes.NewReader(bytes.ToValidUTF8(body, []byte("\uFFFD"))))
	if _, err := dec.Token(); err != nil {
		return 0, false, err
	}
	for ; dec.More(); n++ {
		if n == room {
			return n, false, nil
		}
		var item json.RawMessage
		if err := dec.Decode(&item); err != nil {
			return 0, false, err
		}
		if len(*list) > 1 {
			*list = append(*list, ',')
		}
		*list = append(*list, item...)
	}
	return n, true, nil
}

// next returns the address of the page after this one, which has n items; nil after the last page.
func (c *httpCall) next(first *url.URL, n int) (*url.URL, error) {
	g, u := c.p.pages, *c.req.URL
	switch g.spec.Style {
	case v1.PaginatePage, v1.PaginateOffset:
		if n == 0 || n < g.spec.Size {
			return nil, nil
		}
		at, err := strconv.ParseInt(u.Query().Get(g.param), 10, 32)
		if err != nil || at < 0 {
			return nil, fmt.Errorf("the query parameter %q is not a number from 0", g.param)
		}
		if at++; g.spec.Style == v1.PaginateOffset {
			at += int64(n) - 1
		}
		u.RawQuery = setQuery(u.RawQuery, g.param, strconv.FormatInt(at, 10))
		return &u, nil
	}
	var value string
	if g.cursor == nil {
		value = nextLink(c.header["Link"])
	} else if len(bytes.TrimSpace(c.answer)) > 0 {
		found, err := g.cursor.apply(bytes.TrimPrefix(c.answer, []byte("\ufeff")))
		if err != nil {
			return nil, err
		}
		switch v1.JSONKind(found) {
		case "string":
			if err := json.Unmarshal(found, &value); err != nil {
				return nil, err
			}
		case "integer", "number":
			value = string(found)
		case "null":
		default:
			if string(found) != "false" {
				return nil, fmt.Errorf("spec.http.paginate.cursor found a JSON %s: expected a string, a number or null", v1.JSONKind(found))
			}
		}
	}
	switch {
	case value == "":
		return nil, nil
	case len(value) > maxNext:
		return nil, fmt.Errorf("the cursor or address of the next page has %d bytes: the limit is %d", len(value), maxNext)
	case g.spec.Style == v1.PaginateCursor:
		u.RawQuery = setQuery(u.RawQuery, g.param, value)
		return &u, nil
	}
	return c.linked(first, value)
}

// linked returns the address that a server gives for the next page. It must have the same
// origin, since the next request carries the credentials of the first.
func (c *httpCall) linked(first *url.URL, address string) (*url.URL, error) {
	next, err := c.req.URL.Parse(address)
	if err != nil {
		return nil, errors.New("the address of the next page is not a URL")
	}
	next.User, next.Fragment, next.RawFragment = c.req.URL.User, "", ""
	if next.Scheme != first.Scheme || !sameHost(first, next) {
		return nil, fmt.Errorf("the next page is at another origin, %s://%s: only %s://%s is allowed", next.Scheme, next.Host, first.Scheme, first.Host)
	}
	query, asked := next.Query(), first.Query()
	for _, f := range c.p.staticQuery {
		if !query.Has(f.name) && asked.Has(f.name) {
			next.RawQuery = setQuery(next.RawQuery, f.name, asked.Get(f.name))
		}
	}
	return next, nil
}

// follow makes the request for the next page, which differs only in its address.
func (c *httpCall) follow(ctx context.Context, next *url.URL) {
	req := c.req.Clone(httptrace.WithClientTrace(ctx, &c.trace))
	req.URL = next
	c.req = req
	c.attempts, c.renewed, c.stale, c.outOfTime = 0, false, false, 0
}

var (
	link      = regexp.MustCompile(`<([^>]*)>((?:"(?:\\.|[^"\\])*"?|[^",])*)`)
	linkParam = regexp.MustCompile(`;\s*([^=;"]*?)\s*=\s*(?:"((?:\\.|[^"\\])*)|([^;]*))`)
)

// nextLink returns the target of the first link with the relation "next" in Link headers (RFC 8288, section 3); "" if
// there is no such link.
func nextLink(headers []string) string {
	for _, h := range headers {
		for _, l := range link.FindAllStringSubmatch(h, -1) {
			params := linkParam.FindAllStringSubmatch(l[2], -1)
			first := slices.IndexFunc(params, func(p []string) bool { return strings.EqualFold(p[1], "rel") }) // only the first rel counts
			if first >= 0 && slices.ContainsFunc(strings.Fields(params[first][2]+params[first][3]), func(r string) bool { return strings.EqualFold(r, "next") }) {
				return strings.TrimSpace(l[1])
			}
		}
	}
	return ""
}

// setQuery sets a parameter of a query and leaves the others unchanged.
func setQuery(query, name, value string) string {
	var kept []string
	for pair := range strings.SplitSeq(query, "&") {
		key, _, _ := strings.Cut(pair, "=")
		if k, err := url.QueryUnescape(key); pair != "" && (err != nil || k != name) {
			kept = append(kept, pair)
		}
	}
	return strings.Join(append(kept, percentEncode(name)+"="+percentEncode(value)), "&")
}
