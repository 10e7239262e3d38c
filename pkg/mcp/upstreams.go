package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/proc"
	"toolctl.dev/toolctl/internal/redact"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// Upstreams holds the sessions to MCP servers. All methods are safe for concurrent use.
type Upstreams struct {
	opts  Options
	host  proc.Host
	asked atomic.Int64 // requests of servers

	observer *observer // nil without observability

	mu     sync.RWMutex
	set    map[v1.Key]*upstream
	gone   []*upstream // replaced servers, which end after their last call
	closed bool
}

// NewUpstreams returns the sessions to servers without starting any server. If two servers have the same
// key, the first counts.
func NewUpstreams(servers []*v1.MCPServer, o Options) *Upstreams {
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.MaxMessageBytes <= 0 {
		o.MaxMessageBytes = 64 << 20
	}
	if o.MaxPeerSessions <= 0 {
		o.MaxPeerSessions = defaultPeerSessions
	}
	if o.StopTimeout <= 0 {
		o.StopTimeout = 2 * time.Second
	}
	o.Name, o.Version = cmp.Or(o.Name, "toolctl"), cmp.Or(o.Version, "dev")
	u := &Upstreams{opts: o, set: map[v1.Key]*upstream{}}
	u.Replace(servers)
	u.observer = newObserver(u, o.TracerProvider, o.MeterProvider)
	return u
}

// Replace replaces the set of servers. Sessions to servers with an unchanged manifest continue; the others
// end after their calls.
func (u *Upstreams) Replace(servers []*v1.MCPServer) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.closed {
		return
	}
	next := make(map[v1.Key]*upstream, len(servers))
	for _, m := range servers {
		key := serverKey(m.Key())
		switch old := u.set[key]; {
		case next[key] != nil:
		case old != nil && unchanged(old.spec, m):
			next[key] = old
		default:
			next[key] = newUpstream(u, m)
		}
	}
	u.gone = slices.DeleteFunc(u.gone, (*upstream).endIdle)
	for key, old := range u.set {
		if next[key] != old {
			old.leave()
			u.gone = append(u.gone, old)
		}
	}
	u.set = next
}

// serverKey returns a complete key for a key that may lack its kind or namespace.
func serverKey(k v1.Key) v1.Key {
	return v1.Key{Kind: v1.KindMCPServer, Namespace: cmp.Or(k.Namespace, v1.DefaultNamespace), Name: k.Name}
}

// unchanged reports whether two manifests describe the same session.
func unchanged(a, b *v1.MCPServer) bool {
	return reflect.DeepEqual(a.Spec, b.Spec) && reflect.DeepEqual(a.Metadata, b.Metadata) &&
		a.Source.File == b.Source.File && reflect.DeepEqual(a.Files, b.Files)
}

// Servers returns the keys of the set, sorted.
func (u *Upstreams) Servers() []v1.Key {
	u.mu.RLock()
	defer u.mu.RUnlock()
	keys := make([]v1.Key, 0, len(u.set))
	for k := range u.set {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b v1.Key) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return keys
}

// get returns a server of the set. The error is a [v1.NotFoundError].
func (u *Upstreams) get(server v1.Key) (*upstream, error) {
	server = serverKey(server)
	u.mu.RLock()
	up := u.set[server]
	u.mu.RUnlock()
	if up == nil {
		err := &v1.NotFoundError{Kind: v1.KindMCPServer, Name: server.Namespace + "/" + server.Name}
		var names []string
		for _, k := range u.Servers() {
			names = append(names, k.Namespace+"/"+k.Name)
		}
		if near := v1.Nearest(err.Name, names); near != "" {
			err.Candidates = []string{near}
		}
		return nil, err
	}
	return up, nil
}

// State returns the known state of a server without querying it; false if the server is not in the set.
func (u *Upstreams) State(server v1.Key) (ServerState, bool) {
	up, err := u.get(server)
	if err != nil {
		return ServerState{}, false
	}
	return up.state(nil), true
}

