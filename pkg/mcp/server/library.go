package server

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/yosida95/uritemplate/v3"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/wirename"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// library holds the prompts and resources of a catalog at one time.
type library struct {
	lists    map[string][]listed // by "prompts", "resources" and "resourceTemplates"
	promptOf map[string]remote   // by client-side name
	serverOf map[string]v1.Key   // the owner of a URI: an MCPServer or the manifest that declares it
	sourceOf map[string]v1.Key   // the MCPServer of a template
	patterns []pattern
}

type remote struct {
	owner  v1.Key // an MCPServer, or a Prompt of the catalog
	prompt mcp.Prompt
}

type pattern struct {
	server   v1.Key
	template *uritemplate.Template
}

// maxTemplate is the maximum length of templates and addresses that are compared, because a template
// becomes a regular expression.
const maxTemplate = 2048

// promptID identifies a prompt by its owner and its name there.
type promptID struct {
	owner v1.Key
	name  string
}

// promptNames returns the names by which clients know the prompts.
func promptNames(c Contents) map[promptID]string {
	var ids []wirename.ID
	var of []promptID
	for _, s := range ready(c.Servers) {
		for _, p := range s.Prompts {
			name := s.Key.Name + "__" + p.Name
			full := s.Key.Namespace + "/" + name
			if s.Bare {
				name = p.Name
			}
			of, ids = append(of, promptID{s.Key, p.Name}), append(ids, wirename.ID{Namespace: s.Key.Namespace, Name: name, Full: full})
		}
	}
	for _, p := range c.Prompts {
		of, ids = append(of, promptID{p.Key, p.Name}), append(ids, wirename.ID{Namespace: p.Key.Namespace, Name: p.Key.Name, Full: p.Key.Namespace + "/" + p.Key.Name})
	}
	names := make(map[promptID]string, len(of))
	for i, name := range wirename.Names(ids) {
		names[of[i]] = name
	}
	return names
}

// ready returns the servers that are ready, sorted.
func ready(servers []Upstream) []Upstream {
	servers = slices.DeleteFunc(slices.Clone(servers), func(s Upstream) bool { return !s.Ready })
	slices.SortFunc(servers, func(a, b Upstream) int {
		return cmp.Or(strings.Compare(a.Key.Namespace, b.Key.Namespace), strings.Compare(a.Key.Name, b.Key.Name))
	})
	return servers
}

func newLibrary(c Contents, names map[promptID]string) *library {
	l := &library{lists: map[string][]listed{}, promptOf: map[string]remote{}, serverOf: map[string]v1.Key{}, sourceOf: map[string]v1.Key{}}
	for _, f := range c.Resources {
		if _, twice := l.serverOf[f.URI]; !twice {
			l.serverOf[f.URI] = f.Owner
			l.add("resources", f.URI, f.Resource)
		}
	}
	for _, s := range ready(c.Servers) {
		for _, p := range s.Prompts {
			l.addPrompt(s.Key, p, names)
		}
		for _, r := range s.Resources {
			if _, twice := l.serverOf[r.URI]; !twice {
				l.serverOf[r.URI] = s.Key
				l.add("resources", r.URI, r)
			}
		}
		for _, t := range s.ResourceTemplates {
			if _, twice := l.sourceOf[t.URITemplate]; twice {
				continue
			}
			l.sourceOf[t.URITemplate] = s.Key
			l.add("resourceTemplates", t.URITemplate, t)
			if compiled, err := uritemplate.New(t.URITemplate); err == nil && len(t.URITemplate) <= maxTemplate {
				l.patterns = append(l.patterns, pattern{s.Key, compiled})
			}
		}
	}
	for _, p := range c.Prompts {
		l.addPrompt(p.Key, p.Prompt, names)
	}
	for _, all := range l.lists {
		slices.SortFunc(all, func(a, b listed) int { return strings.Compare(a.place, b.place) })
	}
	return l
}

func (l *library) addPrompt(owner v1.Key, p mcp.Prompt, names map[promptID]string) {
	if name := names[promptID{owner, p.Name}]; name != "" {
		l.promptOf[name] = remote{owner, p}
		p.Name = name
		l.add("prompts", name, p)
	}
}

