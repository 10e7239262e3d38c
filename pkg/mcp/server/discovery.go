package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// A client that searches sees the pinned tools and two more, one that finds the other tools and one that calls them.

// Finder searches tools for clients. All methods are safe for concurrent use.
type Finder interface {
	// Index returns an index of exactly these tools, so that its answers depend on no other tools.
	Index(tools []Candidate) Index
	// Found is called after each search, whose arguments are call.Args.
	Found(ctx context.Context, call v1.Call, took time.Duration)
}

// Index finds tools among those that it was made of.
type Index interface {
	// Search returns the tools that match best, the best first. Without a text it returns the first tools by name.
	Search(ctx context.Context, q Query) []Hit
}

// Candidate is a tool that may be found.
type Candidate struct {
	Offer
	// ClientName is the name by which clients know the tool. Offer.Name is not.
	ClientName string
}

// Query is a search for tools.
type Query struct {
	// Text says in plain words what the tool should do.
	Text string
	// Limit is the maximum number of tools.
	Limit int
	// Server is the only MCP server whose tools are found; "" means all.
	Server string
	// Labels are labels that the tool or its MCP server must have.
	Labels map[string]string
}

// Hit is a tool that was found.
type Hit struct {
	// Name is the Candidate.ClientName.
	Name  string
	Score float64
}

const (
	defaultFound, maxFound = 5, 50
	// maxQuery is the maximum length of a query in bytes.
	maxQuery = 8 << 10
)

// builtins are the two tools of a client that searches. Neither has an output schema that depends on other tools.
var builtins = []listed{
	builtin(definition{
		Name: v1.FindTools, Title: "Find tools",
		Description:  "Find tools of this server. Say in your own words what you want to do; the answer has the tools that match best, with the schemas of their arguments. Call them with " + v1.CallTool + ". An empty query lists tools by name.",
		InputSchema:  json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"what the tool should do, such as: refund an order"},"limit":{"type":"integer","minimum":1,"maximum":50,"default":5,"description":"maximum number of tools"},"server":{"type":"string","description":"only tools of this MCP server"},"labels":{"type":"object","additionalProperties":{"type":"string"},"description":"only tools with these labels"}},"required":["query"],"additionalProperties":false}`),
		OutputSchema: json.RawMessage(`{"type":"object","properties":{"tools":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"title":{"type":"string"},"description":{"type":"string"},"inputSchema":{"type":"object"},"score":{"type":"number"}},"required":["name","inputSchema","score"]}},"more":{"type":"boolean","description":"whether more tools match"}},"required":["tools","more"]}`),
		Annotations:  json.RawMessage(`{"readOnlyHint":true,"idempotentHint":true,"openWorldHint":false}`),
	}),
	builtin(definition{
		Name: v1.CallTool, Title: "Call a tool",
		Description: "Call a tool that " + v1.FindTools + " found, by its name and with the arguments that its inputSchema describes. The result is that of the tool.",
		InputSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string","description":"name of the tool"},"arguments":{"type":"object","description":"arguments of the tool"}},"required":["name"],"additionalProperties":false}`),
		Annotations: json.RawMessage(`{"readOnlyHint":false,"destructiveHint":true,"idempotentHint":false,"openWorldHint":true}`),
	}),
}

func builtin(w definition) listed { return listed{listing: newListing(w, math.MaxInt)} }

// MenuSize returns the number of bytes that a client that searches gets in place of a list, beside the pinned tools.
func MenuSize() (bytes int) {
	for _, b := range builtins {
		bytes += len(b.entry)
	}
	return bytes
}

// searchHint follows the instructions for a client that searches.
const searchHint = "Only some tools are listed: " + v1.FindTools + " finds the others by what they do, and " + v1.CallTool + " calls them."

// view is what some principals see of a toolset.
type view struct {
	tools     []listed // all their tools
	menu      []listed // what tools/list returns
	searching bool     // menu is not tools

	mu    sync.Mutex
	index Index // nil until the first search; see Server.index
}

// seen holds the views of a toolset, by the audiences that a principal belongs to.
type seen struct {
	mu  sync.Mutex
	all map[string]*view
}

// maxViews is the maximum number of views of a toolset that are kept.
const maxViews = 256

// view returns what a principal sees. It is the same for every request and connection while the content stays the same.
func (o *offers) view(principal string) *view {
	key := o.views.key(principal)
	o.seen.mu.Lock()
	defer o.seen.mu.Unlock()
	v := o.seen.all[string(key)]
	if v == nil {
		v = o.newView(key)
		if o.seen.all == nil || len(o.seen.all) >= maxViews {
			o.seen.all = map[string]*view{}
		}
		o.seen.all[string(key)] = v
	}
	return v
}

