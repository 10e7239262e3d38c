package console_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/console"
	"toolctl.dev/toolctl/pkg/store/memory"
)

const limited = `
apiVersion: toolctl.dev/v1
kind: Tool
metadata: {name: look}
spec: {description: Looks., input_schema: {type: object}, mock_result: [1]}
---
apiVersion: toolctl.dev/v1
kind: ToolPolicy
metadata: {name: fair}
spec: {limits: [{max_calls: 1000, per: day, by: principal}]}
`

// TestBudgets checks that an operator sees how much each principal has used, and that other people see only their own
// budgets.
func TestBudgets(t *testing.T) {
	s := serve(t, options{manifests: limited, principals: []string{"ann", "bob", "kim"}, console: console.Options{Operators: v1.Approvers{Principals: []string{"ann"}}}})
	for who, calls := range map[string]int{"bob": 3, "kim": 2} {
		for range calls {
			if code, body := s.ask("POST", "api/tools/default/look/call", who, "{}"); code != http.StatusOK {
				t.Fatal(code, body)
			}
		}
	}
	row := regexp.MustCompile(`(?s)<h2 id="budgets">([^<]*)</h2>.*?<tbody>(.*?)</tbody>`)
	tags := regexp.MustCompile(`<[^>]*>`)
	for who, want := range map[string]string{
		"ann": "Budgets used: bob fair limits[0] 3 3 of 1000 | kim fair limits[0] 2 2 of 1000",
		"kim": "Budgets used by you: fair limits[0] 2 2 of 1000",
	} {
		got := ""
		for end := time.Now().Add(time.Minute); got != want && time.Now().Before(end); { // the feed may lag behind the calls
			_, body := s.ask("GET", "activity", who, "")
			found := row.FindStringSubmatch(body)
			if found == nil {
				continue
			}
			var rows []string
			for _, one := range strings.Split(strings.TrimSpace(found[2]), "</tr>") {
				if text := strings.Join(strings.Fields(tags.ReplaceAllString(one, " ")), " "); text != "" {
					rows = append(rows, strings.TrimSuffix(text, " default/look"))
				}
			}
			if len(rows) == 2 && strings.HasPrefix(rows[0], "kim") {
				rows[0], rows[1] = rows[1], rows[0]
			}
			got = found[1] + ": " + strings.Join(rows, " | ")
		}
		if got != want {
			t.Errorf("%s sees %q, want %q", who, got, want)
		}
	}
}

// TestCutListsSaySo checks that a truncated list shows the total number.
func TestCutListsSaySo(t *testing.T) {
	at := memory.New(memory.Options{})
	t.Cleanup(func() { at.Close() })
	s := serve(t, options{manifests: strings.Replace(limited, "[1]", "["+strings.Repeat("{a: 1}, ", 250)+"{a: 2}]", 1), principals: []string{"ann"}, store: at})
	for i := range 230 {
		if code, body := s.ask("POST", "api/tools/default/look/call", "ann", fmt.Sprintf(`{"session":"s%d"}`, i%30)); code != http.StatusOK {
			t.Fatal(code, body)
		}
	}
	for path, want := range map[string][]string{
		"activity":        {"1 to 50 of 230", "1 to 20 of 30"},
		"audit":           {"1 to 50 of 230"},
		"api/calls":       {`"total":230`},
		"activity?tool=x": {`<div id="no-rows">`, "clear the filter"},
	} {
		body := ""
		missing := func() bool {
			for _, text := range want {
				if !strings.Contains(body, text) {
					return true
				}
			}
			return false
		}
		for end := time.Now().Add(time.Minute); missing() && time.Now().Before(end); { // the feed may lag behind the calls
			_, body = s.ask("GET", path, "ann", "")
		}
		if missing() {
			t.Errorf("%s does not say %q: %.3000s", path, want, body)
		}
	}
	if _, body := s.ask("POST", "tools/default/look/try", "ann", "action=run"); !strings.Contains(body, "Showing the first 200 of 251 rows.") {
		t.Errorf("the table of a result: %.3000s", body)
	}
}
