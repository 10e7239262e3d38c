package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/mcp"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// allCaps are the capabilities of a client that can do everything.
const allCaps = `{"elicitation":{"form":{},"url":{}},"roots":{"listChanged":true},"sampling":{"tools":{}}}`

// titled is a form that the SDK's own client refuses to pass on.
const titled = `{"type":"object","properties":{"colors":{"type":"array","title":"Colors","minItems":1,"items":{"anyOf":[{"const":"#FF0000","title":"Red"},{"const":"#00FF00","title":"Green"}]}},"n":{"type":"integer","default":12345678901234567890},"x-own":{"type":"string","enum":["a"],"enumNames":["A","B"]}},"required":["colors"]}`

// Requests of servers reach the client of the call unchanged, and its answers reach the server unchanged,
// in all combinations of protocol versions.
func TestServersAskTheClient(t *testing.T) {
	form := `{"mode":"form","message":"pick","requestedSchema":` + titled + `,"_meta":{"own":1}}`
	cases := map[string]struct{ method, params, answer string }{
		"form":              {"elicitation/create", form, `{"action":"accept","content":{"colors":["#FF0000"],"n":12345678901234567891}}`},
		"a form refused":    {"elicitation/create", form, `{"action":"decline"}`},
		"address":           {"elicitation/create", `{"mode":"url","message":"sign in","url":"https://example.com/in","elicitationId":"e1"}`, `{"action":"accept"}`},
		"sampling":          {"sampling/createMessage", `{"messages":[{"role":"user","content":{"type":"text","text":"hi"}}],"maxTokens":10,"own":true}`, `{"role":"assistant","model":"m","content":{"type":"text","text":"yo"},"stopReason":"endTurn","own":12345678901234567890}`},
		"sampling of tools": {"sampling/createMessage", `{"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"maxTokens":10,"tools":[{"name":"add","inputSchema":{"type":"object"}}],"toolChoice":{"mode":"auto"}}`, `{"role":"assistant","model":"m","content":[{"type":"tool_use","id":"1","name":"add","input":{"a":12345678901234567890}}],"stopReason":"toolUse"}`},
		"roots":             {"roots/list", `{}`, `{"roots":[{"uri":"file:///home","name":"home"}]}`},
	}
	for _, server := range []string{"older", "modern"} {
		_, _, e := newGateway(t, mcp.Options{}, child("up", server))
		for _, client := range []string{"older", "modern"} {
			c := e.wire(t, client, allCaps)
			for name, tc := range cases {
				t.Run(client+" client, "+server+" server, "+name, func(t *testing.T) {
					var asked atomic.Value
					c.answer = func(method string, params json.RawMessage) string {
						asked.Store(method + " " + string(params))
						return tc.answer
					}
					r := c.call(t.Context(), "ask", `{"asks":[{"method":"`+tc.method+`","params":`+tc.params+`}]}`)
					if got := r.text(t); got != "["+tc.answer+"]" {
						t.Errorf("the server got %s", got)
					}
					if want := tc.method + " " + strings.Replace(tc.params, `"message":"`, `"message":"Server up asks: `, 1); asked.Load() != want {
						t.Errorf("the client was asked %s,\nwant %s", asked.Load(), want)
					}
				})
			}
			t.Run(client+" client, "+server+" server, all at once", func(t *testing.T) {
				var n atomic.Int32
				c.answer = func(method string, _ json.RawMessage) string {
					n.Add(1)
					return map[string]string{"elicitation/create": `{"action":"cancel"}`, "roots/list": `{"roots":[]}`}[method]
				}
				r := c.call(t.Context(), "ask", `{"asks":[{"method":"elicitation/create","params":{"message":"a","requestedSchema":{"type":"object","properties":{}}}},{"method":"roots/list"},{"method":"elicitation/create","params":{"message":"b","requestedSchema":{"type":"object","properties":{}}}}]}`)
				if got := r.text(t); got != `[{"action":"cancel"},{"roots":[]},{"action":"cancel"}]` || n.Load() != 3 {
					t.Errorf("%d questions, answers %s", n.Load(), got)
				}
				if client == "modern" && server == "modern" && r.rounds != 2 {
					t.Errorf("%d rounds for one set of questions", r.rounds)
				}
			})
			t.Run(client+" client, "+server+" server, a prompt", func(t *testing.T) {
				c.answer = func(string, json.RawMessage) string { return `{"action":"accept","content":{}}` }
				r := c.request(t.Context(), "prompts/get", "p", `"name":"p"`)
				if !strings.Contains(string(r.Result), `{\"action\":\"accept\",\"content\":{}}`) {
					t.Errorf("%s %+v", r.Result, r.Error)
				}
			})
		}
	}
}

