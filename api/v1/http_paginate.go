package v1

import "fmt"

// Styles of [HTTPPaginate]: where the next page is found.
const (
	PaginateLink   = "link"
	PaginateCursor = "cursor"
	PaginatePage   = "page"
	PaginateOffset = "offset"
)

// HTTPPaginate reads the pages that follow the first and makes one list of their items. All pages
// together are held to max_bytes of the response and to the tool's timeout_ms.
type HTTPPaginate struct {
	// Style says how the next page is found: link (a Link header with rel=next, RFC 8288, or an
	// address in the body), cursor (a value in the body), page (its number) or offset (the number of
	// items before it). Required. Example: cursor.
	Style string `json:"style" check:"required,oneof=link|cursor|page|offset"`
	// Items is a JMESPath expression for the list of items of a page's body. Default: the body.
	// Example: data.items.
	Items string `json:"items,omitempty"`
	// Cursor is a JMESPath expression for what leads to the next page: the cursor (style cursor, where
	// it is required) or the address (style link, in place of the header). A page for which it is null,
	// false or empty is the last. Example: meta.next_cursor.
	Cursor string `json:"cursor,omitempty"`
	// Param is the query parameter of the cursor, page number or offset. Default: the style's name.
	// Example: page_token.
	Param string `json:"param,omitempty"`
	// Start is the number of the first page or the first offset. Default: 1 for style page, 0 for offset.
	Start *int `json:"start,omitempty" check:"min=0"`
	// SizeParam is the query parameter for the size of a page. Example: per_page.
	SizeParam string `json:"size_param,omitempty"`
	// Size is how many items a page has. With style page or offset a page with fewer is the last;
	// without it an empty one is. Example: 100.
	Size int `json:"size,omitempty" check:"min=0,max=100000"`
	// MaxPages is the most pages that one call reads. Default: 10.
	MaxPages int `json:"max_pages,omitempty" check:"min=0,max=1000"`
	// MaxItems is the most items that one call returns. Default: 1000.
	MaxItems int `json:"max_items,omitempty" check:"min=0,max=100000"`
}

// HTTPRateLimit is the most requests that a tool sends in a time, those of parallel calls, further
// pages and further attempts included. Calls wait for their turn within the tool's timeout_ms.
type HTTPRateLimit struct {
	// Requests is how many requests may be sent in any second, minute or hour. Required. Example: 10.
	Requests int `json:"requests" check:"required,min=1,max=10000"`
	// Per is the time: second, minute or hour. Required. Example: second.
	Per string `json:"per" check:"required,oneof=second|minute|hour"`
}

func (p *HTTPPaginate) rules(path string) (fs []Violation) {
	add := func(field, expected, got, msg string) {
		fs = append(fs, Violation{Path: path + "/" + field, Expected: expected, Got: got, Message: msg})
	}
	numbered := p.Style == PaginatePage || p.Style == PaginateOffset
	switch {
	case p.Style == PaginateCursor && p.Cursor == "":
		add("cursor", "a JMESPath expression", "nothing", `style cursor needs cursor: the place of the next cursor in the body of a page, such as "meta.next_cursor"`)
	case numbered && p.Cursor != "":
		add("cursor", "no cursor", quote(p.Cursor), fmt.Sprintf("style %s counts and reads no cursor: use style cursor or link", p.Style))
	case p.Style == PaginateLink && p.Param != "":
		add("param", "no param", quote(p.Param), "style link follows the address that the server gives: use style cursor for a query parameter")
	}
	if p.Start != nil && !numbered && p.Style != "" {
		add("start", "no start", fmt.Sprint(*p.Start), "start applies only to the styles page and offset")
	}
	if p.SizeParam != "" && p.Size == 0 {
		add("size", "a number", "nothing", "size_param needs size: how many items to ask for")
	}
	return fs
}
