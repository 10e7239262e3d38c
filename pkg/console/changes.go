package console

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/action"
	"toolctl.dev/toolctl/pkg/diff"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/source"
	"toolctl.dev/toolctl/pkg/store"
)

// operates reports whether a person is an operator, who sees everything and may undo changes: the person at this
// machine, and those that Options.Operators names.
func (c *Console) operates(p person) bool {
	if p.principal == "" {
		return true
	}
	o := &c.opts.Operators
	return slices.ContainsFunc(o.Principals, func(pattern string) bool { return v1.MatchPattern(pattern, p.principal) }) ||
		slices.ContainsFunc(o.Groups, func(g string) bool { return slices.Contains(p.groups, g) })
}

var errNotOperator = pageError{http.StatusForbidden, "Only console operators can view the details of a change or undo it: name operators with --ui-operator and --ui-operator-group."}

// changing reports whether the page of changes has something to show.
func (c *Console) changing() bool { return c.gateway.Store() != nil || c.gateway.Pulled() != nil }

// setView is a set of the store with its revisions, the newest first.
type setView struct {
	Name      string         `json:"name"`
	Set       string         `json:"set"`
	Revisions []revisionView `json:"revisions"`
}

// revisionView is a revision without the names of its objects.
type revisionView struct {
	Number  int64          `json:"revision"`
	Time    time.Time      `json:"time"`
	By      string         `json:"by,omitempty"`
	Command string         `json:"command"`
	Source  string         `json:"source,omitempty"`
	Commit  string         `json:"commit,omitempty"`
	UndoOf  int64          `json:"undo_of,omitempty"`
	Objects int            `json:"objects"`
	Changed map[string]int `json:"changed,omitempty"`
	Href    string         `json:"-"` // address of its page
	Back    string         `json:"-"` // address of the page to undo to it
}

// viewRevision shows only operators who applied a revision, and from which source.
func viewRevision(r *store.Revision, operates bool) revisionView {
	v := revisionView{Number: r.Number, Time: r.Time, Command: r.Command, Commit: r.Commit, UndoOf: r.UndoOf, Objects: r.Objects, Changed: map[string]int{}}
	if operates {
		v.By, v.Source = r.By, r.Source
	}
	for _, c := range r.Changes {
		v.Changed[string(c.Action)]++
	}
	query := "?" + url.Values{"set": {r.Set}, "revision": {strconv.FormatInt(r.Number, 10)}}.Encode()
	v.Href, v.Back = "changes/revision"+query, "changes/undo"+query
	return v
}

// changesView is the history of the manifests.
type changesView struct {
	Source *source.Status `json:"source,omitempty"`
	Sets   []setView      `json:"sets"`
	// Operator reports whether the person may view change details and undo changes.
	Operator bool `json:"operator"`
}

func (c *Console) viewChanges(r *request) (changesView, error) {
	v := changesView{Source: c.gateway.Pulled(), Sets: []setView{}, Operator: c.operates(r.person)}
	all, err := c.allRevisions(r)
	for i := range all {
		if n := len(v.Sets); n == 0 || v.Sets[n-1].Set != all[i].Set {
			v.Sets = append(v.Sets, setView{Name: rollout.Name(all[i].Set), Set: all[i].Set})
		}
		s := &v.Sets[len(v.Sets)-1]
		s.Revisions = append(s.Revisions, viewRevision(&all[i], v.Operator))
	}
	for i := range v.Sets {
		slices.Reverse(v.Sets[i].Revisions)
	}
	return v, err
}

