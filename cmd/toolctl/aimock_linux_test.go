package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// aimockPrompt sends its argument to the model, and has a tool that returns 21.5.
const aimockPrompt = `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: get-weather}
spec:
  description: Weather of a place
  hints: {read_only: true}
  input_schema: {type: object, properties: {location: {type: string}}, required: [location]}
  mock_template: '{"location": {{json .location}}, "temperature_c": 21.5}'
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: ask}
spec:
  template: "{{.what}}"
  model: m-1
  tools: [get-weather]
  input: {type: object, properties: {what: {type: string}}, required: [what]}
`

// aimockFixtures are the mock's replies to messages that contain a word. Streamed replies come in pieces of a few
// letters.
const aimockFixtures = `
{"match": {"userMessage": "weather", "hasToolResult": false}, "chunkSize": 3, "response": {"toolCalls": [
  {"name": "get-weather", "arguments": "{\"location\":\"Oslo\"}"}, {"name": "get-weather", "arguments": "{\"location\":\"Rome\"}"}]}},
{"match": {"userMessage": "weather", "toolResultContains": "Rome"}, "chunkSize": 3, "response": {"content": "It is 21.5 ° in Oslo and Rome."}},
{"match": {"userMessage": "refused"}, "response": {"error": {"message": "no such thing", "type": "invalid_request_error"}, "status": 400}},
{"match": {"userMessage": "cut"}, "chunkSize": 3, "latency": 20, "truncateAfterChunks": 4, "response": {"content": "This answer ends before its end."}},
{"match": {"userMessage": "drop"}, "chaos": {"dropRate": 1}, "response": {"content": "never"}},
{"match": {"userMessage": "malformed"}, "chaos": {"malformedRate": 1}, "response": {"content": "never"}},
{"match": {"userMessage": "disconnect"}, "chaos": {"disconnectRate": 1}, "response": {"content": "never"}},
{"match": {"userMessage": "limit"}, "chaos": {"rateLimitRate": 1}, "response": {"content": "never"}}`

// aimockCases are runs against the mock. requests is the expected number of requests.
var aimockCases = []struct {
	word           string
	exit, requests int
	stdout, stderr string
	streamed       string // stderr with --stream if it differs
	exitStreamed   int
}{
	{word: "weather", requests: 2, stdout: "It is 21.5 ° in Oslo and Rome.\n"},
	{word: "late", requests: 2, stdout: "The second time.\n"}, // the mock first responds with 503
	{word: "refused", exit: exitFailed, requests: 1, stderr: "no such thing (status 400, invalid_request_error)"},
	{word: "drop", exit: exitUnavailable, requests: 3, stderr: "request dropped (status 500"},
	{word: "limit", exit: exitUnavailable, requests: 3, stderr: "rate limit exceeded (status 429"},
	{word: "malformed", exit: exitInvalid, requests: 1, stderr: "the response cannot be read: not valid JSON"},
	{word: "disconnect", exit: exitUnavailable, requests: 3, stderr: "closed the connection before it answered"},
	{word: "cut", requests: 1, stdout: "This answer ends before its end.\n", streamed: "was interrupted", exitStreamed: exitFailed},
}

