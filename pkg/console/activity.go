package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/registry"
	"toolctl.dev/toolctl/pkg/store"
)

// history returns the calls of the last day from the audit log.
func (c *Console) history(ctx context.Context) []v1.AuditRecord {
	const day = 24 * time.Hour
	lines, err := c.gateway.AuditLines(ctx, store.AuditFilter{Since: c.opts.Now().Add(-day), Settled: true, Limit: maxEvents})
	if err != nil {
		c.opts.Logger.Warn("the console starts without the calls in the audit log", "error", err.Error())
	}
	return slices.DeleteFunc(lines, func(l v1.AuditRecord) bool {
		return l.Change != nil || l.Gap != nil || l.Status == v1.StatusStarted || l.IsSearch()
	})
}

// callFilter selects calls.
type callFilter struct{ Tool, Principal, Session, Status string }

// statusRefused is the filter for refused calls, beside the statuses of results.
const statusRefused = "refused"

func readCallFilter(r *http.Request) callFilter {
	q := r.URL.Query()
	cut := func(name string) string { s := q.Get(name); return s[:min(len(s), maxQuery)] }
	return callFilter{cut("tool"), cut("principal"), cut("session"), cut("status")}
}

func (f callFilter) fits(e *event) bool {
	has := func(text, part string) bool {
		return part == "" || strings.Contains(strings.ToLower(text), strings.ToLower(part))
	}
	status := f.Status == "" || f.Status == e.Status || f.Status == statusRefused && e.Policy != nil && e.Policy.Decision == v1.DecisionDeny
	return status && has(e.Namespace+"/"+e.Tool, f.Tool) && has(e.Principal, f.Principal) && has(e.Session, f.Session)
}

// Limits of pages and API responses.
const (
	maxRows  = 200
	maxLines = 1000
)

// sessionRow summarizes the recent calls of a session.
type sessionRow struct {
	Session, Principal string
	Calls, Failed      int
	Last               time.Time
}

// sessionsOf returns the sessions of calls, the one with the newest call first.
func sessionsOf(all []event) []sessionRow {
	var rows []sessionRow
	at := map[[2]string]int{}
	for i := range all {
		e := &all[i]
		if e.Session == "" {
			continue
		}
		key := [2]string{e.Principal, e.Session}
		n, known := at[key]
		if !known {
			n = len(rows)
			at[key], rows = n, append(rows, sessionRow{Session: e.Session, Principal: e.Principal, Last: e.Time})
		}
		rows[n].Calls++
		if e.Status == v1.StatusFailed {
			rows[n].Failed++
		}
	}
	return rows
}

// activityPage shows the recent calls, the newest first, with charts, budgets and sessions.
type activityPage struct {
	listPage[callView]
	Chart    *chart
	Operator bool
	Dropped  int64
	Budgets  listPage[budgetRow]
	Sessions listPage[sessionRow]
}