func (c *Console) changes(r *request) error {
	v, err := c.viewChanges(r)
	if err != nil {
		return err
	}
	page := changesPage{changesView: v}
	for i, s := range v.Sets {
		columns := []column[revisionView]{
			{name: "revision", title: "Revision", given: true, number: func(r *revisionView) float64 { return float64(r.Number) }},
			{name: "time", title: "Applied", number: func(r *revisionView) float64 { return seconds(r.Time) }},
			{name: "by", title: "By", text: func(r *revisionView) string { return r.By }},
			{name: "commit", title: "Commit", text: func(r *revisionView) string { return r.Commit }},
			{name: "objects", title: "Objects", class: "num", number: func(r *revisionView) float64 { return float64(r.Objects) }},
			{title: "Changed"},
			{name: "command", title: "Command", class: "wide", text: func(r *revisionView) string { return r.Command + " " + r.Source }},
			{title: "Undo", class: "act"},
		}
		if !v.Operator {
			columns = slices.DeleteFunc(columns, func(c column[revisionView]) bool { return c.name == "by" || c.class == "act" })
		}
		page.Lists = append(page.Lists, revisionList{s, listOf(r.Request, "set"+strconv.Itoa(i+1), s.Revisions, columns)})
	}
	c.show(r, http.StatusOK, "changes", "Changes", "changes", page)
	return nil
}

// changesPage shows the history of the manifests, with a list of revisions for each set.
type changesPage struct {
	changesView
	Lists []revisionList
}

type revisionList struct {
	setView
	List listPage[revisionView]
}

// Newest returns the number of the last revision of the set.
func (l revisionList) Newest() int64 { return l.Revisions[0].Number }

// changePage shows the details of a change.
type changePage struct {
	Title      string         `json:"-"`
	Revision   *revisionView  `json:"revision,omitempty"`
	Set        string         `json:"set,omitempty"`
	Commit     string         `json:"commit,omitempty"`
	Violations []v1.Violation `json:"violations,omitempty"`
	Problem    string         `json:"problem,omitempty"`
	Report     *diff.Report   `json:"report,omitempty"`
	Undo       *undoView      `json:"undo,omitempty"`
	Set1       string         `json:"-"` // display name of the set
	Newest     bool           `json:"-"`
}

// undoView is an undo to confirm.
type undoView struct {
	From   int64 `json:"from"`
	To     int64 `json:"to"`
	Needed bool  `json:"needed"`
}

// pendingChange returns the changes of the source that are not served yet.
func (c *Console) pendingChange(r *request) (changePage, error) {
	p := changePage{Title: "Pending changes"}
	if !c.operates(r.person) {
		return p, errNotOperator
	}
	found, err := c.gateway.PendingChanges(r.Context())
	if err != nil {
		return p, err
	}
	p.Commit, p.Violations, p.Problem = found.Revision, found.Violations, found.Problem
	if found.Read == nil {
		return p, nil
	}
	ctx, cancel := comparing(r)
	defer cancel()
	p.Report, err = action.Compare{Before: found.Served, After: found.Read}.Run(ctx)
	return p, err
}

// revision returns the changes of a revision from the one before it.
func (c *Console) revision(r *request) (changePage, error) {
	p := changePage{}
	if !c.operates(r.person) {
		return p, errNotOperator
	}
	set, number, err := setAndRevision(r.URL.Query())
	if err != nil {
		return p, err
	}
	st := c.gateway.Store()
	if st == nil {
		return p, &v1.NotFoundError{Kind: "Set", Name: rollout.Name(set)}
	}
	ctx, cancel := comparing(r)
	defer cancel()
	rev, report, err := action.RevisionReport(ctx, st, set, number)
	if err != nil {
		return p, err
	}
	view := viewRevision(&rev, true)
	p.Set, p.Set1, p.Revision, p.Report = set, rollout.Name(set), &view, report
	p.Title = "Revision " + strconv.FormatInt(number, 10) + " of " + p.Set1
	return p, nil
}

func setAndRevision(q url.Values) (set string, number int64, err error) {
	number, err = strconv.ParseInt(q.Get("revision"), 10, 64)
	if err != nil || number < 1 || q.Get("set") == "" {
		return "", 0, pageError{http.StatusBadRequest, "set and revision must name a revision"}
	}
	return q.Get("set"), number, nil
}

