package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/mcp/wire"
)

// lists holds everything that a server offered at one time.
type lists struct {
	read      time.Time // zero if never
	tools     []json.RawMessage
	headers   map[string][]ParamMark // of the tools that have marks
	prompts   []Prompt
	resources []Resource
	templates []ResourceTemplate
	warnings  []string
	latency   time.Duration
	info      info
}

// info describes a server in its own words.
type info struct{ version, name, server, instructions string }

// Limits for the lists of one server.
const (
	maxPages     = 200
	maxItems     = 10_000
	maxListBytes = 64 << 20
	// maxInstructions limits the instructions of a server, in bytes.
	maxInstructions = 64 << 10
	defaultTimeout  = v1.DefaultTimeoutMS * time.Millisecond
)

// read queries everything that the server offers. With an open session it takes at most spec.timeout_ms.
func (u *upstream) read(ctx context.Context) (lists, error) {
	s, err := u.acquire(ctx, &u.shared)
	if err != nil {
		return lists{}, err
	}
	within, cancel := context.WithTimeout(ctx, u.timeout())
	defer cancel()
	l, err := u.readLists(within, s)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		err = u.unavailable("the server did not list its tools within %s (spec.timeout_ms)", clip.Duration(u.timeout()))
	}
	return l, err
}

// readLists reads the lists over a session, which it releases.
func (u *upstream) readLists(ctx context.Context, s *session) (_ lists, err error) {
	u.release(s)
	l := lists{info: s.info()}
	caps := s.hello.can()
	warn := func(w string) { l.warnings = append(l.warnings, w) }
	began := time.Now()
	if caps.Tools != nil || l.info.version >= wire.ModernVersion {
		l.tools, err = u.pages(ctx, "tools/list", "tools", warn)
		if err != nil && !isUnknownMethod(err) && (caps.Tools != nil || !isAnswer(err)) {
			return lists{}, err
		}
	} else if _, _, err = u.do(ctx, request{method: "ping", limit: u.timeout(), retry: true}); err != nil && !isUnknownMethod(err) {
		return lists{}, err
	}
	l.latency = time.Since(began)
	l.headers = marksOf(l.tools)
	// Tools matter most, so failures to read the other lists are only warnings.
	var more sync.WaitGroup
	var mu sync.Mutex
	other := func(method, key string, keep func([]json.RawMessage)) {
		more.Go(func() {
			items, err := u.pages(ctx, method, key, func(w string) { mu.Lock(); warn(w); mu.Unlock() })
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				if !isUnknownMethod(err) {
					warn(method + ": " + err.Error())
				}
				return
			}
			keep(items)
		})
	}
	if caps.Prompts != nil {
		other("prompts/list", "prompts", func(items []json.RawMessage) {
			l.prompts = decodeItems(items, "prompt", warn, func(p Prompt) string { return p.Name })
		})
	}
	if caps.Resources != nil {
		other("resources/list", "resources", func(items []json.RawMessage) {
			l.resources = decodeItems(items, "resource", warn, func(r Resource) string { return r.URI })
		})
		other("resources/templates/list", "resourceTemplates", func(items []json.RawMessage) {
			l.templates = decodeItems(items, "resource template", warn, func(t ResourceTemplate) string { return t.URITemplate })
		})
	}
	more.Wait()
	if err := ctx.Err(); err != nil {
		return lists{}, err
	}
	slices.Sort(l.warnings)
	l.read = u.owner.opts.Now()
	return l, nil
}

func (s *session) info() info {
	h := &s.hello
	return info{version: h.Version, instructions: s.mask(clip.Bytes(h.Instructions, maxInstructions)), name: s.mask(clip.Bytes(h.Info.Name, 256)), server: s.mask(clip.Bytes(h.Info.Version, 256))}
}

// timeout returns the time limit for a request that is not a tool call.
func (u *upstream) timeout() time.Duration {
	return milliseconds(u.spec.Spec.TimeoutMS, defaultTimeout)
}

// isAnswer reports whether an error came from the server.
func isAnswer(err error) bool {
	var mcp *v1.MCPError
	return errors.As(err, &mcp) && mcp.Code != 0
}

func isUnknownMethod(err error) bool {
	var mcp *v1.MCPError
	return errors.As(err, &mcp) && mcp.Code == -32601
}

