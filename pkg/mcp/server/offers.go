package server

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"toolctl.dev/toolctl/internal/wirename"
	"toolctl.dev/toolctl/pkg/mcp"
)

// offers is what a catalog offered at one time. It never changes, but for the lists
// that views remembers.
type offers struct {
	listed []listed // in the order of their places
	views  views
	byName map[string]Offer
	sum    [sha256.Size]byte // of what is listed
	checks map[string]bool   // tools that the SDK knows too; see headerTools

	library  *library
	archived [sha256.Size]byte // the sum of the library
	only     *mcp.ServerState  // see onlyServer
}

type listed struct {
	place    string // orders the list: the weight, then the name
	name     string
	schema   json.RawMessage // of the arguments
	tool     json.RawMessage // as clients get it
	legacy   json.RawMessage // as clients of 2025-11-25 and older do
	audience int             // of views
}

// Refresh reads the catalog again. When what is listed changed, clients that have a
// session or listen for changes are told so.
func (s *Server) Refresh() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := s.set.Load()
	now := s.catalog.Contents()
	next := newOffers(now.Tools)
	next.only = onlyServer(now)
	next.library = newLibrary(now)
	h := sha256.New()
	_ = json.NewEncoder(h).Encode([]any{next.library.prompts, next.library.resources, next.library.templates}) // annotations were read as JSON
	h.Sum(next.archived[:0])
	s.headerTools(old, next)
	s.set.Store(next)
	if old.byName != nil && old.sum != next.sum {
		s.opts.Logger.Info("tools changed", slog.Int("tools", len(next.listed)))
		s.ListChanged("tools")
	}
	if old.byName != nil && old.archived != next.archived {
		s.opts.Logger.Info("prompts or resources changed", slog.Int("prompts", len(next.library.prompts)), slog.Int("resources", len(next.library.resources)))
		s.ListChanged("prompts")
		s.ListChanged("resources")
	}
}

// ListChanged tells clients that a list may have changed: "tools", "prompts" or
// "resources". [Server.Refresh] does it when what is listed is another; a server behind
// the catalog may mean something that a list does not show. What comes at once is one.
func (s *Server) ListChanged(list string) {
	// The SDK tells clients when one of its own tools changes.
	switch list {
	case "tools":
		s.sdk.AddTool(&sdk.Tool{Name: notifier, InputSchema: json.RawMessage(`{"type":"object"}`)}, unreachable)
	case "prompts":
		s.sdk.AddPrompt(&sdk.Prompt{Name: notifier}, nil)
	case "resources":
		s.sdk.AddResource(&sdk.Resource{Name: notifier, URI: "toolctl:" + notifier}, nil)
	}
}

// notifier is a tool, a prompt and a resource of the SDK that no client can see or use.
const notifier = "toolctl-list-changed"

func unreachable(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "internal error"}
}

// headerTools gives the SDK the tools that mirror arguments in headers (MCP
// specification 2026-07-28, x-mcp-header), which its transport compares before the
// request gets here. It takes no others: it would read every schema anew.
func (s *Server) headerTools(old, next *offers) {
	next.checks = map[string]bool{}
	for _, l := range next.listed {
		if l.name != notifier && bytes.Contains(l.schema, []byte(`"x-mcp-header"`)) && s.addTool(&sdk.Tool{Name: l.name, InputSchema: l.schema}) {
			next.checks[l.name] = true
		}
	}
	for name := range old.checks {
		if !next.checks[name] {
			s.sdk.RemoveTools(name)
		}
	}
}

// addTool adds a tool to the SDK, which panics on one that it does not like.
func (s *Server) addTool(t *sdk.Tool) (ok bool) {
	defer func() {
		if p := recover(); p != nil {
			s.opts.Logger.Warn("headers of a tool cannot be checked", slog.String("tool", t.Name), slog.Any("reason", p))
		}
	}()
	s.sdk.AddTool(t, unreachable)
	return true
}

func newOffers(all []Offer) *offers {
	o := &offers{byName: make(map[string]Offer, len(all))}
	ids := make([]wirename.ID, len(all))
	for i, offer := range all {
		ids[i] = wirename.ID{Namespace: offer.Tool.Namespace(), Name: offer.Tool.Metadata.Name, Full: offer.Name}
	}
	for i, name := range wirename.Names(ids) {
		if name == "" {
			continue
		}
		o.byName[name] = all[i]
		if !all[i].Hidden {
			o.list(newWire(name, all[i]), all[i].Tool.Weight(), all[i].Audience)
		}
	}
	slices.SortFunc(o.listed, func(a, b listed) int { return strings.Compare(a.place, b.place) })
	h := sha256.New()
	for _, l := range o.listed {
		fmt.Fprintf(h, "%d:%s", len(l.tool), l.tool)
		if l.audience > 0 {
			fmt.Fprintf(h, "%q", o.views.audiences[l.audience-1].String())
		}
	}
	h.Sum(o.sum[:0])
	return o
}

// list adds a tool to those that are listed. One whose schema is not valid JSON is not ready
// and is not offered; it would spoil the whole list.
func (o *offers) list(w wire, weight int, a Audience) {
	tool, err := json.Marshal(w)
	if err != nil {
		return
	}
	const heaviest = 1 << 20
	place := fmt.Sprintf("%07d%s", heaviest-max(-heaviest, min(weight, heaviest)), w.Name)
	l := listed{place, w.Name, w.InputSchema, tool, tool, o.views.add(a)}
	if old := w.forOlder(); len(old.OutputSchema) != len(w.OutputSchema) {
		l.legacy, _ = json.Marshal(old)
	}
	o.listed = append(o.listed, l)
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
		return o, true
	}
	s.catalog.Settle(ctx, name)
	o, ok := s.set.Load().byName[name]
	return o, ok
}

// listTools answers tools/list: the heaviest tools first, equal ones in the order of their names.
func (s *Server) listTools(ctx context.Context, req *sdk.ListToolsRequest) (sdk.Result, error) {
	s.catalog.Settle(ctx, "")
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cursor := ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	set := s.set.Load()
	items, next, err := page(set.views.of(principalOf(req.Extra), set.listed), func(l listed) string { return l.place }, cursor, s.opts.PageSize)
	if err != nil {
		return nil, err
	}
	res, tools := s.newList(req.ProtocolVersion()), make([]json.RawMessage, len(items))
	modern := isModern(req.ProtocolVersion())
	for i, l := range items {
		if tools[i] = l.legacy; modern {
			tools[i] = l.tool
		}
	}
	if len(set.views.audiences) > 0 {
		res.CacheScope = "private"
	}
	res.Tools, res.NextCursor = tools, next
	return res, nil
}

// modernVersion is the first version of MCP without sessions.
const modernVersion = "2026-07-28"

func isModern(version string) bool { return version >= modernVersion }