func (o *offers) newView(key []byte) *view {
	v := &view{tools: o.listed}
	if len(key) > 0 {
		v.tools = slices.DeleteFunc(slices.Clone(o.listed), func(l listed) bool { return l.audience > 0 && key[l.audience-1] == hides })
	}
	v.menu = v.tools
	size := 0
	for _, l := range v.tools {
		size += len(l.entry)
	}
	if v.searching = !o.spec.Lists(len(v.tools), size/v1.BytesPerToken); v.searching {
		v.menu = slices.Clone(builtins)
		for _, l := range v.tools {
			if l.pinned && !isBuiltin(l.name()) {
				v.menu = append(v.menu, l)
			}
		}
		slices.SortFunc(v.menu, func(a, b listed) int { return strings.Compare(a.place, b.place) })
	}
	return v
}

func isBuiltin(name string) bool { return name == v1.FindTools || name == v1.CallTool }

// offersBuiltin reports whether a name means one of the two tools of clients that search, for the client of a request. A
// real tool of that name has precedence only for a client that sees a list of all tools; others reach it by call_tool.
// The two tools go on working for a client that has seen them, if the list has become short enough to show meanwhile.
func (o *offers) offersBuiltin(r *request, name string) bool {
	if !isBuiltin(name) || o.spec.Discovery == v1.DiscoveryList {
		return false
	}
	_, real := o.byName[name]
	return !real || o.view(r.principal).searching
}

// target returns the tool that a tools/call is for, and its arguments: those of the request, or those that call_tool
// passes on. The error says what is wrong with the arguments of call_tool.
func (o *offers) target(r *request) (name string, args json.RawMessage, wrapped bool, err error) {
	if name, err = r.text("name"); err != nil {
		return "", nil, false, err
	}
	args = r.Params.Get("arguments")
	if name != v1.CallTool || !o.offersBuiltin(r, name) {
		return name, args, false, nil
	}
	var inner struct{ name, args json.RawMessage }
	err = eachArgument(args, map[string]func(json.RawMessage) error{
		"name":      func(raw json.RawMessage) error { inner.name = raw; return nil },
		"arguments": func(raw json.RawMessage) error { inner.args = raw; return nil },
	})
	var asked string
	if err == nil && (json.Unmarshal(inner.name, &asked) != nil || asked == "") {
		err = fmt.Errorf("name: expected the name of a tool, such as %s returns", v1.FindTools)
	}
	if err != nil {
		return name, args, true, fmt.Errorf(`%s: %w. Expected {"name": "...", "arguments": {...}}`, v1.CallTool, err)
	}
	var text string
	if json.Unmarshal(inner.args, &text) == nil && strings.HasPrefix(strings.TrimSpace(text), "{") { // models write objects as texts
		inner.args = json.RawMessage(text)
	}
	return asked, inner.args, true, nil
}

// eachArgument passes the members of the arguments of a tool on, except those that are null.
func eachArgument(args json.RawMessage, into map[string]func(json.RawMessage) error) error {
	var all map[string]json.RawMessage
	if len(args) > 0 && json.Unmarshal(args, &all) != nil {
		return errors.New("the arguments are not an object")
	}
	for _, k := range slices.Sorted(maps.Keys(all)) {
		raw, read := all[k], into[k]
		switch {
		case read == nil:
			return fmt.Errorf("unknown argument %q: expected %s", clip.Bytes(k, 100), strings.Join(slices.Sorted(maps.Keys(into)), ", "))
		case string(raw) == "null":
		default:
			if err := read(raw); err != nil {
				return fmt.Errorf("%s: %w", k, err)
			}
		}
	}
	return nil
}

// readQuery reads the arguments of find_tools.
func readQuery(args json.RawMessage) (Query, error) {
	q := Query{Limit: defaultFound}
	decode := func(into any, want string) func(json.RawMessage) error {
		return func(raw json.RawMessage) error {
			if json.Unmarshal(raw, into) != nil {
				return fmt.Errorf("expected %s, got %s", want, clip.Bytes(string(raw), 100))
			}
			return nil
		}
	}
	limit := fmt.Sprintf("an integer from 1 to %d", maxFound)
	err := eachArgument(args, map[string]func(json.RawMessage) error{
		"query":  decode(&q.Text, "a text"),
		"server": decode(&q.Server, "the name of an MCP server"),
		"labels": decode(&q.Labels, "an object of texts"),
		"limit": func(raw json.RawMessage) error {
			err := decode(&q.Limit, limit)(json.RawMessage(strings.Trim(string(raw), `"`)))
			if err == nil && (q.Limit < 1 || q.Limit > maxFound) {
				err = fmt.Errorf("expected %s, got %d", limit, q.Limit)
			}
			return err
		},
	})
	if err == nil && len(q.Text) > maxQuery {
		err = fmt.Errorf("query: expected at most %d bytes, got %d", maxQuery, len(q.Text))
	}
	return q, err
}