// TestAimock runs replies, streams and failures of the three APIs against an independent mock.
func TestAimock(t *testing.T) {
	t.Parallel()
	dir := os.Getenv("TOOLCTL_AIMOCK")
	if dir == "" {
		t.Skip("TOOLCTL_AIMOCK is not set: run .ci/aimock, which needs Node, and set it to the folder that it prints")
	}
	work := t.TempDir()
	writeFile(t, filepath.Join(work, "ask.yaml"), aimockPrompt)
	fixtures := aimockFixtures
	providers := []string{"openai", "anthropic", "google"}
	for _, p := range providers { // the mock counts per message, so each run needs its own mock
		for _, mode := range []string{"whole", "stream"} {
			late := fmt.Sprintf("late %s %s", p, mode)
			fixtures += fmt.Sprintf(`,
{"match": {"userMessage": %q, "sequenceIndex": 0}, "response": {"error": {"message": "overloaded", "type": "overloaded_error"}, "status": 503}},
{"match": {"userMessage": %q, "sequenceIndex": 1}, "response": {"content": "The second time."}}`, late, late)
		}
	}
	writeFile(t, filepath.Join(work, "fixtures.json"), `{"fixtures": [`+fixtures+"\n]}")
	url := startAimock(t, dir, filepath.Join(work, "fixtures.json"))
	const key = "sk-aimock-5f2c81d0"
	env := append(os.Environ(), "OPENAI_API_KEY="+key, "OPENAI_BASE_URL="+url+"/v1", "ANTHROPIC_API_KEY="+key, "ANTHROPIC_BASE_URL="+url,
		"GEMINI_API_KEY="+key, "GOOGLE_API_KEY="+key, "GOOGLE_GEMINI_BASE_URL="+url)
	t.Run("runs", func(t *testing.T) { // ends after its parallel subtests
		for _, p := range providers {
			for _, mode := range []string{"whole", "stream"} {
				for _, test := range aimockCases {
					t.Run(p+"/"+mode+"/"+test.word, func(t *testing.T) {
						t.Parallel()
						exit, wantErr, requests := test.exit, test.stderr, test.requests
						stdout := test.stdout
						args := []string{"run", "-f", work, "ask", "--provider", p, "-a", fmt.Sprintf("what=%s %s %s", test.word, p, mode)}
						if mode == "stream" {
							args = append(args, "--stream")
							if test.streamed != "" {
								exit, wantErr, stdout = test.exitStreamed, test.streamed, ""
							}
						}
						cmd := again(t, "toolctl", args...)
						cmd.Env = env
						var out, errs bytes.Buffer
						cmd.Stdout, cmd.Stderr = &out, &errs
						err := cmd.Run()
						if code := exitOf(err); code != exit {
							t.Fatalf("exit %d, expected %d: %v\n%s%s", code, exit, err, out.Bytes(), errs.Bytes())
						}
						if stdout != "" && out.String() != stdout {
							t.Errorf("stdout: expected %q, got %q", stdout, out.String())
						}
						if got := errs.String(); !strings.Contains(got, wantErr) || wantErr == "" && got != "" {
							t.Errorf("stderr: expected %q, got %q", wantErr, got)
						}
						if strings.Contains(out.String()+errs.String(), key) {
							t.Error("the key was printed")
						}
						if n := aimockRequests(t, url, fmt.Sprintf("%s %s %s", test.word, p, mode)); n != requests {
							t.Errorf("the mock saw %d requests, expected %d", n, requests)
						}
					})
				}
			}
		}
	})
}

func exitOf(err error) int {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	return -1
}

// startAimock starts the mock and returns its address when the mock accepts connections.
func startAimock(t *testing.T, dir, fixtures string) string {
	t.Helper()
	cmd := command(filepath.Join(dir, "node"), filepath.Join(dir, "node_modules", "@copilotkit", "aimock", "dist", "cli.js"),
		"--port", "0", "--fixtures", fixtures, "--strict", "--validate-on-load", "--journal-max", "0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
	})
	var url string
	for url == "" {
		line, err := lines.ReadString('\n')
		if err != nil {
			close(drained)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
			t.Fatalf("the mock ended before it listened: %v\n%s", err, said.Bytes())
		}
		if _, at, ok := strings.Cut(strings.TrimSpace(line), "listening on "); ok {
			url = at
		}
	}
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
	untilListening(t, strings.TrimPrefix(url, "http://"))
	return url
}

// aimockRequests counts the requests in the mock's journal whose messages contain a text.
func aimockRequests(t *testing.T, url, text string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/__aimock/journal", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var entries []json.RawMessage
	if err := json.NewDecoder(resp.Body).Decode(&entries); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range entries {
		if bytes.Contains(e, []byte(text)) {
			n++
		}
	}
	return n
}