// add adds an entry to a list. It skips an entry with invalid JSON, such as in annotations, because that
// would make the whole list invalid.
func (l *library) add(list, place string, entry any) {
	if text, err := jsontext.Marshal(entry); err == nil {
		l.lists[list] = append(l.lists[list], listed{listing: &listing{place: place, entry: text, legacy: text}})
	}
}

// server returns the server for an address: the server that lists it, or else the first server with a
// matching template.
func (l *library) server(uri string) (v1.Key, bool) {
	if k, ok := l.serverOf[uri]; ok {
		return k, true
	}
	if len(uri) > maxTemplate {
		return v1.Key{}, false
	}
	for _, p := range l.patterns {
		if p.template.Match(uri) != nil {
			return p.server, true
		}
	}
	return v1.Key{}, false
}

// listResult is the response to a request for a list.
type listResult map[string]any

func (l listResult) mark(by *sdk.Implementation) {
	l["resultType"], l["_meta"] = "complete", map[string]any{wire.MetaServer: by}
}

// page returns the items after the one that a cursor names, and the next cursor. If the list changes between two
// pages, items that stay are neither repeated nor skipped.
func page(all []listed, cursor string, size int) ([]listed, string, error) {
	from := 0
	if cursor != "" {
		last, err := base64.RawURLEncoding.DecodeString(cursor)
		if err != nil || len(last) == 0 {
			return nil, "", &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the cursor is not from this server: start again without one"}
		}
		at, found := slices.BinarySearchFunc(all, string(last), func(l listed, last string) int { return strings.Compare(l.place, last) })
		if from = at; found {
			from++
		}
	}
	items := all[from:min(from+size, len(all))]
	if from+len(items) == len(all) {
		return items, "", nil
	}
	return items, base64.RawURLEncoding.EncodeToString([]byte(items[len(items)-1].place)), nil
}

// list returns the handler for a list: "tools", with the heaviest tools first, "prompts", "resources" or
// "resourceTemplates".
func list(key string) handler {
	return func(s *Server, ctx context.Context, r *request) (answer, error) {
		s.catalog.Settle(ctx, "")
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		cursor, err := r.text("cursor")
		if err != nil {
			return nil, err
		}
		set, scope := s.offers(r.toolset), "public"
		all := set.library.lists[key]
		if key == "tools" {
			if all = set.view(r.principal).menu; len(set.views.audiences) > 0 {
				scope = "private"
			}
		}
		items, next, err := page(all, cursor, s.opts.PageSize)
		if err != nil {
			return nil, err
		}
		entries := make([]json.RawMessage, len(items))
		for i, l := range items {
			if entries[i] = l.legacy; r.modern() {
				entries[i] = l.entry
			}
		}
		cache := s.cacheable(scope)
		res := listResult{key: entries, "ttlMs": cache.TTL, "cacheScope": cache.Scope}
		if next != "" {
			res["nextCursor"] = next
		}
		return res, nil
	}
}

// promptResult is a GetPromptResult.
type promptResult struct {
	base
	Description string          `json:"description,omitempty"`
	Messages    []promptMessage `json:"messages"`
}

type promptMessage struct {
	Role    string     `json:"role"`
	Content wire.Block `json:"content"`
}

func (s *Server) getPrompt(ctx context.Context, r *request) (answer, error) {
	name, err := r.text("name")
	if err != nil {
		return nil, err
	}
	var args map[string]string
	if err := r.read("arguments", &args); err != nil {
		return nil, err
	}
	ctx, release, err := s.memory(ctx, r)
	if err != nil {
		return nil, err
	}
	defer release()
	known, ok := lookup(ctx, s, r.toolset, "", func(o *offers) (remote, bool) { p, ok := o.library.promptOf[name]; return p, ok })
	if !ok {
		return nil, invalidParams(fmt.Sprintf("unknown prompt %q", clip.Bytes(name, 100)))
	}
	for _, a := range known.prompt.Arguments {
		if _, given := args[a.Name]; a.Required && !given {
			return nil, invalidParams(fmt.Sprintf("prompt %q: the argument %q is missing", name, a.Name))
		}
	}
	got, err := s.catalog.GetPrompt(ctx, known.owner, known.prompt.Name, args)
	if err != nil {
		return nil, relayed(err)
	}
	res := &promptResult{base: base{Meta: metaOf(got.Meta)}, Description: got.Description, Messages: []promptMessage{}}
	for _, m := range got.Messages {
		res.Messages = append(res.Messages, promptMessage{m.Role, wire.BlockOf(m.Content)})
	}
	size := int64(len(res.Description))
	for i := range res.Messages {
		size += res.Messages[i].Content.Len()
	}
	if err := s.fits("prompt "+name, size); err != nil {
		return nil, err
	}
	return res, nil
}

