package action

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/registry"
)

// Condition is a status of a condition type, such as Ready=True.
type Condition struct{ Type, Status string }

// Ready is the condition of usable objects. Checking it queries MCP servers.
var Ready = Condition{v1.ConditionReady, v1.ConditionTrue}

// ConditionPrefix begins the text of a condition that names its type.
const ConditionPrefix = "condition="

// ParseCondition reads "ready" or condition=TYPE[=STATUS]. The error says what is expected.
func ParseCondition(text string) (c Condition, err error) {
	typ, status, ok := strings.Cut(strings.TrimPrefix(text, ConditionPrefix), "=")
	if !ok {
		status = v1.ConditionTrue
	}
	for _, known := range []string{v1.ConditionReady, v1.ConditionDegraded, v1.ConditionDrifted} {
		if strings.EqualFold(typ, known) && (known == v1.ConditionReady || strings.HasPrefix(text, ConditionPrefix)) {
			c.Type = known
		}
	}
	for _, known := range []string{v1.ConditionTrue, v1.ConditionFalse, v1.ConditionUnknown} {
		if strings.EqualFold(status, known) {
			c.Status = known
		}
	}
	if c.Type == "" || c.Status == "" {
		return c, errors.New("ready, or condition=TYPE[=STATUS] with the type Ready, Degraded or Drifted and the status True, False or Unknown")
	}
	return c, nil
}

// String returns the condition for messages.
func (c Condition) String() string {
	if c == Ready {
		return "ready"
	}
	return c.Type + "=" + c.Status
}

// Wait waits until objects have a condition.
type Wait struct {
	*Config
	// Keys are the objects. Default: the objects of Requests.
	Keys []v1.Key
	// Requests name objects, or kinds from which Selector selects objects. Default: all objects.
	Requests []Request
	Selector string
	// Condition is the condition to wait for. Default: [Ready].
	Condition Condition
	Timeout   time.Duration
	// Met is called with each object that has the condition.
	Met func(v1.Key)
}

// NotReadyError has the reason for each object that did not have the condition at the timeout.
type NotReadyError struct{ Reasons []string }

func (e *NotReadyError) Error() string { return strings.Join(e.Reasons, "\n") }

// Run waits. After the timeout, the error is a [NotReadyError].
func (w *Wait) Run(ctx context.Context) error {
	want := cmp.Or(w.Condition, Ready)
	keys := w.Keys
	if keys == nil {
		var err error
		if keys, err = w.find(ctx); err != nil {
			return err
		}
	}
	within, stop := context.WithTimeout(ctx, w.Timeout)
	defer stop()
	reasons := map[v1.Key]string{}
	for next := time.Duration(0); len(keys) > 0; next = min(max(2*next, 200*time.Millisecond), 2*time.Second) {
		pause(within, next)
		var err error
		if keys, err = w.round(within, keys, want, reasons); ctx.Err() != nil {
			return ctx.Err()
		} else if err != nil && within.Err() == nil {
			return err
		}
		if len(keys) > 0 && within.Err() != nil {
			late := &NotReadyError{}
			for _, k := range keys {
				late.Reasons = append(late.Reasons, fmt.Sprintf("%s is not %s after %s: %s", ObjectName(k), want, clip.Duration(w.Timeout), cmp.Or(reasons[k], "it was not checked in time")))
			}
			return late
		}
	}
	return nil
}

// pause waits for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

// find returns the objects to wait for. An object that can never be ready is an error.
func (w *Wait) find(ctx context.Context) (keys []v1.Key, err error) {
	has, err := Labeled(w.Selector)
	if err != nil {
		return nil, err
	}
	ws, err := w.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer ws.Close()
	requests := w.Requests
	if len(requests) == 0 {
		requests = []Request{{}}
	}
	kind := ""
	for _, r := range requests {
		kind = r.Kind
		if len(r.Names) == 0 {
			page, err := ws.Registry.List(registry.Query{Kind: r.Kind, Namespace: w.Namespace})
			if err != nil {
				return nil, err
			}
			for _, it := range page.Items {
				if has(it.Object) {
					keys = append(keys, it.Object.Head().Key())
				}
			}
		}
		for _, name := range r.Names {
			if r.Kind == v1.KindTool {
				_, _ = ws.Prepare(ctx, v1.Call{Tool: name, Namespace: w.Namespace}) // Get reports a missing tool
			}
			it, err := ws.Registry.Get(r.Kind, w.Namespace, name)
			if err != nil {
				return nil, err
			}
			if r.Kind == v1.KindMCPServer && len(it.Reasons) > 0 {
				return nil, v1.NewValidationError(v1.ManifestInvalid, "", it.Reasons)
			}
			keys = append(keys, it.Object.Head().Key())
		}
	}
	if len(keys) == 0 {
		return nil, &v1.NotFoundError{Kind: cmp.Or(kind, "Object"), Name: cmp.Or(w.Selector, "any")}
	}
	return keys, nil
}

// round checks objects once and returns those that do not have the condition yet, with the reasons. It uses new
// sessions for servers each time, because these have no back-off.
func (w *Wait) round(ctx context.Context, keys []v1.Key, want Condition, reasons map[v1.Key]string) (still []v1.Key, err error) {
	ws, err := w.Open(ctx)
	if err != nil {
		return keys, err
	}
	defer ws.Close()
	all, states, err := ws.Look(ctx, keys)
	if err != nil {
		return keys, err
	}
	for _, k := range keys {
		s := all[k]
		c := s.Condition(want.Type)
		if c.Status == want.Status {
			if w.Met != nil {
				w.Met(k)
			}
			continue
		}
		if reasons[k] == "" || ctx.Err() == nil { // at the timeout, the last reason may only be the timeout
			reasons[k] = cmp.Or(c.Message, "status unknown")
			if state := stateOf(states, k); state != nil && !state.Ready && want.Type == v1.ConditionReady {
				reasons[k] = clip.Line(inspect.Show(state.Why()))
			}
		}
		still = append(still, k)
	}
	return still, nil
}

// ObjectName returns the name of an object for messages: tool/NAME.
func ObjectName(k v1.Key) string { return strings.ToLower(k.Kind) + "/" + k.Name }