// Discover queries the servers with the given keys, or all servers without keys, concurrently. It returns
// their states in the order of the keys, or sorted. A server that is down or slow is not ready and does not
// delay others: it takes at most its connect_timeout_ms, plus its timeout_ms for its lists. A key that is
// not in the set gets a state that says so.
func (u *Upstreams) Discover(ctx context.Context, keys ...v1.Key) []ServerState {
	if len(keys) == 0 {
		keys = u.Servers()
	}
	states := make([]ServerState, len(keys))
	var all sync.WaitGroup
	for i, key := range keys {
		up, err := u.get(key)
		if err != nil {
			states[i] = ServerState{Key: serverKey(key), Reason: err.Error(), Err: err, Tools: []DiscoveredTool{}}
			continue
		}
		all.Go(func() {
			_, err := up.discover(ctx)
			states[i] = up.state(err)
		})
	}
	all.Wait()
	return states
}

// state returns the known state; err is the result of the last query.
func (u *upstream) state(err error) ServerState {
	u.mu.Lock()
	s := ServerState{Key: u.key, Starts: u.starts, LastSeen: u.known.read, Transport: u.transport.Load().(string),
		Prompts: u.known.prompts, Resources: u.known.resources, ResourceTemplates: u.known.templates,
		ProtocolVersion: u.known.info.version, ServerName: u.known.info.name, ServerVersion: u.known.info.server,
		Instructions: u.known.info.instructions, Latency: u.known.latency}
	if err == nil {
		err = cmp.Or(u.shared.lastErr, u.away)
	}
	known, warnings := u.known.tools, u.known.warnings
	current := u.shared.current
	u.mu.Unlock()
	if err == nil && current != nil && current.ended() { // watch has not cleaned up yet
		err = u.lostSession(current)
	}

	if current != nil && !current.ended() {
		if l, ok := current.link.(*pipeLink); ok && l.child != nil {
			s.PID = l.child.PID()
		}
	}
	s.Stderr = u.stderr.Bytes()
	var more []string
	s.Tools, more = u.tools(known)
	if s.Tools == nil {
		s.Tools = []DiscoveredTool{}
	}
	if !s.LastSeen.IsZero() {
		s.Warnings = slices.Concat(warnings, more)
	}
	switch {
	case err != nil:
		s.Err, s.Reason = err, v1.Detailed(err)
	case s.LastSeen.IsZero():
		s.Reason = "not discovered yet"
	default:
		s.Ready = true
	}
	return s
}

// Call calls a tool by its name on the server. With retry, a call that was lost may be sent again; without
// retry, only a call that certainly did not reach the server.
//
// A tool that reports failure is a result with status "failed" and a [v1.ExecutionError]. A server that
// cannot be reached, or is lost during the call, is a [v1.MCPError] with code 0. A JSON-RPC error of the
// server is a [v1.MCPError] with its code. An unset variable is a [v1.ValidationError]. A server outside
// the set is a [v1.NotFoundError]. If ctx ends, Call returns its error and notifies the server.
func (u *Upstreams) Call(ctx context.Context, server v1.Key, tool string, args json.RawMessage, retry bool) (v1.Result, error) {
	up, err := u.get(server)
	if err != nil {
		return v1.Result{}, err
	}
	asked(ctx)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	o := up.spec.Spec.Overrides[tool]
	limit := milliseconds(cmp.Or(o.TimeoutMS, up.spec.Spec.TimeoutMS), 0)
	progress, _ := ctx.Value(progressKey{}).(func(Progress))
	if report := progress; report != nil {
		masks := redact.FromContext(ctx)
		progress = func(p Progress) {
			p.Message = masks.Join(up.secrets.Load()).Text(p.Message)
			report(p)
		}
	}
	answer, attempts, err := up.do(ctx, request{method: "tools/call", target: semconv.GenAIToolName(tool), limit: limit, retry: retry, progress: progress,
		name: tool, params: []param{{"name", tool}, {"arguments", args}}})
	if err != nil {
		return v1.Result{Attempts: attempts}, err
	}
	res, failed, ok := toolResult(answer)
	if !ok {
		return v1.Result{Attempts: attempts}, up.unavailable("the answer to tools/call is not a result: %s", excerpt(answer.Body))
	}
	res.Attempts = attempts
	_ = up.secrets.Load().Result(&res, nil) // the registry applies the rules after it has validated the result
	if failed {
		res.Status = v1.StatusFailed
		text := strings.Join(texts(res.Parts), "\n")
		if text == "" && res.Structured {
			text = string(res.Content)
		}
		text = cmp.Or(clip.Bytes(text, maxErrorText), "the tool reported a failure without a text")
		return res, &v1.ExecutionError{Tool: tool, Phase: v1.PhaseExecute, Message: text}
	}
	return res, nil
}