// A client gets no requests that exceed its capabilities, and the server gets the refusal.
func TestWhatTheClientCannotDo(t *testing.T) {
	ask := func(method string) string {
		return `{"asks":[{"method":"` + method + `","params":{"mode":"url","message":"m","url":"https://example.com","elicitationId":"e","maxTokens":1,"messages":[]}}]}`
	}
	t.Run("an older server", func(t *testing.T) {
		_, _, e := newGateway(t, mcp.Options{}, child("up", "older"))
		for _, client := range []string{"older", "modern"} {
			for caps, methods := range map[string][]string{`{}`: {"elicitation/create", "sampling/createMessage", "roots/list"}, `{"elicitation":{"form":{}}}`: {"elicitation/create", "roots/list"}} {
				c := e.wire(t, client, caps)
				for _, method := range methods {
					got := c.call(t.Context(), "ask", ask(method)).text(t)
					if !strings.Contains(got, `"error"`) || !strings.Contains(got, "does not support") {
						t.Errorf("%s, %s, %s: the server got %s", client, caps, method, got)
					}
				}
			}
		}
	})
	t.Run("a modern server", func(t *testing.T) {
		_, _, e := newGateway(t, mcp.Options{}, child("up", "modern"))
		for _, client := range []string{"older", "modern"} {
			r := e.wire(t, client, `{"sampling":{}}`).call(t.Context(), "ask", ask("roots/list"))
			if r.Error == nil || r.Error.Code != -32021 || !strings.Contains(string(r.Error.Data), `{"requiredCapabilities":{"roots":{}}}`) {
				t.Errorf("%s: %s %+v", client, r.Result, r.Error)
			}
		}
	})
	t.Run("a refusal", func(t *testing.T) {
		_, _, e := newGateway(t, mcp.Options{}, child("up", "older"))
		c := e.wire(t, "older", allCaps)
		c.answer = func(string, json.RawMessage) string { return "error:nobody is here" }
		if got := c.call(t.Context(), "ask", ask("roots/list")).text(t); got != `[{"error":{"code":-32000,"message":"nobody is here"}}]` {
			t.Errorf("the server got %s", got)
		}
	})
}

// A server gets the capabilities that its client declared, and clients that need nothing from a server
// share one session.
func TestWhatServersAreTold(t *testing.T) {
	told := func(c *wireClient) (caps, level string, pid int) {
		var got struct {
			Caps  json.RawMessage
			Level string
			PID   int
		}
		if err := json.Unmarshal([]byte(c.call(c.t.Context(), "told", "{}").text(c.t)), &got); err != nil {
			c.t.Fatal(err)
		}
		var sorted any
		_ = json.Unmarshal(got.Caps, &sorted)
		raw, _ := json.Marshal(sorted)
		return string(raw), got.Level, got.PID
	}
	for _, server := range []string{"older", "modern"} {
		t.Run(server+" server", func(t *testing.T) {
			g, _, e := newGateway(t, mcp.Options{}, child("up", server))
			shared, _ := g.State(v1.Key{Name: "up"})
			for _, protocol := range []string{"older", "modern"} {
				none, forms, all := e.wire(t, protocol, "{}"), e.wire(t, protocol, `{"elicitation":{}}`), e.wire(t, protocol, allCaps)
				_, _, pid := told(none)
				if pid != shared.PID {
					t.Errorf("%s: a client that wants nothing has a session of its own", protocol)
				}
				caps, _, own := told(forms)
				if caps != `{"elicitation":{"form":{}}}` {
					t.Errorf("%s: told %s", protocol, caps)
				}
				caps, _, other := told(all)
				if caps != allCaps {
					t.Errorf("%s: told %s", protocol, caps)
				}
				if server == "older" && (own == pid || other == own) {
					t.Errorf("%s: sessions %d, %d and %d are shared", protocol, pid, own, other)
				}
				for range 3 {
					if _, _, again := told(forms); again != own {
						t.Errorf("%s: a session is opened for each call", protocol)
					}
				}
				all.level = "warning"
				if protocol == "older" {
					all.request(t.Context(), "logging/setLevel", "", `"level":"warning"`)
				}
				if _, level, _ := told(all); level != "warning" {
					t.Errorf("%s: the level is %q", protocol, level)
				}
			}
		})
	}
}

