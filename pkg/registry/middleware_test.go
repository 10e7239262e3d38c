package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/registry"
)

func TestMiddleware(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	note := func(s string) { mu.Lock(); seen = append(seen, s); mu.Unlock() }
	tracing := func(name string) registry.Middleware {
		return func(next registry.Handler) registry.Handler {
			return func(ctx context.Context, call v1.Call) (v1.Result, error) {
				note(name + ">")
				res, err := next(ctx, call)
				note("<" + name)
				return res, err
			}
		}
	}
	with := func(m registry.Middleware) registry.Middleware { return m }
	for _, tt := range []struct {
		name       string
		middleware registry.Middleware
		args       string
		seen       string
		content    string
		err        string
	}{
		{"passes on", with(func(next registry.Handler) registry.Handler { return next }), `{"city":"Oslo"}`, "a> b> ran <b <a", `{"city":"Oslo"}`, ""},
		{"changes the call", with(func(next registry.Handler) registry.Handler {
			return func(ctx context.Context, c v1.Call) (v1.Result, error) {
				c.Args = json.RawMessage(`{"city":"Bergen"}`)
				return next(ctx, c)
			}
		}), `{"city":"Oslo"}`, "a> b> ran <b <a", `{"city":"Bergen"}`, ""},
		{"answers by itself", with(func(registry.Handler) registry.Handler {
			return func(context.Context, v1.Call) (v1.Result, error) {
				return v1.Result{Content: json.RawMessage(`"kept"`)}, nil
			}
		}), `{"city":"Oslo"}`, "a> b> <b <a", `"kept"`, ""},
		{"calls again", with(func(next registry.Handler) registry.Handler {
			return func(ctx context.Context, c v1.Call) (v1.Result, error) {
				if _, err := next(ctx, c); err != nil {
					return v1.Result{}, err
				}
				return next(ctx, c)
			}
		}), `{"city":"Oslo"}`, "a> b> ran ran <b <a", `{"city":"Oslo"}`, ""},
		{"fails", with(func(registry.Handler) registry.Handler {
			return func(context.Context, v1.Call) (v1.Result, error) {
				return v1.Result{}, errors.New("the desk is closed")
			}
		}), `{"city":"Oslo"}`, "a> b> <b <a", "", `tool "weather": the desk is closed`},
		{"panics", with(func(registry.Handler) registry.Handler {
			return func(context.Context, v1.Call) (v1.Result, error) { panic("ouch") }
		}), `{"city":"Oslo"}`, "a> b>", "", `tool "weather": a middleware panicked: ouch`},
		{"sees the checks fail", with(func(next registry.Handler) registry.Handler { return next }), `{}`, "a> b> <b <a", "", "invalid arguments"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := &running{note: func() { note("ran") }}
			reg := newRegistry(t, registry.Options{Executors: []registry.Executor{run}, Middleware: []registry.Middleware{tracing("a"), tracing("b"), tt.middleware}}, newTool("weather"))
			check := func(way string, res v1.Result, err error) {
				t.Helper()
				if got := strings.Join(seen, " "); got != tt.seen {
					t.Errorf("%s: seen %q, want %q", way, got, tt.seen)
				}
				seen = nil
				if string(res.Content) != tt.content || res.Tool != "weather" {
					t.Errorf("%s: got %s of %q, want %s", way, res.Content, res.Tool, tt.content)
				}
				if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%s: got %v, want %s", way, err, tt.err)
				}
				if want := map[bool]string{true: v1.StatusComplete, false: v1.StatusFailed}[err == nil]; res.Status != want || (err == nil) != (res.Error == nil) {
					t.Errorf("%s: status %q, error %v", way, res.Status, res.Error)
				}
				if v1.NewResultError(err) != nil && err != nil && !known(err) {
					t.Errorf("%s: %T is not an error of api/v1", way, err)
				}
			}
			call := v1.Call{Tool: "weather", Args: json.RawMessage(tt.args)}
			res, err := reg.Execute(t.Context(), call)
			check("Execute", res, err)
			out := reg.ExecuteAll(t.Context(), []v1.Call{call})[0]
			check("ExecuteAll", out.Result, out.Err)
		})
	}
}

func known(err error) bool {
	var invalid *v1.ValidationError
	var failed *v1.ExecutionError
	return errors.As(err, &invalid) || errors.As(err, &failed)
}

// running is the mock executor, which returns its arguments.
type running struct{ note func() }

func (*running) Name() string { return v1.ModeMock }

func (r *running) Execute(_ context.Context, _ *v1.Tool, args json.RawMessage) (v1.Result, error) {
	r.note()
	return v1.Result{Content: args, Attempts: 1}, nil
}

// The policies decide on the calls of one turn in order, regardless of the middleware of each call.
func TestMiddlewareKeepsTheOrderOfATurn(t *testing.T) {
	first := make(chan struct{})
	slow := func(next registry.Handler) registry.Handler {
		return func(ctx context.Context, c v1.Call) (v1.Result, error) {
			switch c.ID {
			case "0":
				<-first // until all others wait for their turn, or have answered
			case "4":
				close(first)
				return v1.Result{Content: json.RawMessage(`"by itself"`)}, nil
			}
			return next(ctx, c)
		}
	}
	two := int64(2)
	reg := newRegistry(t, registry.Options{Executors: []registry.Executor{mock{name: "mock"}}, Middleware: []registry.Middleware{slow}},
		newTool("weather"), newPolicy("p", v1.ToolPolicySpec{MaxTotalToolCalls: &two}))
	calls := make([]v1.Call, 6)
	for i := range calls {
		calls[i] = oslo("weather")
		calls[i].ID = string(rune('0' + i))
	}
	for i, o := range reg.ExecuteAll(t.Context(), calls) {
		if passes := i < 2 || i == 4; (o.Err == nil) != passes {
			t.Errorf("call %d got %v", i, o.Err)
		}
	}
}