// ReadResource reads a resource. It returns one part of type "resource" for each of its contents.
func (u *Upstreams) ReadResource(ctx context.Context, server v1.Key, uri string) ([]v1.Part, error) {
	up, err := u.get(server)
	if err != nil {
		return nil, err
	}
	answer, _, err := up.do(ctx, request{method: "resources/read", name: uri, params: []param{{"uri", uri}}, limit: up.timeout(), retry: true})
	if err != nil {
		return nil, err
	}
	var r struct {
		Contents []wire.Contents `json:"contents"`
	}
	if err := json.Unmarshal(answer.Body, &r); err != nil {
		return nil, up.unavailable("the answer to resources/read cannot be read: %v", err)
	}
	ps := make([]v1.Part, len(r.Contents))
	for i, c := range r.Contents {
		ps[i] = up.secrets.Load().Part(v1.Part{Type: v1.PartResource, Resource: c.Part()})
	}
	return ps, nil
}

// GetPrompt returns a prompt with its arguments filled in.
func (u *Upstreams) GetPrompt(ctx context.Context, server v1.Key, name string, args map[string]string) (PromptResult, error) {
	up, err := u.get(server)
	if err != nil {
		return PromptResult{}, err
	}
	params := []param{{"name", name}}
	if len(args) > 0 {
		params = append(params, param{"arguments", args})
	}
	answer, _, err := up.do(ctx, request{method: "prompts/get", target: semconv.GenAIPromptName(name), name: name, params: params, limit: up.timeout(), retry: true})
	if err != nil {
		return PromptResult{}, err
	}
	var r struct {
		Description string `json:"description"`
		Messages    []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Meta json.RawMessage `json:"_meta"`
	}
	if err := json.Unmarshal(answer.Body, &r); err != nil {
		return PromptResult{}, up.unavailable("the answer to prompts/get cannot be read: %v", err)
	}
	res := PromptResult{Description: r.Description, Messages: make([]PromptMessage, len(r.Messages)), Meta: meta(r.Meta)}
	for i, m := range r.Messages {
		res.Messages[i] = PromptMessage{Role: m.Role, Content: up.secrets.Load().Part(part(m.Content))}
	}
	return res, nil
}

// Complete returns the values that an argument may have.
func (u *Upstreams) Complete(ctx context.Context, server v1.Key, r CompletionRequest) (Completion, error) {
	up, err := u.get(server)
	if err != nil {
		return Completion{}, err
	}
	if (r.Prompt == "") == (r.URITemplate == "") {
		return Completion{}, fmt.Errorf("a completion needs either a prompt or a resource template")
	}
	ref := map[string]string{"type": "ref/prompt", "name": r.Prompt}
	if r.Prompt == "" {
		ref = map[string]string{"type": "ref/resource", "uri": r.URITemplate}
	}
	params := []param{{"ref", ref}, {"argument", map[string]string{"name": r.Argument, "value": r.Value}}}
	if len(r.Context) > 0 {
		params = append(params, param{"context", map[string]any{"arguments": r.Context}})
	}
	answer, _, err := up.do(ctx, request{method: "completion/complete", params: params, limit: up.timeout(), retry: true})
	if err != nil {
		return Completion{}, err
	}
	var res struct {
		Completion Completion `json:"completion"`
	}
	if err := json.Unmarshal(answer.Body, &res); err != nil {
		return Completion{}, up.unavailable("the answer to completion/complete cannot be read: %v", err)
	}
	return res.Completion, nil
}

// Close ends all sessions and child processes, and waits for them. An unresponsive child takes twice
// StopTimeout. Close may be called more than once.
func (u *Upstreams) Close() error {
	u.mu.Lock()
	u.closed = true
	all := slices.Clone(u.gone)
	for _, up := range u.set {
		all = append(all, up)
	}
	u.mu.Unlock()
	var ended sync.WaitGroup
	for _, up := range all {
		ended.Go(up.close)
	}
	ended.Wait()
	u.host.Close()
	return nil
}
