package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	v1 "toolctl.dev/toolctl/api/v1"
)

// roleVar makes the test binary an MCP server over stdio: "older" or "modern".
const roleVar = "TOOLCTL_TEST_UPSTREAM"

func TestMain(m *testing.M) {
	if protocol := os.Getenv(roleVar); protocol != "" {
		(&wireServer{protocol: protocol, waits: map[string]chan json.RawMessage{}, seen: map[string]chan struct{}{}}).run()
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child returns the manifest of a server that this binary runs in another process.
func child(name, protocol string) *v1.MCPServer {
	m := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	m.Metadata = v1.Metadata{Name: name, Namespace: v1.DefaultNamespace}
	m.Spec.Command, _ = os.Executable()
	m.Spec.Env = map[string]string{roleVar: protocol}
	m.Spec.ToolNames = "bare"
	m.Spec.ConnectTimeoutMS = 60_000
	return m
}

// wireServer is an MCP server that reads and writes JSON itself, so that tests see the exact messages. It
// supports only one protocol version.
type wireServer struct {
	protocol string

	mu     sync.Mutex // of all below, and of stdout
	caps   json.RawMessage
	level  string
	asked  int
	waits  map[string]chan json.RawMessage // for answers, by the id of our request
	seen   map[string]chan struct{}        // closed when something came: "cancelled", "roots"
	subbed map[string]bool
}

type wireMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		Name      string          `json:"name"`
		URI       string          `json:"uri"`
		Level     string          `json:"level"`
		Arguments json.RawMessage `json:"arguments"`
		Caps      json.RawMessage `json:"capabilities"`
		Meta      struct {
			Caps     json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
			Level    string          `json:"io.modelcontextprotocol/logLevel"`
			Progress json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
		Input map[string]json.RawMessage `json:"inputResponses"`
		State *string                    `json:"requestState"`
	} `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

func (w *wireServer) run() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m wireMessage
		if json.Unmarshal(in.Bytes(), &m) != nil {
			continue
		}
		switch {
		case m.Method == "":
			w.mu.Lock()
			c := w.waits[string(m.ID)]
			delete(w.waits, string(m.ID))
			w.mu.Unlock()
			if c != nil {
				if m.Error != nil {
					m.Result = json.RawMessage(`{"error":` + string(m.Error) + `}`)
				}
				c <- m.Result
			}
		case len(m.ID) == 0:
			w.note(m.Method)
		default:
			w.answer(m)
		}
	}
}

func (w *wireServer) note(method string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if c := w.sign(method); c != nil {
		select {
		case <-c:
		default:
			close(c)
		}
	}
}

// sign returns a channel that is closed when a notification has arrived. It is called under mu.
func (w *wireServer) sign(method string) chan struct{} {
	if w.seen[method] == nil {
		w.seen[method] = make(chan struct{})
	}
	return w.seen[method]
}

func (w *wireServer) write(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	fmt.Println(text)
}

func (w *wireServer) reply(id json.RawMessage, result string) {
	if w.protocol == "modern" && !strings.Contains(result, "resultType") {
		result = `{"resultType":"complete",` + result[1:]
	}
	w.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + result + `}`)
}

func (w *wireServer) text(id json.RawMessage, text string) {
	quoted, _ := json.Marshal(text)
	w.reply(id, `{"content":[{"type":"text","text":`+string(quoted)+`}]}`)
}

const wireCaps = `{"tools":{"listChanged":true},"resources":{"subscribe":true},"logging":{},"prompts":{}}`

func (w *wireServer) answer(m wireMessage) {
	switch m.Method {
	case "server/discover":
		if w.protocol == "modern" {
			w.reply(m.ID, `{"supportedVersions":["2026-07-28"],"capabilities":`+wireCaps+`}`)
			return
		}
	case "initialize":
		if w.protocol == "older" {
			w.mu.Lock()
			w.caps = m.Params.Caps
			w.mu.Unlock()
			w.reply(m.ID, `{"protocolVersion":"2025-11-25","serverInfo":{"name":"wire","version":"1"},"capabilities":`+wireCaps+`}`)
			return
		}
	case "tools/list":
		var tools []string
		for _, name := range []string{"ask", "log", "told", "hang", "await", "exit", "touch"} {
			tools = append(tools, `{"name":"`+name+`","inputSchema":{"type":"object"}}`)
		}
		w.reply(m.ID, `{"tools":[`+strings.Join(tools, ",")+`]}`)
		return
	case "resources/list":
		w.reply(m.ID, `{"resources":[{"uri":"test://`+w.protocol+`","name":"r"}]}`)
		return
	case "resources/templates/list":
		w.reply(m.ID, `{"resourceTemplates":[]}`)
		return
	case "prompts/list":
		w.reply(m.ID, `{"prompts":[{"name":"p"}]}`)
		return
	case "prompts/get":
		go w.prompt(m)
		return
	case "resources/subscribe", "resources/unsubscribe":
		w.mu.Lock()
		w.subbed = map[string]bool{m.Params.URI: m.Method == "resources/subscribe"}
		w.mu.Unlock()
		w.reply(m.ID, `{}`)
		return
	case "subscriptions/listen":
		w.write(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + string(m.ID) + `}}}`)
		return
	case "logging/setLevel":
		w.mu.Lock()
		w.level = m.Params.Level
		w.mu.Unlock()
		w.reply(m.ID, `{}`)
		return
	case "tools/call":
		go w.call(m)
		return
	}
	w.write(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"method not found"}}`)
}