func (c *Console) activity(r *request) error {
	f, sees := readCallFilter(r.Request), c.seeing(r)
	remembered, _ := c.feed.last(maxEvents, sees)
	found := slices.DeleteFunc(slices.Clone(remembered), func(e event) bool { return !f.fits(&e) })
	p := activityPage{Chart: c.feed.overall(c.toolSight(r)), Operator: c.operates(r.person), Dropped: c.feed.dropped.Load()}
	p.listPage = listOf(r.Request, "", c.viewCalls(r, found), []column[callView]{
		{name: "time", title: "Time", given: true, number: func(e *callView) float64 { return float64(e.Number) }},
		{name: "tool", title: "Tool", text: func(e *callView) string { return e.Namespace + "/" + e.Tool }},
		{name: "status", title: "Status", text: func(e *callView) string { return e.Status + " " + e.ErrorType }},
		{name: "policy", title: "Policy", text: func(e *callView) string {
			if e.Policy == nil {
				return ""
			}
			return e.Policy.Decision
		}},
		{name: "took", title: "Took", class: "num", number: func(e *callView) float64 { return e.DurationMS }},
		{name: "principal", title: "Principal", text: func(e *callView) string { return e.Principal }},
		{name: "session", title: "Session", class: "wide", text: func(e *callView) string { return e.Session }},
	})
	p.Known, p.Filtered, p.Reload = len(remembered), f != callFilter{}, true
	p.Fields = []filterField{
		{"tool", "tool", "Tool", f.Tool, nil}, {"principal", "principal", "Principal", f.Principal, nil}, {"session", "session", "Session", f.Session, nil},
		{"status-filter", "status", "Status", f.Status, []string{v1.StatusComplete, v1.StatusFailed, v1.StatusPending, statusRefused}},
	}
	var who []column[budgetRow]
	if p.Operator {
		who = []column[budgetRow]{{name: "principal", title: "Principal", text: func(b *budgetRow) string { return b.Principal }}}
	}
	p.Budgets = listOf(r.Request, "budgets", c.budgets(r, found[:min(len(found), maxRows)]), append(who,
		column[budgetRow]{name: "policy", title: "Policy", text: func(b *budgetRow) string { return b.Policy }},
		column[budgetRow]{name: "rule", title: "Rule", text: func(b *budgetRow) string { return b.Rule }},
		column[budgetRow]{name: "used", title: "Used", number: func(b *budgetRow) float64 { return float64(*b.UsedBefore) / max(1, float64(*b.Limit)) }},
		column[budgetRow]{name: "tool", title: "Example tool", class: "wide", text: func(b *budgetRow) string { return b.Tool }}))
	p.Sessions = listOf(r.Request, "sessions", sessionsOf(remembered), []column[sessionRow]{
		{name: "session", title: "Session", text: func(s *sessionRow) string { return s.Session }},
		{name: "principal", title: "Principal", class: "wide", text: func(s *sessionRow) string { return s.Principal }},
		{name: "calls", title: "Calls", class: "num", number: func(s *sessionRow) float64 { return float64(s.Calls) }},
		{name: "failed", title: "Failed", class: "num", number: func(s *sessionRow) float64 { return float64(s.Failed) }},
		{name: "last", title: "Last call", given: true, number: func(s *sessionRow) float64 { return seconds(s.Last) }},
	})
	c.show(r, http.StatusOK, "activity", "Activity", "activity", p)
	return nil
}

// budgetRow is a limit of a policy and its use.
type budgetRow struct {
	Principal, Tool string
	policy.Verdict
}

// maxBudgetTools limits the recently called tools whose limits are shown.
const maxBudgetTools = 40

// budgets returns the limits for the tools of some calls: for an operator the limits of the callers, for others those
// of the person.
func (c *Console) budgets(r *request, rows []event) []budgetRow {
	type holds struct{ principal, policy, rule string }
	var all []budgetRow
	operates := c.operates(r.person)
	asked, known := map[holds]bool{}, map[holds]bool{}
	for i := range rows {
		e := &rows[i]
		who, session, view := r.principal, r.id, r.view
		if operates {
			who, session, view = e.Principal, e.Session, c.gateway.View(e.Principal)
		}
		name := e.Namespace + "/" + e.Tool
		key := holds{who, "", name}
		if asked[key] || len(asked) == maxBudgetTools {
			continue
		}
		asked[key] = true
		ex, err := view.Explain(r.Context(), v1.Call{Tool: name, Session: session})
		if err != nil { // the tool was removed, or is hidden
			continue
		}
		for _, v := range ex.Verdicts {
			if at := (holds{who, v.Policy, v.Rule}); v.Limit != nil && v.UsedBefore != nil && !known[at] {
				known[at] = true
				all = append(all, budgetRow{who, name, v})
			}
		}
	}
	return all
}

// call shows the page of a call.
func (c *Console) call(r *request) error {
	id, sees := r.PathValue("call"), c.seeing(r)
	found, _ := c.feed.last(1, func(e *event) bool { return e.CallID == id && sees(e) })
	if len(found) == 0 {
		return pageError{http.StatusNotFound, "This call is not among the most recent calls. 'toolctl audit list' lists all calls."}
	}
	v := c.viewCall(r, &found[0])
	raw, _ := json.Marshal(v)
	c.show(r, http.StatusOK, "call", "Call of "+v.Tool, "activity", struct {
		Call      *callView
		Arguments string
		JSON      string
	}{&v, indented(v.Args), indented(raw)})
	return nil
}

