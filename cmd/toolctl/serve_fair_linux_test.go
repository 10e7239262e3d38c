package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
)

// as adds the token of a principal to a request. The token is the name of the principal.
func as(principal string, request []byte) []byte {
	return bytes.Replace(request, []byte("\r\nContent-Type"), []byte("\r\nAuthorization: Bearer "+principal+"\r\nContent-Type"), 1)
}

// fairLoad counts the calls that got a result, failed or not. The audit must have an outcome for each of them.
type fairLoad struct {
	answered map[string]*atomic.Int64 // by principal
	refused  atomic.Int64             // calls that were not admitted
}

// call makes a call and returns its duration. The error means that it did not succeed.
func (l *fairLoad) call(c *caller, principal string) (took time.Duration, err error) {
	began := time.Now()
	if _, err = c.call(); err == nil || bytes.Contains(c.answer, []byte(`"isError":true`)) {
		l.answered[principal].Add(1)
	}
	return time.Since(began), err
}

// TestServeFairness checks that one greedy principal, and MCP servers that are killed, slow or silent, do not slow
// others down: all calls of the others are answered, their 99th percentile at most doubles, memory does not grow, and
// the audit has every answered call.
func TestServeFairness(t *testing.T) {
	if raceDetector {
		t.Skip("it compares times, which the race detector changes")
	}
	window, windows, long := 200*time.Millisecond, 2, soak(t)
	if long > 0 {
		windows = 10
		window = long / time.Duration(3*windows)
	}
	good, faulty := launch(t, again(t, "echo-upstream")), launch(t, again(t, "faulty-http"))
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-time.After(300 * time.Millisecond):
		case <-r.Context().Done():
		}
		fmt.Fprint(w, `{"slow":true}`)
	}))
	t.Cleanup(slow.Close)
	dir, db := t.TempDir(), filepath.Join(t.TempDir(), "state.db")
	text := ""
	for name, spec := range map[string]string{
		"good": "url: " + quoted(good.url+"/modern"), "silent": "timeout_ms: 1500, url: " + quoted(faulty.url+"/hang"),
		"killed": "command: " + quoted(linked(t, "faulty-stdio")) + ", args: [die]", "broken": "url: " + quoted(faulty.url+"/broken"),
	} {
		text += fmt.Sprintf("---\napiVersion: toolctl.dev/v1\nkind: MCPServer\nmetadata: {name: %s}\nspec: {%s}\n", name, spec)
	}
	text += fmt.Sprintf(`---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: slow}
spec: {description: Slow, input_schema: {type: object}, http: {url: %s, method: GET}}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: heavy}
spec: {description: Heavy, input_schema: {type: object, properties: {a: {type: array, uniqueItems: true}}}, mock_result: {ok: true}}
`, quoted(slow.URL))
	writeFile(t, filepath.Join(dir, "all.yaml"), text)
	tokens, l := "", &fairLoad{answered: map[string]*atomic.Int64{}}
	others := []string{"ann", "bob", "cat"}
	for _, p := range append([]string{"greedy"}, others...) {
		tokens += fmt.Sprintf("%s:%x\n", p, sha256.Sum256([]byte(p)))
		l.answered[p] = new(atomic.Int64)
	}
	writeFile(t, filepath.Join(dir, "tokens"), tokens)
	s := launchServe(t, again(t, "toolctl"), "-f", filepath.Join(dir, "all.yaml"), "--store", db, "--token-file", filepath.Join(dir, "tokens"), "--max-calls", "64", "--allow-private-network")
	w := wire{version: "2026-07-28"}
	open := func(principal, tool, args string) *caller {
		return newCaller(t, s.url, as(principal, w.request(s.url, 1, tool, args)))
	}

	// The greedy principal makes more waiting calls than its share, calls with large arguments, and small calls without a
	// pause.
	var greedy []*caller
	var numbered strings.Builder
	for i := range 240_000 {
		fmt.Fprintf(&numbered, `{"i":%d},`, i)
	}
	large := `{"a":[` + numbered.String() + `{}]}`
	gather := func() { // only when needed, because idle connections are closed soon
		for i := range 40 {
			tool, args := []string{"silent__hang", "slow", "good__echo", "killed__die", "broken__broken"}[i%5], `{"size":100}`
			if i%10 == 9 {
				tool, args = "heavy", large
			}
			greedy = append(greedy, open("greedy", tool, args))
		}
	}
	rush := func(ctx context.Context) (stop func()) {
		ctx, cancel := context.WithCancel(ctx)
		var all sync.WaitGroup
		for i := range greedy {
			all.Go(func() {
				for ctx.Err() == nil {
					_, err := l.call(greedy[i], "greedy")
					if err == nil || bytes.Contains(greedy[i].answer, []byte(`"isError":true`)) {
						continue
					}
					if !strings.Contains(err.Error(), "too many") && !strings.Contains(err.Error(), "try again later") {
						t.Errorf("the greedy one got no answer: %v", err)
						return
					}
					l.refused.Add(1)
				}
			})
		}
		return func() { cancel(); all.Wait() }
	}

	var clients []*caller
	for i := range 6 {
		clients = append(clients, open(others[i%len(others)], "good__echo", `{"size":1000}`))
	}
	const pause = 20 * time.Millisecond
	measure := func() time.Duration {
		var mu sync.Mutex
		var took []time.Duration
		var all sync.WaitGroup
		until := time.Now().Add(window)
		for i, c := range clients {
			all.Go(func() {
				tick := time.NewTicker(pause)
				defer tick.Stop()
				for time.Now().Before(until) {
					<-tick.C
					d, err := l.call(c, others[i%len(others)])
					if err != nil {
						t.Errorf("%s was disturbed: %v", others[i%len(others)], err)
						return
					}
					mu.Lock()
					took = append(took, d)
					mu.Unlock()
				}
			})
		}
		all.Wait()
		slices.Sort(took)
		return took[len(took)*99/100]
	}
	const judged = 5 * time.Minute // in less time, other load of the machine would distort the figures
	var alone, beside []time.Duration
	var memory []float64
	for range windows {
		alone = append(alone, measure())
		if greedy == nil {
			gather()
		}
		stop := rush(t.Context())
		if long >= judged { // ignore the cost of the first moments
			measure()
		}
		beside = append(beside, measure())
		stop()
		memory = append(memory, s.memory(t, "RssAnon"))
	}
	middle := func(d []time.Duration) time.Duration {
		d = slices.Sorted(slices.Values(d))
		return d[len(d)/2]
	}
	ratio := float64(middle(beside)) / float64(middle(alone))
	t.Logf("p99 of the others, medians of %d windows of %s: %s alone, %s beside the greedy one (%.2f times): %v and %v; memory %.0f MB after each window",
		windows, window, middle(alone).Round(100*time.Microsecond), middle(beside).Round(100*time.Microsecond), ratio, alone, beside, memory)
	if most := 2.0; long >= judged && ratio > most {
		t.Errorf("the others' p99 is %.2f times what it is alone: expected at most %.1f", ratio, most)
	}
	if early, late := slices.Max(memory[:(len(memory)+1)/2]), slices.Max(memory[len(memory)/2:]); long > 0 && late > early*1.2+8 {
		t.Errorf("memory grows: %.0f MB in the first half, then %.0f MB", early, late)
	}
	for p, n := range l.answered {
		var out, errs bytes.Buffer
		if code := run(t.Context(), []string{"audit", "list", "--store", db, "--principal", p, "--all", "-o", "json"}, strings.NewReader(""), &out, &errs); code != exitOK {
			t.Fatalf("audit list: %d %s", code, errs.String())
		}
		var list struct{ Items []struct{ Status string } }
		if err := json.Unmarshal(out.Bytes(), &list); err != nil {
			t.Fatal(err)
		}
		var ended int64
		for _, line := range list.Items {
			if line.Status != v1.StatusStarted {
				ended++
			}
		}
		t.Logf("%s: %d calls answered, %d outcomes in the audit", p, n.Load(), ended)
		if ended != n.Load() {
			t.Errorf("%s: %d calls were answered, and %d are in the audit", p, n.Load(), ended)
		}
	}
	t.Logf("the greedy one was not let in %d times", l.refused.Load())
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"audit", "verify", "--store", db}, strings.NewReader(""), &out, &errs); code != exitOK {
		t.Errorf("audit verify: %d %s%s", code, out.String(), errs.String())
	}
}