// wireQuestion is a question that the tool ask sends.
type wireQuestion struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

// ask gets answers from the client in the manner of the protocol version; nil if the request will come
// again.
func (w *wireServer) ask(m wireMessage, all []wireQuestion) []json.RawMessage {
	answers := make([]json.RawMessage, len(all))
	if w.protocol == "modern" {
		if m.Params.State == nil {
			asked := map[string]wireQuestion{}
			for i, q := range all {
				asked["q"+strconv.Itoa(i)] = q
			}
			raw, _ := json.Marshal(asked)
			w.reply(m.ID, `{"resultType":"input_required","requestState":"mine","inputRequests":`+string(raw)+`}`)
			return nil
		}
		for i := range all {
			answers[i] = m.Params.Input["q"+strconv.Itoa(i)]
		}
		return answers
	}
	waits := make([]chan json.RawMessage, len(all))
	for i, q := range all {
		waits[i] = make(chan json.RawMessage, 1)
		w.mu.Lock()
		w.asked++
		id := `"ask-` + strconv.Itoa(w.asked) + `"`
		w.waits[id] = waits[i]
		w.mu.Unlock()
		params := ""
		if q.Params != nil {
			params = `,"params":` + string(q.Params)
		}
		w.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + q.Method + `"` + params + `}`)
	}
	for i := range waits {
		answers[i] = <-waits[i]
	}
	return answers
}

func (w *wireServer) prompt(m wireMessage) {
	if got := w.ask(m, []wireQuestion{{"elicitation/create", json.RawMessage(`{"mode":"form","message":"who?","requestedSchema":{"type":"object","properties":{}}}`)}}); got != nil {
		quoted, _ := json.Marshal(string(got[0]))
		w.reply(m.ID, `{"messages":[{"role":"user","content":{"type":"text","text":`+string(quoted)+`}}]}`)
	}
}

func (w *wireServer) call(m wireMessage) {
	var args struct {
		Asks []wireQuestion `json:"asks"`
		N    int            `json:"n"`
		Name string         `json:"name"`
		Who  string         `json:"who"`
		Die  string         `json:"die"` // an address: the server dies when it hangs up
	}
	_ = json.Unmarshal(m.Params.Arguments, &args)
	switch m.Params.Name {
	case "ask":
		if args.Die != "" {
			go func() {
				if conn, err := net.Dial("tcp", args.Die); err == nil {
					_, _ = io.Copy(io.Discard, conn)
				}
				os.Exit(3)
			}()
		}
		if got := w.ask(m, args.Asks); got != nil && args.Die == "" {
			raw, _ := json.Marshal(got)
			w.text(m.ID, string(raw))
		}
	case "log": // with no pause, so that the answer is close behind
		for i := range args.N {
			for _, level := range []string{"debug", "warning"} {
				w.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":%q,"logger":"wire","data":{"n":%d,"who":%q,"big":12345678901234567890}}}`, level, i, args.Who))
			}
			if m.Params.Meta.Progress != nil {
				w.write(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,"progress":%d}}`, m.Params.Meta.Progress, i+1))
			}
		}
		w.text(m.ID, "logged")
	case "told":
		w.mu.Lock()
		caps, level := w.caps, w.level
		w.mu.Unlock()
		if w.protocol == "modern" {
			caps, level = m.Params.Meta.Caps, m.Params.Meta.Level
		}
		raw, _ := json.Marshal(map[string]any{"caps": caps, "level": level, "pid": os.Getpid()})
		w.text(m.ID, string(raw))
	case "hang":
		w.note("hang")
		w.write(`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","data":"hanging"}}`)
	case "await":
		w.mu.Lock()
		c := w.sign(args.Name)
		w.mu.Unlock()
		<-c
		w.text(m.ID, "came")
	case "exit":
		os.Exit(3)
	case "touch":
		w.write(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"test://` + w.protocol + `"}}`)
		w.text(m.ID, "touched")
	}
}
