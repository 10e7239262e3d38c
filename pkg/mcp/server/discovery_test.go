package server_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// finder finds the tools whose name or description contains a word of the query.
type finder struct {
	mu    sync.Mutex
	made  int
	found []v1.Call
}

func (f *finder) Index(tools []server.Candidate) server.Index {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.made++
	return index(tools)
}

func (f *finder) Found(_ context.Context, call v1.Call, _ time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.found = append(f.found, call)
}

type index []server.Candidate

func (x index) Search(_ context.Context, q server.Query) []server.Hit {
	var hits []server.Hit
	words := strings.Fields(strings.ReplaceAll(q.Text, "_", " "))
	for _, c := range x {
		score := 0.0
		for _, w := range words {
			if strings.Contains(c.ClientName+" "+c.Tool.Spec.Description, w) {
				score += 1.00004
			}
		}
		if (score > 0 || len(words) == 0) && (q.Labels["team"] == "" || c.Tool.Metadata.Labels["team"] == q.Labels["team"]) && q.Server == "" {
			hits = append(hits, server.Hit{Name: c.ClientName, Score: score})
		}
	}
	slices.SortStableFunc(hits, func(a, b server.Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(len(hits), q.Limit)]
}

// numbered returns so many tools.
func numbered(n int) (all []server.Offer) {
	for i := range n {
		all = append(all, offer("", fmt.Sprintf("tool-%03d", i)))
	}
	return all
}

func listedNames(t testing.TB, cs *sdk.ClientSession) (names []string) {
	t.Helper()
	for tool, err := range cs.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

// findTools calls find_tools and returns its answer as JSON.
func findTools(t testing.TB, cs *sdk.ClientSession, args map[string]any) string {
	t.Helper()
	res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "find_tools", Arguments: args})
	if err != nil || len(res.Content) != 1 {
		t.Fatalf("%v: %+v", err, res)
	}
	text := res.Content[0].(*sdk.TextContent).Text
	if res.IsError {
		return text
	}
	var same any
	if err := json.Unmarshal([]byte(text), &same); err != nil || toJSON(t, same) != toJSON(t, res.StructuredContent) {
		t.Errorf("the text %s is not the content %s", text, toJSON(t, res.StructuredContent))
	}
	return text
}

func TestSearchInsteadOfAList(t *testing.T) {
	c := catalogOf(numbered(60)...)
	c.offers[7].Tool.Spec.Description = "refund an order"
	c.offers[7].Tool.Spec.Hints = &v1.Hints{Title: "Refund"}
	c.offers[8].Hidden = true
	f := new(finder)
	s := server.New(c, server.Options{Discovery: v1.DiscoveryAuto, Finder: f})
	e := listen(t, s, server.HTTPOptions{})
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			cs := e.client(t, version, nil)
			if got := listedNames(t, cs); !slices.Equal(got, []string{"call_tool", "find_tools"}) {
				t.Errorf("listed %q", got)
			}
			if got := cs.InitializeResult().Instructions; !strings.Contains(got, "find_tools finds the others") {
				t.Errorf("instructions %q", got)
			}
			want := `{"tools":[{"name":"tool-007","title":"Refund","description":"refund an order","inputSchema":{"type":"object"},"score":2}],"more":false}`
			if got := findTools(t, cs, map[string]any{"query": "refund order"}); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
			var browsed struct {
				Tools []struct{ Name string }
				More  bool
			}
			for _, limit := range []any{50, "50"} {
				if err := json.Unmarshal([]byte(findTools(t, cs, map[string]any{"query": "", "limit": limit})), &browsed); err != nil || len(browsed.Tools) != 50 || !browsed.More || browsed.Tools[8].Name != "tool-009" {
					t.Errorf("browsed %+v, %v", browsed, err)
				}
			}
			if got := findTools(t, cs, map[string]any{"query": "does"}); strings.Count(got, `"name"`) != 5 {
				t.Errorf("by default %s", got)
			}
			for args, want := range map[string]string{
				`{"query":"x","limit":0}`:      "find_tools: limit: expected an integer from 1 to 50, got 0",
				`{"query":"x","limit":51}`:     "find_tools: limit: expected an integer from 1 to 50, got 51",
				`{"query":["x"]}`:              `find_tools: query: expected a text, got ["x"]`,
				`{"query":"x","labels":"a=b"}`: `find_tools: labels: expected an object of texts, got "a=b"`,
				`{"question":"x"}`:             `find_tools: unknown argument "question": expected labels, limit, query, server`,
			} {
				var parsed map[string]any
				if err := json.Unmarshal([]byte(args), &parsed); err != nil {
					t.Fatal(err)
				}
				if got := findTools(t, cs, parsed); got != want {
					t.Errorf("%s: got %s, want %s", args, got, want)
				}
			}
		})
	}
	if f.made != 1 {
		t.Errorf("%d indexes were made", f.made)
	}
	if len(f.found) == 0 || f.found[0].Tool != "find_tools" || !strings.Contains(string(f.found[0].Args), "refund order") || f.found[0].Session == "" {
		t.Errorf("recorded %+v", f.found)
	}
}