// found is the answer of find_tools.
type found struct {
	Tools []foundTool `json:"tools"`
	More  bool        `json:"more"`
}

type foundTool struct {
	Name        string          `json:"name"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema"`
	Score       float64         `json:"score"`
}

// findTools answers a call of find_tools: with tools that tools/list would show the principal without a search.
func (s *Server) findTools(ctx context.Context, r *request, call v1.Call) (answer, error) {
	s.catalog.Settle(ctx, "")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	began := time.Now()
	q, err := readQuery(call.Args)
	if err != nil {
		return failure(v1.FindTools + ": " + err.Error()), nil //nolint:nilerr // a model sees only results
	}
	o := s.offers(r.toolset)
	q.Limit++
	hits := s.search(ctx, o, o.view(r.principal), q)
	res := found{Tools: []foundTool{}, More: len(hits) == q.Limit}
	if res.More {
		hits = hits[:q.Limit-1]
	}
	for _, h := range hits {
		var t foundTool
		if l := o.byName[h.Name].listing; l != nil && json.Unmarshal(l.entry, &t) == nil {
			t.Score = math.Round(h.Score*1000) / 1000
			res.Tools = append(res.Tools, t)
		}
	}
	text, err := json.Marshal(res)
	if err != nil {
		return nil, err
	}
	took := time.Since(began)
	s.log(ctx, r, call, Offer{Name: v1.FindTools}, v1.Result{Status: v1.StatusComplete}, nil, took)
	s.opts.Finder.Found(ctx, call, took)
	return s.bounded(ctx, v1.FindTools, &result{Structured: text, Content: []wire.Block{wire.TextBlock(string(text))}}), nil
}

// unknown answers a call of a tool that does not exist. A model sees only results, so a call by call_tool gets one.
func (s *Server) unknown(ctx context.Context, r *request, name string, wrapped bool) (answer, error) {
	if !wrapped {
		return nil, unknownTool(name)
	}
	name = clip.Bytes(name, 100)
	o := s.offers(r.toolset)
	v := o.view(r.principal)
	var near []string
	for _, l := range v.tools {
		near = append(near, l.name())
	}
	if n := v1.Nearest(name, near); n != "" {
		near = []string{n}
	} else {
		near = nil
	}
	const most = 3
	for _, h := range s.search(ctx, o, v, Query{Text: name, Limit: most}) {
		if len(near) < most && !slices.Contains(near, h.Name) {
			near = append(near, h.Name)
		}
	}
	text := fmt.Sprintf("there is no tool %q: find tools with %s", name, v1.FindTools)
	if len(near) > 0 {
		text = fmt.Sprintf("there is no tool %q; the nearest names are %s. %s finds others", name, strings.Join(near, ", "), v1.FindTools)
	}
	return failure(text), nil
}

func failure(text string) *result {
	return &result{IsError: true, Content: []wire.Block{wire.TextBlock(text)}}
}

// maxExpected limits the schema in an error, in bytes.
const maxExpected = 16 << 10

// expect adds what a tool expects to a result, for a model that may not have seen its schema.
func (r *result) expect(t *v1.Tool) {
	if n := len(t.Spec.InputSchema); n > 0 && n <= maxExpected {
		r.Content = append(r.Content, wire.TextBlock("the arguments of the tool have this JSON Schema: "+string(t.Spec.InputSchema)))
	}
}

// indexes are the views with an index, the one used last first.
type indexes struct {
	mu  sync.Mutex
	all []*view
}

// MaxIndexed is the maximum number of tools in all indexes of a server, each counted as often as it is in one.
const MaxIndexed = 50_000

// search searches the tools of a view. It makes the index of the view if there is none.
func (s *Server) search(ctx context.Context, o *offers, v *view, q Query) []Hit {
	v.mu.Lock()
	if v.index == nil {
		all := make([]Candidate, len(v.tools))
		for i, l := range v.tools {
			all[i] = Candidate{o.byName[l.name()].Offer, l.name()}
		}
		v.index = s.opts.Finder.Index(all)
	}
	index := v.index
	v.mu.Unlock()
	s.indexes.use(v)
	return index.Search(ctx, q)
}

// use moves a view to the front, and drops the indexes that were used longest ago if there are too many.
func (x *indexes) use(v *view) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.all) > 0 && x.all[0] == v {
		return
	}
	x.all = slices.DeleteFunc(x.all, func(other *view) bool { return other == v })
	x.all = slices.Insert(x.all, 0, v)
	sum := 0
	for i, other := range x.all {
		if sum += len(other.tools); i > 0 && sum > MaxIndexed {
			for _, other := range x.all[i:] {
				other.mu.Lock()
				other.index = nil
				other.mu.Unlock()
			}
			x.all = slices.Delete(x.all, i, len(x.all))
			return
		}
	}
}

// forget drops all views, which belong to earlier content.
func (x *indexes) forget() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.all = nil
}