// Log messages reach the client of the call in the order in which the server wrote them,
// between its reports of progress and before the answer, and no other client.
func TestLogMessagesInWireOrder(t *testing.T) {
	const clients, calls, n = 4, 5, 20
	for _, server := range []string{"older", "modern"} {
		_, _, e := newGateway(t, mcp.Options{}, child("up", server))
		for _, protocol := range []string{"older", "modern"} {
			t.Run(protocol+" client, "+server+" server", func(t *testing.T) {
				var all sync.WaitGroup
				for i := range clients {
					c := e.wire(t, protocol, "{}")
					c.level = "info"
					if protocol == "older" {
						if r := c.request(t.Context(), "logging/setLevel", "", `"level":"loud"`); r.Error == nil || r.Error.Code != -32602 {
							t.Errorf("a level that is none: %s", r.Result)
						}
						c.request(t.Context(), "logging/setLevel", "", `"level":"info"`)
					}
					all.Go(func() {
						for k := range calls {
							who := fmt.Sprintf("%d-%d", i, k)
							r := c.call(t.Context(), "log", fmt.Sprintf(`{"n":%d,"who":%q}`, n, who))
							if len(r.notes) != 2*n {
								t.Errorf("%d of %d notifications", len(r.notes), 2*n)
								continue
							}
							for j, note := range r.notes {
								want := fmt.Sprintf(`"data":{"n":%d,"who":%q,"big":12345678901234567890}`, j/2, who)
								if j%2 == 1 {
									want = fmt.Sprintf(`"progress":%d`, j/2+1)
								}
								if !strings.Contains(note, want) {
									t.Errorf("notification %d is %s, want %s", j, note, want)
								}
							}
						}
					})
				}
				all.Wait()
				quiet := e.wire(t, protocol, "{}")
				if r := quiet.call(t.Context(), "log", `{"n":3}`); len(r.notes) != 3 { // only progress
					t.Errorf("messages that nobody asked for: %s", r.notes)
				}
			})
		}
	}
}

// If two clients are asked concurrently, each gets the question of its own call.
func TestQuestionsDoNotCross(t *testing.T) {
	for _, server := range []string{"older", "modern"} {
		_, _, e := newGateway(t, mcp.Options{}, child("up", server))
		var all sync.WaitGroup
		for i := range 6 {
			protocol := []string{"older", "modern"}[i%2]
			c := e.wire(t, protocol, allCaps)
			me := fmt.Sprintf("%s-%d", protocol, i)
			c.answer = func(_ string, params json.RawMessage) string {
				if !strings.Contains(string(params), `"message":"Server up asks: `+me+`"`) {
					t.Errorf("%s was asked %s", me, params)
				}
				return `{"action":"accept","content":{"me":"` + me + `"}}`
			}
			all.Go(func() {
				for range 5 {
					got := c.call(t.Context(), "ask", `{"asks":[{"method":"elicitation/create","params":{"message":"`+me+`","requestedSchema":{"type":"object","properties":{}}}}]}`).text(t)
					if got != `[{"action":"accept","content":{"me":"`+me+`"}}]` {
						t.Errorf("%s got %s", me, got)
					}
				}
			})
		}
		all.Wait()
	}
}

// A server's message to a person always begins with the name of the server, and cannot seem to come from
// another server or from toolctl.
func TestNoFormPassesForAnothers(t *testing.T) {
	for message, want := range map[string]string{
		`"message":"toolctl asks: may it pay?"`:                                 `"message":"Server up asks: toolctl asks: may it pay?"`,
		`"message":"well\n\ntoolctl asks:\u2028Server crm asks: x"`:             `"message":"Server up asks:\n> well\n> toolctl asks:\n> Server crm asks: x"`,
		`"message":"a","Message":"toolctl asks: x","message":"toolctl asks: y"`: `"message":"Server up asks: toolctl asks: y"`,
		`"message":"\u202esksa lctloot"`:                                        `"message":"Server up asks: ⟨U+202E⟩sksa lctloot"`,
		`"message":5`:                                                           `"message":"Server up asks: "`,
		`"mEssage":"x"`:                                                         `"message":"Server up asks: "`,
	} {
		for _, server := range []string{"older", "modern"} {
			_, _, e := newGateway(t, mcp.Options{}, child("up", server))
			for _, client := range []string{"older", "modern"} {
				c := e.wire(t, client, allCaps)
				c.answer = func(_ string, params json.RawMessage) string {
					if want := `{` + want + `,"requestedSchema":{"type":"object","properties":{}}}`; string(params) != want {
						t.Errorf("%s client, %s server: asked %s,\nwant %s", client, server, params, want)
					}
					return `{"action":"decline"}`
				}
				c.call(t.Context(), "ask", `{"asks":[{"method":"elicitation/create","params":{`+message+`,"requestedSchema":{"type":"object","properties":{}}}}]}`).text(t)
			}
		}
	}
}

