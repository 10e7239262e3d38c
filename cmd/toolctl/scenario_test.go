package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func toolctl(t *testing.T, wantExit int, args ...string) (stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, strings.NewReader(""), &out, &errs); code != wantExit {
		t.Fatalf("toolctl %s: exit %d, want %d\n%s%s", strings.Join(args, " "), code, wantExit, out.String(), errs.String())
	}
	return out.String(), errs.String()
}

// TestRecordHTTPAndReplay checks that a recording of a real API replays the same without the API.
func TestRecordHTTPAndReplay(t *testing.T) {
	t.Parallel()
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("city") == "Atlantis" {
			http.Error(w, `{"error":"no such place"}`, http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"city":%q,"degrees":12.5,"token":"t0ken"}`, r.URL.Query().Get("city"))
	}))
	dir := writeFiles(t, map[string]string{
		"tool.yaml": `apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: degrees}
spec:
  description: Degrees
  input_schema: {type: object, properties: {city: {type: string}}, required: [city]}
  http: {url: "` + api.URL + `/?city={{.city}}", allow_private_network: true}
`,
		"play/scenario.yaml": `apiVersion: toolctl.dev/v1
kind: Scenario
metadata: {name: degrees}
spec:
  mocks: {degrees: {cassette: calls.yaml}}
  turns:
  - calls:
    - {tool: degrees, args: {city: Oslo}, expect: {result: {equals: {city: Oslo, degrees: 12.5, token: "[REDACTED]"}}}}
    - {tool: degrees, args: {city: Atlantis}, expect: {error: {type: execution_failed, message: "404"}}}
`})
	tool, cassette := filepath.Join(dir, "tool.yaml"), filepath.Join(dir, "play", "calls.yaml")
	toolctl(t, exitOK, "record", "-f", tool, "--cassette", cassette, "--", "call", "degrees", "-a", "city=Oslo")
	_, real := toolctl(t, exitFailed, "record", "-f", tool, "--cassette", cassette, "--append", "--", "call", "degrees", "-a", "city=Atlantis")
	api.Close()
	toolctl(t, exitUnavailable, "call", "-f", tool, "degrees", "-a", "city=Oslo") // the API cannot be reached
	out, _ := toolctl(t, exitOK, "test", tool, filepath.Join(dir, "play"), "-v")
	first, _, _ := strings.Cut(strings.TrimPrefix(real, "recorded 1 call in "+cassette+"\nerror: "), "\n")
	if !strings.Contains(out, first) {
		t.Errorf("the real error was %q, the played one is in\n%s", first, out)
	}
}

// TestLive checks that --live calls the real tools instead of mocks, and the tools of a turn in parallel.
func TestLive(t *testing.T) {
	both := make(chan struct{}, 2)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		both <- struct{}{}
		for len(both) < 2 { // neither call returns before both have arrived
			select {
			case <-r.Context().Done():
				return
			default:
				runtime.Gosched()
			}
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `"real"`)
	}))
	defer api.Close()
	dir := writeFiles(t, map[string]string{
		"tool.yaml": "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: a, input_schema: {type: object}, mock_result: mocked, http: {url: \"" + api.URL + "\"}}\n",
		"s.yaml":    "apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: s}\nspec: {mocks: {a: {error: mocked}}, turns: [{calls: [{tool: a, expect: {result: real}}, {tool: a, expect: {result: real}}]}]}\n",
	})
	toolctl(t, exitFailed, "test", dir)
	if out, _ := toolctl(t, exitFailed, "test", dir, "--live"); !strings.Contains(out, "--allow-private-network") && !strings.Contains(out, "private") {
		t.Errorf("a loopback address was called without leave: %s", out)
	}
	toolctl(t, exitOK, "test", dir, "--live", "--allow-private-network")
}

// TestRecordServe checks that the calls of clients of serve are recorded until it ends.
func TestRecordServe(t *testing.T) {
	dir := writeFiles(t, map[string]string{"tool.yaml": "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: a, input_schema: {type: object}, mock_result: {sum: 1}}\n"})
	cassette := filepath.Join(dir, "calls.yaml")
	in, client := io.Pipe()
	answers, out := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(t.Context(), []string{"record", "-f", filepath.Join(dir, "tool.yaml"), "--cassette", cassette, "--", "serve"}, in, out, io.Discard)
		out.Close()
	}()
	lines := bufio.NewScanner(answers)
	for _, message := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","arguments":{"x":1}}}`,
	} {
		if _, err := io.WriteString(client, message+"\n"); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(message, `"id"`) {
			continue
		}
		for lines.Scan() && !strings.Contains(lines.Text(), `"id"`) { // skip notifications
		}
	}
	client.Close()
	for lines.Scan() {
	}
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
	got, err := os.ReadFile(cassette)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(got), "- tool: default/a\n  args:\n    x: 1\n  result:\n    sum: 1\n") {
		t.Errorf("the cassette is\n%s", got)
	}
}