// readResult is a ReadResourceResult.
type readResult struct {
	base
	*cacheable
	Contents []wire.Contents `json:"contents"`
}

// codeNoResource is the error code for a missing resource that clients of 2025-11-25 and older expect.
const codeNoResource = -32002

func noResource(uri, version string) error {
	data, _ := json.Marshal(map[string]string{"uri": clip.Bytes(uri, 100)})
	code := int64(codeNoResource)
	if wire.IsModern(version) {
		code = jsonrpc.CodeInvalidParams
	}
	return &jsonrpc.Error{Code: code, Message: "resource not found", Data: data}
}

func (s *Server) readResource(ctx context.Context, r *request) (answer, error) {
	uri, err := r.text("uri")
	if err != nil {
		return nil, err
	}
	ctx, release, err := s.memory(ctx, r)
	if err != nil {
		return nil, err
	}
	defer release()
	server, ok := s.serverOf(ctx, r.toolset, uri)
	if !ok {
		return nil, noResource(uri, r.version)
	}
	parts, err := s.catalog.ReadResource(ctx, server, uri)
	if err != nil {
		return nil, relayed(err)
	}
	// A server may have made the result for one client only.
	res := &readResult{cacheable: s.cacheable("private"), Contents: []wire.Contents{}}
	for _, p := range parts {
		if b := wire.BlockOf(p); b.Resource != nil {
			res.Contents = append(res.Contents, *b.Resource)
		}
	}
	var size int64
	for i := range res.Contents {
		size += res.Contents[i].Len()
	}
	if err := s.fits(uri, size); err != nil {
		return nil, err
	}
	return res, nil
}

// completion is a CompleteResult.
type completion struct {
	base
	Completion mcp.Completion `json:"completion"`
}

// complete answers completion/complete (MCP specification, utilities/completion).
func (s *Server) complete(ctx context.Context, r *request) (answer, error) {
	var ref struct{ Type, Name, URI string }
	var argument struct{ Name, Value string }
	var more struct{ Arguments map[string]string }
	for name, into := range map[string]any{"ref": &ref, "argument": &argument, "context": &more} {
		if err := r.read(name, into); err != nil {
			return nil, err
		}
	}
	if ref.Type == "" || argument.Name == "" {
		return nil, invalidParams("expected ref and argument.name")
	}
	ask := mcp.CompletionRequest{Argument: argument.Name, Value: argument.Value, Context: more.Arguments}
	s.catalog.Settle(ctx, "")
	known := s.offers(r.toolset).library
	var from v1.Key
	var ok bool
	if ref.Type == "ref/prompt" {
		var found remote
		found, ok = known.promptOf[ref.Name]
		from, ask.Prompt = found.owner, found.prompt.Name
	} else {
		if from, ok = known.sourceOf[ref.URI]; !ok {
			from, ok = known.server(ref.URI)
		}
		ask.URITemplate = ref.URI
	}
	if !ok {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown reference %q", clip.Bytes(ref.Name+ref.URI, 100))}
	}
	got, err := s.catalog.Complete(ctx, from, ask)
	if err != nil {
		return nil, relayed(err)
	}
	if got.Values == nil {
		got.Values = []string{}
	}
	return &completion{Completion: got}, nil
}

// relayed returns the JSON-RPC error for an error of an MCP server: the server's own error, or an error
// because it cannot be reached.
func relayed(err error) error {
	var upstream *v1.MCPError
	var invalid *v1.ValidationError
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.As(err, &upstream) && upstream.Code != 0:
		return &jsonrpc.Error{Code: upstream.Code, Message: upstream.Message, Data: upstream.Data}
	case errors.As(err, &invalid) && invalid.Type == v1.ArgsInvalid: // server/prompts, error handling
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
	}
	return &jsonrpc.Error{Code: codeUnavailable, Message: err.Error()}
}
