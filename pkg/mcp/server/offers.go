package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

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

	library  *library
	archived [sha256.Size]byte // the sum of the library
	only     *mcp.ServerState  // see onlyServer
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

// listing is a tool as lists have it. It serves on as long as the tool is the same.
type listing struct {
	place  string // orders the list: the weight, then the name
	name   string
	marks  []mcp.ParamMark // the arguments that stand in headers too
	tool   json.RawMessage // as clients get it
	legacy json.RawMessage // as clients of 2025-11-25 and older do
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
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{next.library.prompts, next.library.resources, next.library.templates}) // annotations were read as JSON
	h.Sum(next.archived[:0])
	s.set.Store(next)
	if old.byName != nil && !old.listsAs(next) {
		s.opts.Logger.Info("tools changed", slog.Int("tools", len(next.listed)))
		s.ListChanged("tools")
	}
	if old.byName != nil && old.archived != next.archived {
		s.opts.Logger.Info("prompts or resources changed", slog.Int("prompts", len(next.library.prompts)), slog.Int("resources", len(next.library.resources)))
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
		return (a.listing == b.listing || bytes.Equal(a.tool, b.tool)) && o.views.name(a.audience) == other.views.name(b.audience)
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
	l := &listing{place, w.Name, mcp.ParamMarks(w.InputSchema), tool, tool}
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

// lookup finds a tool by the name that clients know. It waits for what may
// have the name only when that is not known yet.
func (s *Server) lookup(ctx context.Context, name string) (Offer, bool) {
	if o, ok := s.set.Load().byName[name]; ok {
		return o.Offer, true
	}
	s.catalog.Settle(ctx, name)
	o, ok := s.set.Load().byName[name]
	return o.Offer, ok
}

// listTools answers tools/list: the heaviest tools first, equal ones in the order of their names.
func (s *Server) listTools(ctx context.Context, r *request) (answer, error) {
	s.catalog.Settle(ctx, "")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cursor, err := r.text("cursor")
	if err != nil {
		return nil, err
	}
	set := s.set.Load()
	items, next, err := page(set.views.of(r.principal, set.listed), func(l listed) string { return l.place }, cursor, s.opts.PageSize)
	if err != nil {
		return nil, err
	}
	res, tools := &listResult{cacheable: s.cacheable("public")}, make([]json.RawMessage, len(items))
	for i, l := range items {
		if tools[i] = l.legacy; r.modern() {
			tools[i] = l.tool
		}
	}
	if len(set.views.audiences) > 0 {
		res.Scope = "private"
	}
	res.Tools, res.NextCursor = tools, next
	return res, nil
}