// row is the event about a finished call.
type row struct {
	Number    int64     `json:"number"`
	ID        string    `json:"id"`
	Time      time.Time `json:"time"`
	Tool      string    `json:"tool"`
	Principal string    `json:"principal"`
	Session   string    `json:"session"`
	Status    string    `json:"status"`
	Decision  string    `json:"decision"`
	Duration  string    `json:"duration"`
	Error     string    `json:"error"`
}

func rowOfEvent(e *event) row {
	r := row{Number: e.Number, ID: e.CallID, Time: e.Time, Tool: e.Namespace + "/" + e.Tool, Principal: e.Principal, Session: e.Session, Status: e.Status, Duration: clip.Milliseconds(e.DurationMS), Error: e.ErrorType}
	if e.Policy != nil {
		r.Decision = e.Policy.Decision
	}
	return r
}

// events streams new calls and the number of pending approvals to a page as server-sent events (HTML, 9.2). When
// many calls end at once, it sends the newest.
func (c *Console) events(r *request) error {
	w, stop, err := c.feed.watch(r.principal)
	if err != nil {
		return err
	}
	defer stop()
	ctx, end := r.lasting(r.Context()) // the stream ends when the person signs out or the token is revoked
	defer end()
	f, sees := readCallFilter(r.Request), c.seeing(r)
	calls := r.URL.Query().Get("calls") != ""
	h := r.out.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(r.out)
	send := func(name string, v any) bool {
		data, err := json.Marshal(v)
		if err != nil {
			return false
		}
		_, err = fmt.Fprintf(r.out, "event: %s\ndata: %s\n\n", name, data)
		return err == nil && (name == "call" || out.Flush() == nil)
	}
	// The rate of events is limited, regardless of the number of calls.
	const (
		pause    = 100 * time.Millisecond
		mostRows = 30
	)
	rest := time.NewTimer(0)
	defer rest.Stop()
	var news chan event // nil during a pause
	const alive = 15 * time.Second
	beat := time.NewTicker(alive)
	defer beat.Stop()
	if !send("waiting", c.waitingFor(c.waiting(ctx), r.person)) {
		return nil
	}
	for {
		ok := true
		select {
		case <-ctx.Done():
			return nil
		case e := <-news:
			var rows []row
			for more := len(w.events); ; more-- {
				if calls && f.fits(&e) && sees(&e) {
					rows = append(rows, rowOfEvent(&e))
				}
				if more == 0 {
					break
				}
				e = <-w.events
			}
			for _, one := range rows[max(0, len(rows)-mostRows):] {
				ok = ok && send("call", one)
			}
			if ok && len(rows) > 0 {
				ok = out.Flush() == nil
			}
			news = nil
			rest.Reset(pause)
		case <-rest.C:
			if calls {
				news = w.events
			}
		case all := <-w.waiting:
			ok = send("waiting", c.waitingFor(all, r.person))
		case <-beat.C:
			if _, err := c.who(r.Request); err != nil { // issuers do not report revoked tokens, so check again
				return nil
			}
			ok = send("alive", nil)
		}
		if !ok {
			return nil
		}
	}
}

// auditPage shows the audit log and the result of a check.
type auditPage struct {
	listPage[v1.AuditRecord]
	Kept  bool
	More  bool // the log has earlier records
	Check *auditCheck
}

// auditCheck is the result of a check of the chain.
type auditCheck struct {
	Lines  int64  `json:"lines"`
	Pruned int64  `json:"pruned,omitempty"`
	Head   string `json:"head"`
	Broken string `json:"broken,omitempty"`
}

func (c *Console) verifyAudit(ctx context.Context) (*auditCheck, error) {
	s := c.gateway.Store()
	if s == nil {
		return nil, pageError{http.StatusNotFound, "There is no audit log: select a store with --store."}
	}
	found, err := s.VerifyAudit(ctx, "")
	if err != nil {
		return nil, err
	}
	check := &auditCheck{Lines: found.Lines, Pruned: found.Pruned, Head: found.Head}
	if found.Broken != nil {
		check.Broken = found.Broken.Error()
	}
	return check, nil
}

