package console_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/scenario"
	"toolctl.dev/toolctl/pkg/scenario/report"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
	"toolctl.dev/toolctl/pkg/store/memory"
	"toolctl.dev/toolctl/pkg/store/storetest"
)

const greet = `
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: greet}
spec:
  description: Greets <somebody>.
  system_prompt: You are {{.mood}}.
  input: {type: object, properties: {name: {type: string}, times: {type: integer, minimum: 1}, mood: {type: string, enum: [kind, curt]}}, required: [name, mood]}
  template: "{{range $i := .tags}}{{$i}} {{end}}Hello {{.name}}, {{.times}} times."
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: free}
spec: {description: Says a word., arguments: [{name: word, required: true}], template: "Say {{.word}}."}
---
apiVersion: toolctl.dev/v1
kind: Prompt
metadata: {name: broken}
spec: {description: Cannot be rendered., template: "{{.x"}
`

func TestPrompts(t *testing.T) {
	s := serve(t, options{manifests: greet, principals: []string{"ann"}})
	code, body := s.ask("GET", "prompts", "ann", "")
	if code != http.StatusOK || !strings.Contains(body, `href="./prompts/default/greet"`) || !strings.Contains(body, "Greets &lt;somebody&gt;.") || !strings.Contains(body, "not ready") {
		t.Errorf("%d %s", code, body)
	}
	if code, body = s.ask("GET", "prompts/default/greet", "ann", ""); code != http.StatusOK || !strings.Contains(body, `name="v:/name"`) || !strings.Contains(body, `name="v:/times"`) || !strings.Contains(body, "curt") {
		t.Errorf("%d %s", code, body)
	}
	code, body = s.ask("POST", "prompts/default/greet", "ann", "action=run&v:/name=%3Cb%3EAnn&v:/times=3&v:/mood=%22kind%22&p:=1")
	if code != http.StatusOK || !strings.Contains(body, "Hello &lt;b&gt;Ann, 3 times.") || !strings.Contains(body, "You are kind.") {
		t.Errorf("%d %s", code, body)
	}
	// Errors appear at their fields.
	code, body = s.ask("POST", "prompts/default/greet", "ann", "action=run&v:/times=0&v:/mood=%22kind%22&p:=1")
	if code != http.StatusUnprocessableEntity || strings.Count(body, `class="field wrong"`) != 2 {
		t.Errorf("%d %s", code, body)
	}
	if code, body = s.ask("POST", "prompts/default/free", "ann", "action=run&v:/word=please"); code != http.StatusOK || !strings.Contains(body, "Say please.") {
		t.Errorf("%d %s", code, body)
	}
	if code, body = s.ask("POST", "api/prompts/default/greet", "ann", `{"args":{"name":"Bo","times":2,"mood":"curt"}}`); code != http.StatusOK || !strings.Contains(body, "Hello Bo, 2 times.") || !strings.Contains(body, `"role":"system"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body = s.ask("POST", "api/prompts/default/greet", "ann", `{"args":{"mood":"curt"}}`); code != http.StatusUnprocessableEntity || !strings.Contains(body, `"path":"/name"`) {
		t.Errorf("%d %s", code, body)
	}
	if code, body = s.ask("GET", "api/prompts", "ann", ""); code != http.StatusOK || !strings.Contains(body, `"path":"default/free"`) {
		t.Errorf("%d %s", code, body)
	}
	for _, path := range []string{"prompts/default/none", "prompts/default/greet/none", "prompts/other/greet"} {
		if code, _ := s.ask("GET", path, "ann", ""); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
}

func TestLastTest(t *testing.T) {
	file := filepath.Join(t.TempDir(), report.KeptFile)
	o := options{manifests: heldPay, principals: []string{"bob", "eve", "boss"}, console: console.Options{TestReport: file, Operators: v1.Approvers{Principals: []string{"boss"}}}}
	s := serve(t, o)
	if _, body := s.ask("GET", "prompts", "bob", ""); !strings.Contains(body, "no scenario has run yet") {
		t.Error(body)
	}
	result := func(name, tool, status string) scenario.Result {
		return scenario.Result{
			Name: name, Namespace: "default", Status: status, Judged: 1, Total: 1,
			Turns:    []scenario.Turn{{Calls: []scenario.Call{{Tool: tool, Result: v1.Result{Tool: tool, Namespace: "default"}}}}},
			Failures: []scenario.Failure{{Turn: 1, What: "status", Expected: "complete", Got: "failed, by " + name}},
		}
	}
	cover := func(tool string) scenario.CoveredObject {
		return scenario.CoveredObject{Namespace: "default", Name: tool, Covered: 1, Total: 2, Percent: 50, Items: []scenario.CoverageItem{{Kind: "called", Covered: true}, {Kind: "enum", Name: "/of-" + tool}}}
	}
	err := report.Keep(file, &report.Kept{
		Report:   &scenario.Report{Scenarios: []scenario.Result{result("pays", "pay", scenario.Failed), result("looks", "look", scenario.Passed)}},
		Coverage: &scenario.Coverage{Covered: 2, Total: 4, Percent: 50, Tools: []scenario.CoveredObject{cover("pay"), cover("look")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	for who, all := range map[string]bool{"bob": true, "eve": false, "boss": true} { // eve does not see the tool pay
		for _, path := range []string{"prompts", "api/tests"} {
			code, body := s.ask("GET", path, who, "")
			if code != http.StatusOK || !strings.Contains(body, "by looks") || !strings.Contains(body, "/of-look") {
				t.Errorf("%s of %s: %d %s", path, who, code, body)
			}
			if strings.Contains(body, "by pays") != all || strings.Contains(body, "/of-pay") != all {
				t.Errorf("%s of %s: %s", path, who, body)
			}
		}
	}
	if err := os.WriteFile(file, []byte(`{"x":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, body := s.ask("GET", "prompts", "bob", ""); code != http.StatusOK || !strings.Contains(body, "expected a report of") {
		t.Errorf("%d %s", code, body)
	}
}

// TestSecretsOfManifestsAreMasked checks that no response contains a secret of a manifest.
func TestSecretsOfManifestsAreMasked(t *testing.T) {
	s := serve(t, options{principals: []string{"ann"}, manifests: `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: t}
spec:
  description: T
  redact: [card]
  input_schema: {type: object, properties: {card: {type: string}, token: {type: string}}}
  mock_result: {}
---
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: h}
spec:
  description: H
  input_schema: {type: object}
  http: {url: "https://user:hunter2@api.example.com/?api_key=hunter2", headers: {Authorization: Bearer hunter2}}
`})
	for _, path := range []string{"api/tools/default/h", "tools/default/h", "api/tools"} {
		if code, body := s.ask("GET", path, "ann", ""); code != http.StatusOK || strings.Contains(body, "hunter2") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	// Copies for files contain no secrets; the copied call has the original arguments.
	code, body := s.ask("POST", "tools/default/t/try", "ann", "action=run&v:/card=4111&v:/token=hunter2&p:=1")
	_, files, ok := strings.Cut(body, "Example for the manifest")
	files, _, _ = strings.Cut(files, `id="raw"`)
	if code != http.StatusOK || !ok || strings.Contains(files, "4111") || strings.Contains(files, "hunter2") || !strings.Contains(body, "Bearer $TOKEN") {
		t.Errorf("%d %s", code, body)
	}
}

// apply applies tools with a mark as the set "shop".
func apply(t *testing.T, st store.Store, commit string, objects ...v1.Object) {
	t.Helper()
	if _, err := st.Apply(t.Context(), objects, store.ApplyOptions{Set: "shop", Prune: true, By: "ann", Command: "apply", Source: "tools", Commit: commit}); err != nil {
		t.Fatal(err)
	}
}

// TestUndo checks that only an operator sees the changes of revisions and can restore a set.
func TestUndo(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { st.Close() })
	t.Cleanup(func() { _ = st.Close() })
	apply(t, st, "aaaa", storetest.Tool("a", "1"), storetest.Tool("b", "1"))
	wide, narrow := storetest.Tool("a", "2"), storetest.Tool("a", "3")
	narrow.Spec.InputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":5}},"required":["n"]}`)
	apply(t, st, "bbbb", wide)
	apply(t, st, "cccc", narrow)
	s := serve(t, options{store: st, principals: []string{"ann", "bob", "team-lead"}, console: console.Options{Operators: v1.Approvers{Principals: []string{"team-*"}}}})

	for _, who := range []string{"bob", "team-lead"} {
		code, body := s.ask("GET", "changes", who, "")
		if code != http.StatusOK || !strings.Contains(body, "cccc") || strings.Contains(body, "Go back") != (who == "team-lead") {
			t.Errorf("%s: %d %s", who, code, body)
		}
		if strings.Contains(body, `href="./changes/undo?revision=1&amp;set=shop"`) != (who == "team-lead") {
			t.Errorf("%s is not led to the undo: %s", who, body)
		}
		if _, body := s.ask("GET", "", who, ""); !strings.Contains(body, `href="./changes"`) {
			t.Errorf("nothing leads to the changes")
		}
	}
	refused := func(method, path, body string) {
		t.Helper()
		for _, who := range []string{"bob", "ann"} {
			if code, text := s.ask(method, path, who, body); code != http.StatusForbidden || strings.Contains(text, "maximum") {
				t.Errorf("%s %s by %s: %d %s", method, path, who, code, text)
			}
		}
	}
	undo := url("set=shop", "revision=1", "from=3")
	for _, path := range []string{"changes/pending", "changes/revision?set=shop&revision=3", "changes/undo?set=shop&revision=1", "api/changes/pending", "api/changes/revision?set=shop&revision=3"} {
		refused("GET", path, "")
	}
	refused("POST", "changes/undo", undo)
	refused("POST", "api/changes/undo", `{"set":"shop","revision":1,"from":3}`)
	if code, _ := s.ask("POST", "changes/undo", "", undo); code != http.StatusUnauthorized {
		t.Errorf("without a token: %d", code)
	}

	code, body := s.ask("GET", "changes/revision?set=shop&revision=3", "team-lead", "")
	if code != http.StatusOK || !strings.Contains(body, "breaking") || !strings.Contains(body, "Witness") {
		t.Errorf("%d %s", code, body)
	}
	code, body = s.ask("GET", "changes/undo?set=shop&revision=1", "team-lead", "")
	if code != http.StatusOK || !strings.Contains(body, "create Tool") || !strings.Contains(body, `name="from" value="3"`) {
		t.Errorf("%d %s", code, body)
	}
	if got := mark(t, st, "a"); got != "3" {
		t.Fatalf("to look changed it to %s", got)
	}
	if code, _ := s.ask("POST", "changes/undo", "team-lead", url("set=shop", "revision=1", "from=2")); code != http.StatusConflict {
		t.Errorf("of a revision that is not the newest: %d", code)
	}
	res := s.open("POST", "changes/undo", "team-lead", undo)
	res.Body.Close()
	if res.Request.URL.Path != "/ui/changes" || mark(t, st, "a") != "1" || mark(t, st, "b") != "1" {
		t.Errorf("at %s, a is %s, b is %s", res.Request.URL, mark(t, st, "a"), mark(t, st, "b"))
	}
	newest, err := st.Revisions(t.Context(), store.RevisionQuery{Set: "shop", Newest: true})
	if err != nil || newest[0].UndoOf != 1 || newest[0].By != "team-lead" {
		t.Errorf("%+v %v", newest, err)
	}
	if code, _ := s.ask("POST", "changes/undo", "team-lead", undo); code != http.StatusConflict {
		t.Errorf("twice: %d", code)
	}
	// A change outside the set is not undone.
	if _, err := st.Apply(t.Context(), []v1.Object{storetest.Tool("a", "by hand")}, store.ApplyOptions{}); err != nil {
		t.Fatal(err)
	}
	if code, text := s.ask("GET", "changes/undo?set=shop&revision=3", "team-lead", ""); code != http.StatusConflict || !strings.Contains(text, "changed since") {
		t.Errorf("%d %s", code, text)
	}
	// The gateway does not follow the store, so the page shows the changes that are not served.
	if code, text := s.ask("GET", "changes/pending", "team-lead", ""); code != http.StatusOK || !strings.Contains(text, "create Tool") {
		t.Errorf("%d %s", code, text)
	}
	for _, path := range []string{"changes/revision?set=shop&revision=99", "changes/undo?set=none&revision=1"} {
		if code, _ := s.ask("GET", path, "team-lead", ""); code != http.StatusNotFound {
			t.Errorf("%s: %d", path, code)
		}
	}
	if code, _ := s.ask("GET", "changes/undo?set=shop&revision=x", "team-lead", ""); code != http.StatusBadRequest {
		t.Errorf("no number: %d", code)
	}
}

func url(parts ...string) string { return strings.Join(parts, "&") }

func mark(t *testing.T, st store.Store, name string) string {
	t.Helper()
	r, err := st.Get(t.Context(), v1.Key{Kind: v1.KindTool, Namespace: v1.DefaultNamespace, Name: name})
	if err != nil {
		return err.Error()
	}
	return r.Object.Head().Metadata.Labels["mark"]
}

// repository is a source whose newest commit the test can change.
type repository struct {
	mu      sync.Mutex
	head    string
	commits map[string]string // manifests by commit
}

func (r *repository) String() string { return "git+https://git.example.com/team/tools" }

func (r *repository) Head(context.Context) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.head, nil
}

func (r *repository) Fetch(_ context.Context, revision, dir string) (source.Files, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return source.Files{Path: "."}, os.WriteFile(filepath.Join(dir, "all.yaml"), []byte(r.commits[revision]), 0o600)
}

func (r *repository) push(revision, manifests string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.head, r.commits[revision] = revision, manifests
}

func (*repository) Trust() (string, error)                                 { return "", nil }
func (*repository) Descends(context.Context, string, string) (bool, error) { return true, nil }
func (*repository) Older(context.Context, string) ([]string, error)        { return nil, nil }
func (*repository) Close() error                                           { return nil }

func tool(name, more string) string {
	return fmt.Sprintf("apiVersion: toolctl.dev/v1\nkind: Tool\nmetadata: {name: %s}\nspec: {description: T, input_schema: {type: object, properties: {n: {type: integer%s}}}, mock_result: {}}\n", name, more)
}

// TestPendingCommit checks that the page shows the changes in a commit before it is served, and the errors in a bad
// commit.
func TestPendingCommit(t *testing.T) {
	repo := &repository{commits: map[string]string{}}
	repo.push("1111", tool("a", ""))
	remote := source.NewRemote(repo, source.RemoteOptions{})
	s := serve(t, options{source: remote, principals: []string{"ann", "bob"}, console: console.Options{Operators: v1.Approvers{Principals: []string{"ann"}}}})
	if code, body := s.ask("GET", "changes/pending", "ann", ""); code != http.StatusOK || !strings.Contains(body, "Nothing changes.") {
		t.Errorf("%d %s", code, body)
	}
	repo.push("2222", tool("a", ", maximum: 5")+"---\n"+tool("b", ""))
	code, body := s.ask("GET", "changes/pending", "ann", "")
	for _, want := range []string{"2222", "breaking", "Witness", "create Tool"} {
		if code != http.StatusOK || !strings.Contains(body, want) {
			t.Errorf("no %s: %d %s", want, code, body)
		}
	}
	if got := s.gateway.Pulled(); got.Revision != "1111" || got.Failed != nil {
		t.Errorf("to look changed what is served: %+v", got)
	}
	repo.push("3333", strings.Replace(tool("a", ""), "description", "descriptio", 1)+"---\n"+tool("c", ""))
	if code, body := s.ask("GET", "changes/pending", "ann", ""); code != http.StatusOK || !strings.Contains(body, "all.yaml:4") || !strings.Contains(body, "create Tool") {
		t.Errorf("%d %s", code, body)
	}
	if err := s.gateway.Reload(t.Context()); err == nil {
		t.Fatal("a bad commit is served")
	}
	for _, who := range []string{"ann", "bob"} {
		code, body := s.ask("GET", "changes", who, "")
		for _, want := range []string{"git&#43;https://git.example.com/team/tools", "1111", "Not served: commit 3333: 1 error: all.yaml:4"} {
			if code != http.StatusOK || !strings.Contains(body, want) {
				t.Errorf("%s: no %s: %d %s", who, want, code, body)
			}
		}
	}
	_, body = s.ask("GET", "api/changes", "bob", "")
	var v struct {
		Source   *source.Status
		Operator bool
	}
	if err := json.Unmarshal([]byte(body), &v); err != nil || v.Source.Failed.Revision != "3333" || v.Operator {
		t.Errorf("%v %s", err, body)
	}
	// The page of a tool shows the commit.
	if _, body := s.ask("GET", "tools/default/a", "bob", ""); !strings.Contains(body, "1111") || !strings.Contains(body, "all.yaml:1") {
		t.Error(body)
	}
}

// TestManyWaitingCalls makes a few more calls than may be pending. Pages and API responses show them in parts.
func TestManyWaitingCalls(t *testing.T) {
	st := memory.New(memory.Options{})
	t.Cleanup(func() { _ = st.Close() })
	s := serve(t, options{manifests: heldPay, principals: []string{"ann"}, store: st})
	now := time.Now().UTC().Truncate(time.Millisecond)
	for i := range v1.MaxPendingCalls + 10 {
		p := v1.PendingCall{
			ID: fmt.Sprintf("id%08d", i), State: v1.ApprovalPending, Tool: "pay", Namespace: "default", Policy: "held", Rule: "require_approval", Principal: fmt.Sprint("p", i%20),
			Session: fmt.Sprint("s", i%400), Args: json.RawMessage(`{"to":"` + strings.Repeat("x", 20_000) + `"}`), Created: now, Expires: now.Add(time.Hour), Subject: fmt.Sprint(i),
		}
		if _, err := st.TakeApproval(t.Context(), p, ""); (err != nil) != (i >= v1.MaxPendingCalls) {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	seen := map[string]bool{}
	for offset := 0; offset < v1.MaxPendingCalls; offset += 300 {
		_, body := s.ask("GET", fmt.Sprintf("api/approvals?state=pending&limit=300&offset=%d", offset), "ann", "")
		var part struct {
			Items []struct{ ID string }
			Total int
		}
		if err := json.Unmarshal([]byte(body), &part); err != nil || part.Total != v1.MaxPendingCalls || len(part.Items) != min(300, v1.MaxPendingCalls-offset) {
			t.Fatalf("from %d: %d of %d, %v", offset, len(part.Items), part.Total, err)
		}
		for _, one := range part.Items {
			seen[one.ID] = true
		}
	}
	if len(seen) != v1.MaxPendingCalls {
		t.Errorf("%d calls were seen", len(seen))
	}
	if _, body := s.ask("GET", "api/approvals", "ann", ""); strings.Count(body, `"id":`) != 100 {
		t.Errorf("%d calls in an answer", strings.Count(body, `"id":`))
	}
	for page, want := range map[string][]string{
		"approvals":         {"1 to 50 of 1000", `href="./approvals?page=2" rel="next"`, "<title>(1000)"},
		"approvals?page=20": {"951 to 1000 of 1000", `href="./approvals?page=19" rel="prev"`, "id00000999"},
		"approvals?page=99": {"951 to 1000 of 1000", `<span aria-current="page">20</span>`},
	} {
		_, body := s.ask("GET", page, "ann", "")
		for _, text := range want {
			if !strings.Contains(body, text) {
				t.Errorf("%s does not have %s", page, text)
			}
		}
		if n := strings.Count(body, `<th scope="row">`); n != 50 || len(body) > 100<<10 {
			t.Errorf("%s: %d calls in %d bytes", page, n, len(body))
		}
	}
	// Expired calls are not counted.
	if _, err := st.DecideApproval(t.Context(), "id00000000", v1.Decision{By: "ann", Approved: true}, now.Add(time.Hour)); err == nil {
		t.Error("a call that has expired is decided on")
	}
}
