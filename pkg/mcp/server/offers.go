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

// offers is what a catalog offered at one time. It never changes, but for the lists
// that views remembers.
type offers struct {
	listed []listed // in the order of their places
	views  views
	byName map[string]offered

	library *library
	only    *mcp.ServerState // see onlyServer
}

// offered is an offer and, unless it is hidden or cannot be listed, how it is listed.
type offered struct {
	Offer
	listing *listing
}

type listed struct {
	*listing
	audience int // of views
}

// listing is an entry of a list. That of a tool is used again as long as the tool stays the same.
type listing struct {
	place  string          // orders the list and is its cursor: for tools the weight, then the name
	marks  []mcp.ParamMark // the arguments of a tool that are also headers
	entry  json.RawMessage // as clients get it
	legacy json.RawMessage // as clients of 2025-11-25 and older get it
}

// Refresh reads the catalog again. When what is listed changed, clients that have a
// session or listen for changes are told so.
func (s *Server) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.set.Load()
	now := s.catalog.Contents()
	next := newOffers(now.Tools, old)
	next.only = onlyServer(now)
	next.library = newLibrary(now)
	s.set.Store(next)
	if old.byName != nil && !old.listsAs(next) {
		s.opts.Logger.Info("tools changed", slog.Int("tools", len(next.listed)))
		s.ListChanged("tools")
	}
	if old.byName != nil && !reflect.DeepEqual(old.library.lists, next.library.lists) {
		s.opts.Logger.Info("prompts or resources changed", slog.Int("prompts", len(next.library.lists["prompts"])), slog.Int("resources", len(next.library.lists["resources"])))
		s.ListChanged("prompts")
		s.ListChanged("resources")
	}
}

// newOffers makes the offers of a catalog. What is listed as before is taken from the old ones.
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
			next.listing = old.byName[name].relist(name, next.Offer)
		}
		if o.byName[name] = next; next.listing != nil {
			o.listed = append(o.listed, listed{next.listing, o.views.add(next.Audience)})
		}
	}
	slices.SortFunc(o.listed, func(a, b listed) int { return strings.Compare(a.place, b.place) })
	return o
}

// listsAs reports whether clients see the same list.
func (o *offers) listsAs(other *offers) bool {
	return slices.EqualFunc(o.listed, other.listed, func(a, b listed) bool {
		return (a.listing == b.listing || bytes.Equal(a.entry, b.entry)) && o.views.name(a.audience) == other.views.name(b.audience)
	})
}

// relist returns how the offer of a name, which was o before, is listed now.
func (o offered) relist(name string, now Offer) *listing {
	if o.listing != nil && o.Tool == now.Tool && bytes.Equal(o.Definition, now.Definition) {
		return o.listing
	}
	return newListing(newDefinition(name, now), now.Tool.Weight())
}

// newListing lists a tool. It is nil for one whose schema is not valid JSON, which is not ready
// either; it would spoil the whole list.
func newListing(w definition, weight int) *listing {
	tool, err := json.Marshal(w)
	if err != nil {
		return nil
	}
	const heaviest = 1 << 20
	place := fmt.Sprintf("%07d%s", heaviest-max(-heaviest, min(weight, heaviest)), w.Name)
	l := &listing{place, mcp.ParamMarks(w.InputSchema), tool, tool}
	if old := w.forOlder(); len(old.OutputSchema) != len(w.OutputSchema) {
		l.legacy, _ = json.Marshal(old)
	}
	return l
}

// paramHeaders compares the arguments of a call with the headers that repeat them (MCP 2026-07-28,
// basic/transports, custom headers); "" when they agree.
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

// withRootType gives an input schema that names no root type the one that clients
// ask for. Arguments are an object anyway, so it means the same.
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

// lookup finds something among the offers. If it is not there, lookup waits for servers that are starting, or with the
// name of a tool only for those that may have it.
func lookup[T any](ctx context.Context, s *Server, tool string, find func(*offers) (T, bool)) (T, bool) {
	found, ok := find(s.set.Load())
	if !ok {
		s.catalog.Settle(ctx, tool)
		found, ok = find(s.set.Load())
	}
	return found, ok
}

// serverOf finds the server of a URI.
func (s *Server) serverOf(ctx context.Context, uri string) (v1.Key, bool) {
	return lookup(ctx, s, "", func(o *offers) (v1.Key, bool) { return o.library.server(uri) })
}
