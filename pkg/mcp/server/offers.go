package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/wirename"
	"toolctl.dev/toolctl/pkg/mcp"
)

// offers is the content of a toolset, or of a catalog, at one time. It never changes.
type offers struct {
	spec   v1.ToolsetSpec
	listed []listed // sorted by place
	views  views
	seen   seen
	byName map[string]offered

	library *library
	only    *mcp.ServerState // see onlyServer
	servers map[v1.Key]bool  // the MCP servers of a toolset; nil if all are served
}

// offered is an offer with its listing, which is nil if the offer is hidden or cannot be listed.
type offered struct {
	Offer
	listed
}

type listed struct {
	*listing
	audience int  // index in views
	pinned   bool // clients always see the tool
}

// name returns the name by which clients know a tool.
func (l *listing) name() string { return l.place[weightDigits:] }

// weightDigits is the length of the weight in the place of a tool.
const weightDigits = 7

// listing is an entry of a list. A tool's listing is reused while the tool stays the same.
type listing struct {
	place  string          // sort key and cursor: for tools the weight, then the name
	marks  []mcp.ParamMark // the arguments of a tool that are also headers
	entry  json.RawMessage // for clients
	legacy json.RawMessage // for clients of 2025-11-25 and older
}

// Refresh reads the catalog again. If the lists changed, it notifies clients with a session or a stream for
// changes.
func (s *Server) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old, next := s.set.Load(), s.newSnapshot(s.catalog.Contents())
	s.set.Store(next)
	s.indexes.forget()
	s.endRefused(next)
	if !old.all.listsAs(next.all) && old.toolsets != nil {
		s.opts.Logger.Info("tools changed", slog.Int("tools", len(next.all.listed)))
	}
	for toolset, o := range next.toolsets {
		was := old.toolsets[toolset]
		if was == nil {
			continue
		}
		if !was.listsAs(o) {
			s.listChanged(toolset, "tools")
		}
		if !reflect.DeepEqual(was.library.lists, o.library.lists) {
			s.opts.Logger.Info("prompts or resources changed", slog.String("toolset", toolset), slog.Int("prompts", len(o.library.lists["prompts"])), slog.Int("resources", len(o.library.lists["resources"])))
			s.listChanged(toolset, "prompts")
			s.listChanged(toolset, "resources")
		}
	}
}

// newOffers creates the offers of a catalog. It reuses unchanged listings of the old offers.
func newOffers(all []Offer, old *offers) *offers {
	o := &offers{byName: make(map[string]offered, len(all)), listed: make([]listed, 0, len(all))}
	ids := make([]wirename.ID, len(all))
	for i, offer := range all {
		ids[i] = wirename.ID{Namespace: offer.Tool.Namespace(), Name: offer.Tool.Metadata.Name, Full: offer.Name}
	}
	for i, name := range wirename.Names(ids) {
		if name == "" {
			continue
		}
		next := offered{Offer: all[i]}
		if !next.Hidden {
			next.listed = listed{old.byName[name].relist(name, next.Offer), o.views.add(next.Audience), false}
		}
		o.add(name, next)
	}
	o.sort()
	return o
}

func (o *offers) add(name string, next offered) {
	if o.byName[name] = next; next.listing != nil {
		o.listed = append(o.listed, next.listed)
	}
}

func (o *offers) sort() {
	slices.SortFunc(o.listed, func(a, b listed) int { return strings.Compare(a.place, b.place) })
}

// listsAs reports whether all clients see the same list. If what they see depends on who they are, it compares all
// tools, even if the clients do not see them because they search.
func (o *offers) listsAs(other *offers) bool {
	before, now := o.listed, other.listed
	if len(o.views.audiences)+len(other.views.audiences) == 0 {
		before, now = o.view("").menu, other.view("").menu
	} else if !reflect.DeepEqual(o.spec, other.spec) {
		return false
	}
	return slices.EqualFunc(before, now, func(a, b listed) bool {
		return (a.listing == b.listing || bytes.Equal(a.entry, b.entry)) && a.pinned == b.pinned && o.views.name(a.audience) == other.views.name(b.audience)
	})
}

// relist returns the listing of an offer that previously was o.
func (o offered) relist(name string, now Offer) *listing {
	if o.listing != nil && o.Tool == now.Tool && bytes.Equal(o.Definition, now.Definition) {
		return o.listing
	}
	return newListing(newDefinition(name, now), now.Tool.Weight())
}

// newListing lists a tool. It returns nil if a schema is not valid JSON, because that would make the whole
// list invalid; such a tool is not ready either.
func newListing(w definition, weight int) *listing {
	tool, err := json.Marshal(w)
	if err != nil {
		return nil
	}
	const heaviest = 1 << 20
	place := fmt.Sprintf("%0*d%s", weightDigits, heaviest-max(-heaviest, min(weight, heaviest)), w.Name)
	l := &listing{place, mcp.ParamMarks(w.InputSchema), tool, tool}
	if old := w.forOlder(); len(old.OutputSchema) != len(w.OutputSchema) {
		l.legacy, _ = json.Marshal(old)
	}
	return l
}

// paramHeaders compares the arguments of a call with the headers that repeat them (MCP 2026-07-28,
// basic/transports, custom headers). It returns "" if they match.
func (o *offers) paramHeaders(tool string, args json.RawMessage, h http.Header) string {
	l := o.byName[tool].listing
	if l == nil {
		return ""
	}
	for _, m := range l.marks {
		name := "Mcp-Param-" + m.Header
		want, ok := m.Value(args)
		if got := h.Get(name); ok != (got != "") || ok && mcp.DecodeHeader(got) != mcp.DecodeHeader(want) {
			return fmt.Sprintf("header mismatch: %s header value %q does not match the body", name, clip.Bytes(got, 100))
		}
	}
	return ""
}

// withRootType adds the root type that clients require to an input schema without a root type. The meaning
// stays the same, because arguments are always an object.
func withRootType(schema json.RawMessage) json.RawMessage {
	body := bytes.TrimSpace(schema)
	if rootType(body) != "" || len(body) < 2 || body[0] != '{' {
		return schema
	}
	rest := bytes.TrimSpace(body[1:])
	if rest[0] != '}' {
		rest = append([]byte{','}, rest...)
	}
	return append(json.RawMessage(`{"type":"object"`), rest...)
}

func rootType(schema json.RawMessage) string {
	var root struct {
		Type json.RawMessage `json:"type"`
	}
	if json.Unmarshal(schema, &root) != nil {
		return ""
	}
	return string(root.Type)
}

// lookup finds something among the offers of a toolset. If it finds nothing, it waits for servers that are
// starting, or with the name of a tool only for servers that may have that tool, and tries again.
func lookup[T any](ctx context.Context, s *Server, toolset, tool string, find func(*offers) (T, bool)) (T, bool) {
	found, ok := find(s.offers(toolset))
	if !ok {
		s.catalog.Settle(ctx, tool)
		found, ok = find(s.offers(toolset))
	}
	return found, ok
}

// serverOf finds the server of a URI in a toolset.
func (s *Server) serverOf(ctx context.Context, toolset, uri string) (v1.Key, bool) {
	return lookup(ctx, s, toolset, "", func(o *offers) (v1.Key, bool) { return o.library.server(uri) })
}