// planUndo returns the changes that an undo would make.
func (c *Console) planUndo(r *request, set string, number int64) (changePage, *rollout.Undo, error) {
	p := changePage{Set: set, Set1: rollout.Name(set), Title: "Undo"}
	if !c.operates(r.person) {
		return p, nil, errNotOperator
	}
	st := c.gateway.Store()
	if st == nil {
		return p, nil, &v1.NotFoundError{Kind: "Set", Name: p.Set1}
	}
	u, report, err := action.PlanUndo(r.Context(), st, set, number, r.name, c.gateway.Options())
	if err != nil {
		return p, nil, err
	}
	p.Report, p.Undo = report, &undoView{From: u.From.Number, To: u.To.Number, Needed: u.Needed()}
	return p, u, nil
}

// comparing limits the time of a comparison.
func comparing(r *request) (context.Context, context.CancelFunc) {
	const limit = 30 * time.Second
	return context.WithTimeoutCause(r.Context(), limit, errors.New("there is too much to compare: use 'toolctl diff'"))
}

// allRevisions returns the kept revisions of all sets, by set, the oldest first; without a store, the list is empty.
func (c *Console) allRevisions(r *request) ([]store.Revision, error) {
	st := c.gateway.Store()
	if st == nil {
		return nil, nil
	}
	return st.Revisions(r.Context(), store.RevisionQuery{})
}

// undo carries out a reviewed undo; from is the revision that was the newest at the time of the review.
func (c *Console) undo(r *request, set string, number, from int64) error {
	p, u, err := c.planUndo(r, set, number)
	switch {
	case err != nil:
		return err
	case p.Undo.From != from:
		return pageError{http.StatusConflict, "The set has a newer revision now: review what the undo changes again."}
	case !p.Undo.Needed:
		return pageError{http.StatusConflict, "The set already matches that revision."}
	}
	_, err = u.Apply(r.Context(), c.gateway.Store())
	return err
}

func (c *Console) changePending(r *request) error { return c.showChange(r)(c.pendingChange(r)) }

func (c *Console) changeRevision(r *request) error { return c.showChange(r)(c.revision(r)) }

func (c *Console) showChange(r *request) func(changePage, error) error {
	return func(p changePage, err error) error {
		if err != nil {
			return err
		}
		c.show(r, http.StatusOK, "change", p.Title, "changes", p)
		return nil
	}
}

func (c *Console) changeUndo(r *request) error {
	if r.Method == http.MethodGet {
		set, number, err := setAndRevision(r.URL.Query())
		if err != nil {
			return err
		}
		p, _, err := c.planUndo(r, set, number)
		return c.showChange(r)(p, err)
	}
	if err := r.form(); err != nil {
		return err
	}
	set, number, err := setAndRevision(r.PostForm)
	if err != nil {
		return err
	}
	from, err := strconv.ParseInt(r.PostForm.Get("from"), 10, 64)
	if err != nil {
		return pageError{http.StatusBadRequest, "from must be the newest revision of the set"}
	}
	if err := c.undo(r, set, number, from); err != nil {
		return err
	}
	c.redirect(r.out, "../changes")
	return nil
}

func (c *Console) apiChanges(r *request) (any, error) { return c.viewChanges(r) }

func (c *Console) apiPending(r *request) (any, error) { return c.pendingChange(r) }

func (c *Console) apiRevision(r *request) (any, error) { return c.revision(r) }

// apiUndo returns the changes of an undo; given from, the newest revision, it carries the undo out.
func (c *Console) apiUndo(r *request) (any, error) {
	var in struct {
		Set      string `json:"set"`
		Revision int64  `json:"revision"`
		From     int64  `json:"from"`
	}
	if err := r.body(&in); err != nil {
		return nil, err
	}
	if in.Set == "" || in.Revision < 1 {
		return nil, pageError{http.StatusBadRequest, "set and revision must name a revision"}
	}
	if in.From == 0 {
		p, _, err := c.planUndo(r, in.Set, in.Revision)
		return p, err
	}
	if err := c.undo(r, in.Set, in.Revision, in.From); err != nil {
		return nil, err
	}
	return c.viewChanges(r)
}