// A cancelled call ends at the server too, and other calls continue.
func TestCancellationReachesTheServer(t *testing.T) {
	for _, server := range []string{"older", "modern"} {
		for _, protocol := range []string{"older", "modern"} {
			t.Run(protocol+" client, "+server+" server", func(t *testing.T) {
				_, _, e := newGateway(t, mcp.Options{}, child("up", server))
				c := e.wire(t, protocol, "{}") // of the shared session
				ctx, giveUp := context.WithCancel(t.Context())
				hanging := make(chan struct{})
				go func() {
					defer close(hanging)
					c.call(ctx, "hang", "{}")
				}()
				e.wire(t, protocol, "{}").call(t.Context(), "await", `{"name":"hang"}`).text(t)
				if protocol == "older" {
					c.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
				} else {
					giveUp()
				}
				if got := e.wire(t, protocol, "{}").call(t.Context(), "await", `{"name":"notifications/cancelled"}`).text(t); got != "came" {
					t.Error(got)
				}
				giveUp()
				<-hanging
			})
		}
	}
}

func TestRootsChangedReachesTheServer(t *testing.T) {
	_, _, e := newGateway(t, mcp.Options{}, child("up", "older"))
	c := e.wire(t, "older", allCaps)
	c.call(t.Context(), "told", "{}").text(t) // opens the session
	c.send(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
	if got := c.call(t.Context(), "await", `{"name":"notifications/roots/list_changed"}`).text(t); got != "came" {
		t.Error(got)
	}
}

// Only the subscribers of a resource are notified of its changes, in all protocol versions.
func TestSubscriptions(t *testing.T) {
	for _, server := range []string{"older", "modern"} {
		_, _, e := newGateway(t, mcp.Options{}, child("up", server))
		uri := "test://" + server
		for _, protocol := range []string{"older", "modern"} {
			t.Run(protocol+" client, "+server+" server", func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				c, other := e.wire(t, protocol, "{}"), e.wire(t, "older", "{}")
				other.listen(ctx)
				if protocol == "older" {
					c.listen(ctx)
					if r := c.request(t.Context(), "resources/subscribe", uri, `"uri":"test://nowhere"`); r.Error == nil || r.Error.Code != -32002 {
						t.Errorf("a resource that is not there: %s %+v", r.Result, r.Error)
					}
					for range 2 { // a second subscription has no further effect
						if r := c.request(t.Context(), "resources/subscribe", uri, `"uri":"`+uri+`"`); r.Error != nil {
							t.Fatalf("%+v", r.Error)
						}
					}
				} else {
					c.listen(ctx, uri)
					c.await("acknowledged")
				}
				c.call(t.Context(), "touch", "{}").text(t)
				c.await(`"notifications/resources/updated"`)
				other.mu.Lock()
				if len(other.notes) > 0 {
					t.Errorf("another client heard %s", other.notes)
				}
				other.mu.Unlock()
				if protocol == "older" {
					if r := c.request(t.Context(), "resources/unsubscribe", uri, `"uri":"`+uri+`"`); r.Error != nil {
						t.Fatalf("%+v", r.Error)
					}
				}
			})
		}
	}
}