// TestWatch checks that the scenarios run again when a file changes, and that the command ends with ctx.
func TestWatch(t *testing.T) {
	const tool = "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: a, input_schema: {type: object}, mock_result: %d}\n"
	dir := writeFiles(t, map[string]string{
		"tool.yaml":         fmt.Sprintf(tool, 1),
		"sub/scenario.yaml": "apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: s}\nspec: {turns: [{calls: [{tool: a, expect: {result: 2}}]}]}\n",
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, w := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, []string{"test", "--watch", dir}, strings.NewReader(""), w, w)
		w.Close()
	}()
	lines := bufio.NewScanner(r)
	until := func(want string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), want) {
				return
			}
		}
		t.Fatalf("the output ended without %q", want)
	}
	until("1 scenario: 0 passed, 1 failed, 0 skipped")
	until("watching")
	if err := os.WriteFile(filepath.Join(dir, "tool.yaml"), fmt.Appendf(nil, tool, 2), 0o644); err != nil {
		t.Fatal(err)
	}
	until("1 scenario: 1 passed, 0 failed, 0 skipped")
	until("watching")
	stop()
	for lines.Scan() { // read the rest
	}
	if code := <-ended; code != exitOK {
		t.Errorf("exit %d", code)
	}
}

// junitSchema has the elements and attributes of the JUnit schema of Jenkins (junit-10.xsd).
var junitSchema = map[string]struct{ attrs, required, children []string }{
	"testsuites": {[]string{"name", "time", "tests", "failures", "disabled", "errors"}, nil, []string{"testsuite"}},
	"testsuite":  {[]string{"name", "tests", "failures", "errors", "time", "disabled", "skipped", "timestamp", "hostname", "id", "package", "group", "file", "log", "url", "version"}, []string{"name", "tests", "failures", "errors"}, []string{"properties", "testcase", "system-out", "system-err"}},
	"testcase":   {[]string{"name", "time", "classname", "group"}, []string{"name"}, []string{"skipped", "error", "failure", "system-out", "system-err"}},
	"failure":    {[]string{"type", "message"}, nil, nil},
	"error":      {[]string{"type", "message"}, nil, nil},
	"skipped":    {[]string{"type", "message"}, nil, nil},
	"system-out": {},
}

func TestJUnit(t *testing.T) {
	dir := writeFiles(t, map[string]string{
		"a.yaml": "apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: a}\nspec: {description: a, input_schema: {type: object}, mock_result: \"<\\u0001&>\"}\n---\n" +
			"apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: fails}\nspec: {turns: [{calls: [{tool: a, expect: {result: 2}}]}]}\n---\n" +
			"apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: passes}\nspec: {turns: [{calls: [{tool: a}]}]}\n",
		"b.yaml": "apiVersion: toolctl.dev/v1\nkind: Scenario\nmetadata: {name: invalid}\nspec: {tools: [none], turns: [{calls: [{tool: a}]}]}\n---\n" +
			"apiVersion: promptkit.altairalabs.ai/v1\nkind: Scenario\nmetadata: {name: skipped}\nspec: {turns: [{role: user, content: hi}]}\n",
	})
	out, _ := toolctl(t, exitInvalid, "test", dir, "-o", "junit")
	dec := xml.NewDecoder(strings.NewReader(out))
	var stack []string
	seen := map[string]int{}
	counts := map[string]string{}
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, out)
		}
		switch e := token.(type) {
		case xml.StartElement:
			name := e.Name.Local
			rule, known := junitSchema[name]
			if !known {
				t.Fatalf("unknown element %s", name)
			}
			if len(stack) > 0 && !slices.Contains(junitSchema[stack[len(stack)-1]].children, name) {
				t.Errorf("%s within %s", name, stack[len(stack)-1])
			}
			var have []string
			for _, a := range e.Attr {
				if !slices.Contains(rule.attrs, a.Name.Local) {
					t.Errorf("%s has an attribute %s", name, a.Name.Local)
				}
				have = append(have, a.Name.Local)
				if name == "testsuites" {
					counts[a.Name.Local] = a.Value
				}
			}
			for _, r := range rule.required {
				if !slices.Contains(have, r) {
					t.Errorf("%s has no attribute %s", name, r)
				}
			}
			stack, seen[name] = append(stack, name), seen[name]+1
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		}
	}
	for element, n := range map[string]int{"testsuites": 1, "testsuite": 2, "testcase": 4, "failure": 1, "error": 1, "skipped": 1} {
		if seen[element] != n {
			t.Errorf("%d of %s, want %d", seen[element], element, n)
		}
	}
	for attr, n := range map[string]int{"tests": 4, "failures": 1, "errors": 1} {
		if counts[attr] != strconv.Itoa(n) {
			t.Errorf("%s=%q, want %d", attr, counts[attr], n)
		}
	}
}
