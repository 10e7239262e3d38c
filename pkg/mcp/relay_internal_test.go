package mcp

import (
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"toolctl.dev/toolctl/pkg/mcp/wire"
)

func TestOutbox(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := &outbox{log: slog.New(slog.DiscardHandler)}
		var mu sync.Mutex
		var got []int
		hold := make(chan struct{})
		o.put(func() { <-hold; panic("contained") })
		for i := range maxOutbox + 10 {
			o.put(func() { mu.Lock(); got = append(got, i); mu.Unlock() })
		}
		synctest.Wait()
		close(hold)
		o.flush()
		mu.Lock()
		if len(got) < maxOutbox-1 || len(got) > maxOutbox || !slices.IsSorted(got) {
			t.Errorf("%d messages, in order: %t", len(got), slices.IsSorted(got))
		}
		mu.Unlock()
		o.close()
		if o.put(func() { t.Error("after the end") }) {
			t.Error("a message was taken after the end")
		}
		o.flush()
	})
}

func TestAsksForInput(t *testing.T) {
	state := "s"
	cases := map[string]struct {
		result string
		want   *inputRequired
	}{
		"final":            {`{"content":[{"type":"text","text":"\"input_required\""}]}`, nil},
		"quoted in a text": {`{"content":[{"type":"text","text":"x"}],"resultType":"complete","note":"input_required"}`, nil},
		"broken":           {`{"resultType":"input_required","inputRequests":[]}`, nil},
		"busy":             {`{"resultType":"input_required","requestState":"s"}`, &inputRequired{State: &state}},
		"asks":             {`{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"}}}`, &inputRequired{Requests: map[string]InputRequest{"a": {Method: "roots/list"}}}},
	}
	for name, tc := range cases {
		got, _ := typeOf(answerWith(tc.result))
		if (got == nil) != (tc.want == nil) {
			t.Errorf("%s: got %+v", name, got)
			continue
		}
		if got != nil && (len(got.Requests) != len(tc.want.Requests) || (got.State == nil) != (tc.want.State == nil)) {
			t.Errorf("%s: got %+v, want %+v", name, got, tc.want)
		}
	}
}

func TestUnknownType(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[]}`:                                                      "",
		`{"content":[],"resultType":"complete"}`:                              "",
		`{"resultType": "complete"}`:                                          "",
		`{"resultType":"input_required","requestState":"s"}`:                  "",
		`{"structuredContent":{"resultType":"x"}}`:                            "",
		`{"content":[],"resultType":"mystery"}`:                               `"mystery"`,
		`{"resultType":7}`:                                                    "7",
		`{"resultType":"input_required","inputRequests":[]}`:                  `"input_required"`,
		`{"structuredContent":{"resultType":"complete"},"resultType":"task"}`: `"task"`,
	} {
		if _, got := typeOf(answerWith(result)); got != want {
			t.Errorf("%s: got %q, want %q", result, got, want)
		}
	}
}

func TestAllow(t *testing.T) {
	cases := []struct {
		can    Capabilities
		method string
		params string
		want   bool
	}{
		{Capabilities{Form: true}, wire.MethodElicit, `{}`, true},
		{Capabilities{Form: true}, wire.MethodElicit, `{"mode":"form"}`, true},
		{Capabilities{Form: true}, wire.MethodElicit, `{"mode":"url"}`, false},
		{Capabilities{URL: true}, wire.MethodElicit, `{"mode":"url"}`, true},
		{Capabilities{URL: true}, wire.MethodElicit, `{"mode":7}`, false},
		{Capabilities{URL: true}, wire.MethodElicit, ``, false},
		{Capabilities{Sampling: true}, wire.MethodSample, `{}`, true},
		{Capabilities{Roots: true}, wire.MethodSample, `{}`, false},
		{Capabilities{Roots: true}, wire.MethodRoots, ``, true},
		{Capabilities{Form: true, URL: true, Sampling: true, Roots: true}, "tools/call", `{}`, false},
	}
	for _, tc := range cases {
		if got := tc.can.allow(InputRequest{Method: tc.method, Params: json.RawMessage(tc.params)}); got != tc.want {
			t.Errorf("%+v, %s %s: got %t", tc.can, tc.method, tc.params, got)
		}
	}
}