// Resources of a server that is not in a toolset can be neither read nor subscribed to there, and a subscriber is no
// longer notified once the server has left the toolset.
func TestResourcesOfToolsets(t *testing.T) {
	g, s, e := newGateway(t, mcp.Options{}, child("up", "older"))
	const uri = "test://older"
	in := map[string]bool{}
	for _, o := range g.offers {
		in[o.Name] = false
	}
	with, without := server.Toolset{Name: "a", Tools: in, Servers: g.states}, server.Toolset{Name: "a", Tools: in}
	other := without
	other.Name = "b"
	set := func(parts ...server.Toolset) {
		g.parts = parts
		s.Refresh()
	}
	set(with, other)
	for _, protocol := range []string{"older", "modern"} {
		t.Run(protocol, func(t *testing.T) {
			a, b := wireAt(t, e.url+"/mcp/a", protocol, "{}"), wireAt(t, e.url+"/mcp/b", protocol, "{}")
			if r := a.request(t.Context(), "resources/list", "", `"cursor":""`); !strings.Contains(string(r.Result), uri) {
				t.Errorf("listed %s", r.Result)
			}
			if r := b.request(t.Context(), "resources/list", "", `"cursor":""`); strings.Contains(string(r.Result), uri) {
				t.Errorf("listed %s", r.Result)
			}
			if r := b.request(t.Context(), "prompts/list", "", `"cursor":""`); !strings.Contains(string(r.Result), `"prompts":[]`) {
				t.Errorf("listed %s", r.Result)
			}
			for _, method := range []string{"resources/read", "resources/subscribe"} {
				if r := b.request(t.Context(), method, uri, `"uri":"`+uri+`"`); r.Error == nil {
					t.Errorf("%s: %s", method, r.Result)
				}
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			if protocol == "older" {
				a.listen(ctx)
				if r := a.request(t.Context(), "resources/subscribe", uri, `"uri":"`+uri+`"`); r.Error != nil {
					t.Fatalf("%+v", r.Error)
				}
			} else {
				a.lists = true
				a.listen(ctx, uri)
				a.await("acknowledged")
			}
			s.ResourceUpdated(uri)
			a.await(`"notifications/resources/updated"`)
			a.mu.Lock()
			a.notes = nil
			a.mu.Unlock()
			set(without, other)
			s.ResourceUpdated(uri)
			set(with, other)
			a.await(`"notifications/resources/list_changed"`) // later in the same stream
			a.mu.Lock()
			if notes := strings.Join(a.notes, " "); strings.Contains(notes, "updated") {
				t.Errorf("after the server had left: %s", notes)
			}
			a.mu.Unlock()
			s.ResourceUpdated(uri)
			a.await(`"notifications/resources/updated"`)
		})
	}
}

// If a server crashes while its client fills in a form, the call fails, and the client's next call gets a
// new server process.
func TestServerDiesDuringAQuestion(t *testing.T) {
	for _, protocol := range []string{"older", "modern"} {
		t.Run(protocol, func(t *testing.T) {
			_, _, e := newGateway(t, mcp.Options{}, child("up", "older"))
			c := e.wire(t, protocol, allCaps)
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			c.answer = func(string, json.RawMessage) string {
				if conn, err := ln.Accept(); err == nil { // the server dies with it
					conn.Close()
				}
				return `{"action":"accept","content":{}}`
			}
			r := c.call(t.Context(), "ask", `{"die":"`+ln.Addr().String()+`","asks":[{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}]}`)
			if got := r.failure(t); !strings.Contains(got, "session was lost") {
				t.Errorf("got %q", got)
			}
			c.answer = func(string, json.RawMessage) string { return `{"action":"decline"}` }
			if got := c.call(t.Context(), "ask", `{"asks":[{"method":"elicitation/create","params":{"message":"m","requestedSchema":{"type":"object","properties":{}}}}]}`).text(t); got != `[{"action":"decline"}]` {
				t.Errorf("after it: %s", got)
			}
		})
	}
}

// Two servers with equal tool names can both be reached by distinct names, and each asks in its own name.
func TestServersWithTheSameNames(t *testing.T) {
	second := child("second", "modern")
	second.Metadata.Namespace = "other"
	_, _, e := newGateway(t, mcp.Options{}, child("first", "older"), second)
	c := e.wire(t, "modern", allCaps)
	c.answer = func(string, json.RawMessage) string { return `{"roots":[]}` }
	var list struct{ Tools []struct{ Name string } }
	r := c.request(t.Context(), "tools/list", "", `"cursor":""`)
	if err := json.Unmarshal(r.Result, &list); err != nil || len(list.Tools) != 14 {
		t.Fatalf("%s %+v", r.Result, r.Error)
	}
	for _, name := range []string{"default__ask", "other__ask"} {
		if got := c.call(t.Context(), name, `{"asks":[{"method":"roots/list"}]}`).text(t); got != `[{"roots":[]}]` {
			t.Errorf("%s: %s", name, got)
		}
	}
	if r := c.call(t.Context(), "ask", "{}"); r.Error == nil || r.Error.Code != -32602 {
		t.Errorf("a name of two tools: %s", r.Result)
	}
}