func TestCallTool(t *testing.T) {
	c := catalogOf(append(numbered(60), offer("", "refund"))...)
	c.offers[0].Tool.Spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}`)
	var calls []v1.Call
	c.do = func(_ context.Context, call v1.Call) (v1.Result, error) {
		calls = append(calls, call)
		if call.Tool == "default/tool-000" {
			return v1.Result{}, v1.NewValidationError(v1.ArgsInvalid, "tool-000", []v1.Violation{{Path: "/id", Expected: "a value", Got: "nothing", Message: "id is missing"}})
		}
		return v1.Result{Status: v1.StatusComplete, Content: json.RawMessage(`{"done":true}`)}, nil
	}
	var log logs
	e := listen(t, server.New(c, server.Options{Discovery: v1.DiscoverySearch, Finder: new(finder), AccessLog: log.logger()}), server.HTTPOptions{})
	for name, version := range versions {
		t.Run(name, func(t *testing.T) {
			cs := e.client(t, version, nil)
			call := func(args any) (string, bool) {
				t.Helper()
				res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "call_tool", Arguments: args})
				if err != nil {
					t.Fatal(err)
				}
				var texts []string
				for _, p := range res.Content {
					texts = append(texts, p.(*sdk.TextContent).Text)
				}
				return strings.Join(texts, "\n"), res.IsError
			}
			for _, args := range []any{map[string]any{"a": 1}, `{"a":1}`} {
				calls = nil
				if got, failed := call(map[string]any{"name": "refund", "arguments": args}); failed || got != `{"done":true}` {
					t.Errorf("got %s", got)
				}
				if len(calls) != 1 || calls[0].Tool != "default/refund" || string(calls[0].Args) != `{"a":1}` {
					t.Errorf("called %+v", calls)
				}
			}
			if res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "refund", Arguments: map[string]any{}}); err != nil || res.IsError {
				t.Errorf("directly: %v", err)
			}
			if got, failed := call(map[string]any{"name": "find_tools", "arguments": map[string]any{"query": "refund"}}); failed || !strings.Contains(got, `"name":"refund"`) {
				t.Errorf("find_tools by call_tool: %s", got)
			}
			for _, tc := range []struct {
				args any
				want []string
			}{
				{map[string]any{"name": "refnd"}, []string{`there is no tool "refnd"; the nearest names are refund. find_tools finds others`}},
				{map[string]any{"name": "zzz"}, []string{`there is no tool "zzz": find tools with find_tools`}},
				{map[string]any{"name": "call_tool"}, []string{`there is no tool "call_tool"; the nearest names are`}},
				{map[string]any{"arguments": map[string]any{}}, []string{`call_tool: name: expected the name of a tool, such as find_tools returns. Expected {"name": "...", "arguments": {...}}`}},
				{map[string]any{"name": "refund", "id": "1"}, []string{`call_tool: unknown argument "id": expected arguments, name.`}},
				{map[string]any{"name": "tool-000", "arguments": map[string]any{}}, []string{"id is missing", `have this JSON Schema: {"type":"object","properties":{"id"`}},
			} {
				got, failed := call(tc.args)
				for _, want := range tc.want {
					if !failed || !strings.Contains(got, want) {
						t.Errorf("%v: got %s, want %s", tc.args, got, want)
					}
				}
			}
			if _, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "none"}); err == nil || !strings.Contains(err.Error(), "unknown tool") {
				t.Errorf("directly: %v", err)
			}
		})
	}
	if text := log.String(); !strings.Contains(text, `"tool":"default/refund"`) || !strings.Contains(text, `"tool":"find_tools"`) || strings.Contains(text, `"tool":"call_tool"`) {
		t.Errorf("the access log is %s", text)
	}
}

// A real tool with the name of one of the two is found and called by them. Without a search it has its name.
func TestToolsNamedLikeTheSearch(t *testing.T) {
	for discovery, want := range map[string]string{v1.DiscoverySearch: `{"tools":[`, v1.DiscoveryList: `{"tool":"default/find_tools"}`} {
		c := catalogOf(offer("", "find_tools"), offer("", "call_tool"))
		cs := listen(t, server.New(c, server.Options{Discovery: discovery, Finder: new(finder)}), server.HTTPOptions{}).client(t, versions["modern"], nil)
		if got := listedNames(t, cs); !slices.Equal(got, []string{"call_tool", "find_tools"}) {
			t.Errorf("%s: listed %q", discovery, got)
		}
		if got := findTools(t, cs, map[string]any{"query": "does"}); !strings.HasPrefix(got, want) {
			t.Errorf("%s: got %s", discovery, got)
		}
		if discovery == v1.DiscoverySearch {
			res, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: "call_tool", Arguments: map[string]any{"name": "find_tools"}})
			if err != nil || toJSON(t, res.StructuredContent) != `{"tool":"default/find_tools"}` {
				t.Errorf("%+v, %v", res, err)
			}
		}
	}
}

// seers are the principals who see a tool, separated by commas.
type seers string

func (a seers) Sees(principal string) bool {
	return slices.Contains(strings.Split(string(a), ","), principal)
}
func (a seers) String() string { return string(a) }

// parted is a catalog with toolsets.
type parted struct {
	*catalog
	parts []server.Toolset
}

func (c *parted) Contents() server.Contents {
	all := c.catalog.Contents()
	all.Toolsets = c.parts
	return all
}

// auto decides for each principal by what it would see, and pinned tools stay listed.
func TestAutoDiscovery(t *testing.T) {
	c := &parted{catalog: catalogOf(numbered(41)...)}
	c.offers[40].Audience = seers("ann")
	in, tokens := map[string]bool{}, 50
	for i, o := range c.offers {
		in[o.Name] = i == 3 || i == 40
	}
	c.parts = []server.Toolset{{Name: "limit", Tools: in}, {Name: "size", Tools: in, Spec: v1.ToolsetSpec{ListTokens: &tokens}}, {Name: "list", Tools: in, Spec: v1.ToolsetSpec{Discovery: v1.DiscoveryList}}}
	e := listen(t, server.New(c, server.Options{Finder: new(finder)}), server.HTTPOptions{Tokens: tokensOf(t, "ann", "bob")})
	short := []string{"call_tool", "find_tools", "tool-003"}
	for _, tc := range []struct {
		toolset, who string
		want         []string // nil means so many tools
		tools        int
	}{
		{"limit", "ann", append(short, "tool-040"), 0},
		{"limit", "bob", nil, 40},
		{"size", "bob", short, 0},
		{"list", "ann", nil, 41},
		{"list", "bob", nil, 40},
	} {
		for name, version := range versions {
			for range 2 { // the same for each connection
				got := listedNames(t, clientOf(t, e, tc.toolset, version, tc.who))
				if tc.want != nil && !slices.Equal(got, tc.want) || tc.want == nil && len(got) != tc.tools {
					t.Errorf("%s of %s, %s: listed %q", tc.toolset, tc.who, name, got)
				}
			}
		}
	}
}

func tokensOf(t testing.TB, names ...string) *server.Tokens {
	var pairs []string
	for _, n := range names {
		pairs = append(pairs, n, n)
	}
	return tokens(t, pairs...)
}

func clientOf(t testing.TB, e *endpoint, toolset, version, who string) *sdk.ClientSession {
	t.Helper()
	return clientAt(t, e.url+"/mcp/"+toolset, version, nil, "Authorization", "Bearer "+who)
}

// A search never shows a tool that its principal does not see in the toolset, and finds all others.
func TestNothingForbiddenIsFound(t *testing.T) {
	people := []string{"ann", "bob", "eve"}
	c := &parted{catalog: catalogOf(numbered(120)...)}
	may := map[[3]string]bool{} // principal, toolset, tool
	names := []string{"a", "b", "c", "d"}
	sets := make([]map[string]bool, len(names))
	for i := range sets {
		sets[i] = map[string]bool{}
	}
	for i := range c.offers {
		o := &c.offers[i]
		var seen []string
		for k, who := range people {
			if i>>k&1 == 1 {
				seen = append(seen, who)
			}
		}
		if len(seen) < len(people) {
			o.Audience = seers(strings.Join(seen, ","))
		} else {
			seen = people
		}
		for k, set := range names {
			if (i/8+k)%3 != 0 {
				sets[k][o.Name] = false
				for _, who := range seen {
					may[[3]string{who, set, o.Tool.Metadata.Name}] = true
				}
			}
		}
	}
	for k, set := range names {
		c.parts = append(c.parts, server.Toolset{Name: set, Tools: sets[k], Spec: v1.ToolsetSpec{Discovery: v1.DiscoverySearch}})
	}
	e := listen(t, server.New(c, server.Options{Finder: new(finder)}), server.HTTPOptions{Tokens: tokensOf(t, people...)})
	random := rand.New(rand.NewPCG(1, 2))
	forbidden, queries := 0, 10_000
	if testing.Short() {
		queries = 1000
	}
	clients := map[[2]string]*sdk.ClientSession{}
	for _, who := range people {
		for _, set := range names {
			clients[[2]string{who, set}] = clientOf(t, e, set, versions[[]string{"sessions", "modern"}[random.IntN(2)]], who)
		}
	}
	for range queries {
		who, set := people[random.IntN(3)], names[random.IntN(4)]
		query := []string{"", fmt.Sprintf("tool-%03d", random.IntN(120)), fmt.Sprint(random.IntN(10)), "does"}[random.IntN(4)]
		var got struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal([]byte(findTools(t, clients[[2]string{who, set}], map[string]any{"query": query, "limit": 50})), &got); err != nil {
			t.Fatal(err)
		}
		for _, tool := range got.Tools {
			if !may[[3]string{who, set, tool.Name}] {
				forbidden++
			}
		}
		if strings.HasPrefix(query, "tool-") && (len(got.Tools) == 1) != may[[3]string{who, set, query}] {
			t.Fatalf("%s in %s searched %s and found %v", who, set, query, got.Tools)
		}
	}
	if forbidden > 0 {
		t.Errorf("%d forbidden tools", forbidden)
	}
}

// After a change, find_tools finds what is there now, and goes on working for a client that saw it.
func TestSearchAfterChanges(t *testing.T) {
	c := catalogOf(numbered(60)...)
	s := server.New(c, server.Options{Discovery: v1.DiscoveryAuto, Finder: new(finder)})
	changed := make(chan struct{}, 10)
	e := listen(t, s, server.HTTPOptions{})
	o := &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} }}
	cs := e.client(t, versions["modern"], o)
	c.set(numbered(59)...)
	s.Refresh()
	if got := findTools(t, cs, map[string]any{"query": "tool-059"}); got != `{"tools":[],"more":false}` {
		t.Errorf("found %s", got)
	}
	c.set(numbered(3)...)
	s.Refresh()
	<-changed
	if got := listedNames(t, cs); len(got) != 3 {
		t.Errorf("listed %q", got)
	}
	if got := findTools(t, cs, map[string]any{"query": "tool-002"}); !strings.Contains(got, "tool-002") { // the client may not have listed again
		t.Errorf("found %s", got)
	}
}
