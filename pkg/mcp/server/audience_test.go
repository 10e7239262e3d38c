package server_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// not is an audience of everyone except one principal.
type not string

func (n not) Sees(principal string) bool { return principal != string(n) }
func (n not) String() string             { return "not " + string(n) }

func hiddenFrom(principal string) func(*server.Offer) {
	return func(o *server.Offer) { o.Audience = not(principal) }
}

func listNames(t testing.TB, cs *sdk.ClientSession) (names string, scope string) {
	t.Helper()
	cursor := ""
	for {
		res, err := cs.ListTools(context.Background(), &sdk.ListToolsParams{Cursor: cursor})
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range res.Tools {
			names += " " + tool.Name
		}
		if cursor, scope = res.NextCursor, res.CacheScope; cursor == "" {
			return strings.TrimSpace(names), scope
		}
	}
}

func TestListsDependOnWhoAsks(t *testing.T) {
	c := catalogOf(offer("", "a"), offer("", "b", hiddenFrom("bob")), offer("", "c", hiddenFrom("ann")), offer("", "d", hiddenFrom("bob")), offer("", "e", hiddenFrom("")))
	e := listen(t, server.New(c, server.Options{PageSize: 2}), server.HTTPOptions{Tokens: tokens(t, "ann", "1", "bob", "2", "carl", "3")})
	for token, want := range map[string]string{"1": "a b d e", "2": "a c e", "3": "a b c d e"} {
		for protocol, version := range versions {
			for range 2 { // the second list comes from the cache
				names, scope := listNames(t, e.client(t, version, nil, "Authorization", "Bearer "+token))
				if names != want || protocol == "modern" && scope != "private" {
					t.Errorf("%s, token %s: %s %s, want %s", protocol, token, names, scope, want)
				}
			}
		}
	}
	for protocol, version := range versions {
		if names, scope := listNames(t, overStdio(t, server.New(c, server.Options{}), version, nil)); names != "a b c d" || protocol == "modern" && scope != "private" {
			t.Errorf("%s, over stdio: %s %s", protocol, names, scope)
		}
	}
	// A hidden tool can still be called: the policy decides about the call.
	res, err := e.client(t, versions["modern"], nil, "Authorization", "Bearer 2").CallTool(t.Context(), &sdk.CallToolParams{Name: "b"})
	if err != nil || res.IsError {
		t.Errorf("got %v, %v", res, err)
	}
}

func TestPublicListsStayPublic(t *testing.T) {
	cs := overStdio(t, server.New(catalogOf(offer("", "a")), server.Options{}), versions["modern"], nil)
	if _, scope := listNames(t, cs); scope != "public" {
		t.Errorf("cacheScope %q", scope)
	}
}

// Clients are notified when the audience of a tool changes, and otherwise not.
func TestChangedAudience(t *testing.T) {
	c := catalogOf(offer("", "a", hiddenFrom("ann")))
	s := server.New(c, server.Options{})
	told := make(chan struct{}, 4)
	e := listen(t, s, server.HTTPOptions{Tokens: tokens(t, "ann", "1")})
	cs := e.client(t, versions["sessions"], &sdk.ClientOptions{ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { told <- struct{}{} }}, "Authorization", "Bearer 1")
	if names, _ := listNames(t, cs); names != "" {
		t.Errorf("got %q", names)
	}
	s.Refresh() // nothing changed
	c.set(offer("", "a", hiddenFrom("bob")))
	s.Refresh()
	<-told
	if names, _ := listNames(t, cs); names != "a" {
		t.Errorf("got %q", names)
	}
	c.set(offer("", "a"))
	s.Refresh()
	<-told
	if len(told) > 0 {
		t.Error("told of what did not change")
	}
}

// However many principals and audiences there are, each gets its own list.
func TestManyAudiences(t *testing.T) {
	const n = 100
	var offers []server.Offer
	pairs := []string{}
	for i := range n {
		offers = append(offers, offer("", fmt.Sprintf("t%03d", i), hiddenFrom(fmt.Sprint("p", i))))
		pairs = append(pairs, fmt.Sprint("p", i), fmt.Sprint(i))
	}
	e := listen(t, server.New(catalogOf(offers...), server.Options{}), server.HTTPOptions{Tokens: tokens(t, pairs...)})
	for range 2 {
		for i := 0; i < n; i += 7 {
			names, _ := listNames(t, e.client(t, versions["modern"], nil, "Authorization", fmt.Sprint("Bearer ", i)))
			if strings.Count(names, "t") != n-1 || strings.Contains(names, fmt.Sprintf("t%03d", i)) {
				t.Errorf("p%d sees %s", i, names)
			}
		}
	}
}