// pages reads every page of a list. It stops with a warning if the cursors repeat or a limit is reached.
func (u *upstream) pages(ctx context.Context, method, key string, warn func(string)) ([]json.RawMessage, error) {
	var all []json.RawMessage
	seen := map[string]bool{}
	cursor, size := "", 0
	for page := 1; ; page++ {
		var params []param
		if cursor != "" {
			params = []param{{"cursor", cursor}}
		}
		answer, _, err := u.do(ctx, request{method: method, params: params, limit: u.timeout(), retry: true})
		if err != nil {
			return nil, err
		}
		var items []json.RawMessage
		if json.Unmarshal(answer.Result.Get(key), &items) != nil {
			return nil, u.unavailable("page %d of %s has no list %q: %s", page, method, key, excerpt(answer.Body))
		}
		size += len(answer.Body)
		for _, item := range items {
			all = append(all, u.withoutKeys(item))
		}
		next, ok := answer.Result.Text("nextCursor")
		if !ok && string(answer.Result.Get("nextCursor")) != "null" {
			warn(fmt.Sprintf("%s: page %d has a cursor that is not a string; the rest of the list is skipped", method, page))
		}
		switch {
		case next == "" && len(all) <= maxItems:
			return all, nil
		case seen[next]:
			warn(fmt.Sprintf("%s: the cursor %q of page %d occurred before; the rest of the list is skipped", method, clip.Bytes(next, 80), page))
			return all, nil
		case page == maxPages, len(all) > maxItems, size > maxListBytes:
			warn(fmt.Sprintf("%s: more than %d pages, %d items or %d bytes; the rest of the list is skipped", method, maxPages, maxItems, maxListBytes))
			return all[:min(len(all), maxItems)], nil
		}
		seen[next] = true
		cursor = next
	}
}

// withoutKeys masks the keys of the server in the description of one object. Names, addresses and schemas
// stay as they are, because calls need them.
func (u *upstream) withoutKeys(item json.RawMessage) json.RawMessage {
	m := u.secrets.Load()
	if bytes.Equal(m.JSON(item), item) {
		return item
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(item, &fields) != nil {
		return item // decoding rejects the item later
	}
	for _, name := range []string{"title", "description", "annotations", "icons", "arguments", "_meta"} {
		if raw, ok := fields[name]; ok {
			fields[name] = m.JSON(raw)
		}
	}
	return jsontext.Of(fields)
}

func orNull(raw json.RawMessage) json.RawMessage {
	if raw == nil {
		return json.RawMessage("null")
	}
	return raw
}

// decodeItems decodes each item separately, so that an invalid item does not hide others, and sorts the
// items by name.
func decodeItems[T any](items []json.RawMessage, what string, warn func(string), name func(T) string) []T {
	var all []T
	for i, raw := range items {
		var t T
		if err := json.Unmarshal(raw, &t); err != nil {
			warn(fmt.Sprintf("%s %d is left out: %v", what, i+1, err))
			continue
		}
		if name(t) == "" {
			warn(fmt.Sprintf("%s %d is left out: it has no name", what, i+1))
			continue
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b T) int { return strings.Compare(name(a), name(b)) })
	return all
}

// same reports whether two reads found the same content.
func (l *lists) same(o *lists) bool {
	return reflect.DeepEqual(l.tools, o.tools) && reflect.DeepEqual(l.prompts, o.prompts) &&
		reflect.DeepEqual(l.resources, o.resources) && reflect.DeepEqual(l.templates, o.templates) && l.info == o.info
}

// discover reads the lists and keeps them as the latest known lists.
func (u *upstream) discover(ctx context.Context) (changed bool, err error) {
	l, err := u.read(ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil {
		return false, err
	}
	changed = !u.known.read.IsZero() && !u.known.same(&l)
	u.known = l
	return changed, nil
}

// changed records a server's notification that a list changed: "tools", "prompts" or "resources".
func (u *upstream) changed(list string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.said[list] = true
	u.tellRelays("", "notifications/"+list+"/list_changed", nil)
	u.reread()
}

// refreshEvery is the minimum time between two reads that a server requests.
const refreshEvery = 100 * time.Millisecond

// reread reads the lists in the background, and again if the server reports further changes during the
// read. It is called under mu.
func (u *upstream) reread() {
	u.dirty = true
	if u.refresh || u.ended {
		return
	}
	u.refresh = true
	u.running.Go(func() {
		for {
			u.mu.Lock()
			if !u.dirty || u.closed {
				u.refresh = false
				u.mu.Unlock()
				return
			}
			u.dirty = false
			said := slices.Sorted(maps.Keys(u.said))
			clear(u.said)
			u.mu.Unlock()
			changed, err := u.discover(u.life)
			if err == nil && changed {
				u.tellChange()
			}
			for _, list := range said {
				u.tell(func() {
					if f := u.owner.opts.OnListChanged; f != nil && err == nil {
						f(u.key, list)
					}
				})
			}
			_ = sleep(u.life, refreshEvery)
		}
	})
}

func (u *upstream) tellChange() {
	u.tell(func() {
		if f := u.owner.opts.OnChange; f != nil {
			f(u.key)
		}
	})
}

// tell calls a hook and recovers from its panics.
func (u *upstream) tell(hook func()) {
	defer func() {
		if r := recover(); r != nil {
			u.log.Error("the change hook panicked", "panic", fmt.Sprint(r))
		}
	}()
	hook()
}