// audit shows the end of the audit log; a POST also checks the whole chain.
func (c *Console) audit(r *request) error {
	p := auditPage{Kept: c.gateway.Store() != nil}
	var err error
	if r.Method == http.MethodPost {
		if p.Check, err = c.verifyAudit(r.Context()); err != nil {
			return err
		}
	}
	sees, filter := c.seeing(r), store.AuditFilter{Limit: maxLines + 1, Settled: true}
	operates := c.operates(r.person)
	if !operates {
		filter.Principal = r.principal // a principal may be a pattern here, so sees filters again below
	}
	lines, err := c.gateway.AuditLines(r.Context(), filter)
	if err != nil {
		return err
	}
	if p.More = len(lines) > maxLines; p.More {
		lines = lines[1:] // drop the additional record, the oldest
	}
	lines = slices.DeleteFunc(lines, func(l v1.AuditRecord) bool {
		if l.Change != nil {
			return !operates
		}
		return l.Gap == nil && !sees(&event{CallEvent: registry.CallEvent{AuditRecord: l}})
	})
	slices.Reverse(lines)
	p.listPage = listOf(r.Request, "", lines, []column[v1.AuditRecord]{
		{name: "time", title: "Time", given: true, number: func(l *v1.AuditRecord) float64 { return seconds(l.Time) }},
		{name: "what", title: "Record", text: func(l *v1.AuditRecord) string {
			switch {
			case l.Change != nil:
				return l.Change.Command + " " + l.Change.Kind + " " + l.Change.Name
			case l.Gap != nil:
				return clip.Count(int(l.Gap.Lines), "record") + " missing"
			}
			return l.Namespace + "/" + l.Tool
		}},
		{name: "status", title: "Status", chosen: true, text: func(l *v1.AuditRecord) string { return l.Status }},
		{name: "policy", title: "Policy", text: func(l *v1.AuditRecord) string {
			if l.Policy == nil {
				return ""
			}
			return l.Policy.Decision
		}},
		{name: "principal", title: "Principal", text: func(l *v1.AuditRecord) string { return l.Principal }},
		{name: "details", title: "Details", class: "wide", text: auditDetails},
	})
	c.show(r, http.StatusOK, "audit", "Audit", "audit", p)
	return nil
}

// auditDetails returns who decided on a call and why, and the type of its error.
func auditDetails(l *v1.AuditRecord) string {
	var parts []string
	if a := l.Approval; a != nil {
		parts = append(parts, strings.TrimSuffix(fmt.Sprintf("%s by %s: %s", a.Decision, a.By, a.Reason), ": "))
	}
	if l.ErrorType != "" {
		parts = append(parts, l.ErrorType)
	}
	return strings.Join(parts, "; ")
}

func (c *Console) servers(r *request) error {
	c.show(r, http.StatusOK, "servers", "MCP servers", "servers", listOf(r.Request, "", c.viewServers(r), []column[serverView]{
		{name: "name", title: "Name", given: true, text: func(s *serverView) string { return s.Key.Namespace + "/" + s.Key.Name }},
		{name: "state", title: "State", chosen: true, choices: []string{stateReady, stateNotReady}, text: func(s *serverView) string {
			if s.Ready {
				return stateReady
			}
			return stateNotReady
		}},
		{name: "reason", title: "Server", class: "wide", text: func(s *serverView) string { return s.ServerName }},
		{name: "transport", title: "Transport", text: func(s *serverView) string { return s.Transport }},
		{name: "protocol", title: "MCP version", text: func(s *serverView) string { return s.ProtocolVersion }},
		{name: "tools", title: "Tools", class: "num", number: func(s *serverView) float64 { return float64(len(s.Tools)) }},
		{name: "seen", title: "Last seen", number: func(s *serverView) float64 { return seconds(s.LastSeen) }},
	}))
	return nil
}
