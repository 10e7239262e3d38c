package console

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/pkg/admission"
)

// openAPI serves the OpenAPI document of the JSON API.
func (c *Console) openAPI(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(c.files["openapi.json"]) // the client is gone
}

// apiRoute is an endpoint of the API.
type apiRoute struct {
	pattern string
	answer  func(*request) (any, error)
}

// apiTable returns the endpoints of the API.
func (c *Console) apiTable() []apiRoute {
	return []apiRoute{
		{"GET /api/tools", c.apiTools},
		{"GET /api/tools/{namespace}/{name}", c.apiTool},
		{"POST /api/tools/{namespace}/{name}/call", c.apiCall},
		{"POST /api/tools/{namespace}/{name}/plan", c.apiPlan},
		{"POST /api/tools/{namespace}/{name}/explain", c.apiExplain},
		{"GET /api/toolsets", c.apiToolsets},
		{"GET /api/approvals", c.apiApprovals},
		{"GET /api/approvals/{id}", c.apiApproval},
		{"POST /api/approvals/{id}", c.apiDecide},
		{"GET /api/calls", c.apiCalls},
		{"GET /api/calls/{call}", c.apiOneCall},
		{"GET /api/servers", func(r *request) (any, error) { return items(c.viewServers(r)), nil }},
		{"GET /api/prompts", c.apiPrompts},
		{"POST /api/prompts/{namespace}/{owner}", c.apiRender},
		{"POST /api/prompts/{namespace}/{owner}/{name}", c.apiRender},
		{"GET /api/tests", c.apiTests},
		{"GET /api/changes", c.apiChanges},
		{"GET /api/changes/pending", c.apiPending},
		{"GET /api/changes/revision", c.apiRevision},
		{"POST /api/changes/undo", c.apiUndo},
		{"POST /api/audit/verify", func(r *request) (any, error) { return c.verifyAudit(r.Context()) }},
		{"/api/", func(*request) (any, error) { return nil, errNoPage }},
	}
}

// answerAPI handles a request to the API.
func (c *Console) answerAPI(r *request, h func(*request) (any, error)) {
	w := r.out
	v, err := h(r)
	if err != nil {
		status, text := explained(err)
		problem := v1.NewResultError(err)
		problem.Message = text
		if status == http.StatusServiceUnavailable {
			problem.Type = refusedTypes[status]
			w.Header().Set("Retry-After", "1")
		}
		writeAPI(w, status, apiProblem{problem})
		return
	}
	if a, ok := v.(answer); ok {
		writeAPI(w, a.status, a.body)
		return
	}
	writeAPI(w, http.StatusOK, v)
}

// apiProblem is the body of an error response of the API.
type apiProblem struct {
	Error *v1.ResultError `json:"error"`
}

func writeAPI(w http.ResponseWriter, status int, v any) {
	raw, err := jsontext.Marshal(v)
	if err != nil {
		status, raw = http.StatusInternalServerError, []byte(`{"error":{"type":"internal","message":"the response cannot be written"}}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(append(raw, '\n')) // the client is gone
}

// list is the body of an API response with several items.
type list struct {
	Items any `json:"items"`
	Total int `json:"total"`
}

func items[T any](all []T) list {
	if all == nil {
		all = []T{}
	}
	return list{all, len(all)}
}

func (c *Console) apiTools(r *request) (any, error) {
	found := listTools(r, r.view.Tools())
	out := items(found.Tools)
	out.Total = found.Total
	return out, nil
}

func (c *Console) apiTool(r *request) (any, error) {
	it, err := c.find(r)
	if err != nil {
		return nil, err
	}
	shown, err := c.viewTool(r, it.Tool())
	if err != nil {
		return nil, err
	}
	return toolAnswer{rowOf(r.view, it), shown, it.Reasons, c.originOf(r, it)}, nil
}

// toolAnswer is the API response for a tool.
type toolAnswer struct {
	toolRow
	Tool    *v1.Tool       `json:"tool"`
	Reasons []v1.Violation `json:"reasons,omitempty"`
	Origin  originView     `json:"origin"`
}

// body reads the JSON body of a request.
func (r *request) body(v any) error {
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	if r.Header.Get("Content-Type") != "" && r.Header.Get("Content-Type") != "application/json" {
		return pageError{http.StatusUnsupportedMediaType, "the body must be application/json"}
	}
	if len(raw) == 0 {
		return nil
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return pageError{http.StatusBadRequest, "the body is not valid JSON: " + err.Error()}
	}
	return nil
}

// callOf reads a call from a request.
func (c *Console) callOf(r *request) (v1.Call, error) {
	it, err := c.find(r)
	if err != nil {
		return v1.Call{}, err
	}
	var in struct {
		Args     json.RawMessage `json:"args"`
		Session  string          `json:"session"`
		Approval string          `json:"approval"`
	}
	if err := r.body(&in); err != nil {
		return v1.Call{}, err
	}
	if in.Session == "" {
		in.Session = r.id
	}
	return v1.Call{Tool: it.FullName, Args: in.Args, Session: in.Session, Approval: in.Approval}, nil
}

// apiCall makes a call. The result says whether the tool failed; the HTTP status is about the
// request.
func (c *Console) apiCall(r *request) (any, error) {
	call, err := c.callOf(r)
	if err != nil {
		return nil, err
	}
	res, err := r.view.Call(r.Context(), call)
	if refused := (*admission.RefusedError)(nil); errors.As(err, &refused) {
		return nil, err
	}
	var invalid *v1.ValidationError
	status := http.StatusOK
	if err != nil {
		if status, _ = explained(err); status == http.StatusInternalServerError || errors.As(err, &invalid) && invalid.Type != v1.ArgsInvalid {
			status = http.StatusOK // the tool failed, not the request
		}
	}
	res.Effects = c.viewEffects(r, res.Effects)
	return answer{status, res}, nil
}

// answer is a response with a status other than 200.
type answer struct {
	status int
	body   any
}

func (c *Console) apiPlan(r *request) (any, error) {
	call, err := c.callOf(r)
	if err != nil {
		return nil, err
	}
	p, err := r.view.Plan(r.Context(), call)
	if err != nil {
		return nil, err
	}
	return c.viewPlan(r, p), nil
}

func (c *Console) apiExplain(r *request) (any, error) {
	call, err := c.callOf(r)
	if err != nil {
		return nil, err
	}
	return c.explain(r, call)
}

func (c *Console) apiApprovals(r *request) (any, error) {
	all, past, err := c.visible(r)
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	if q.Get("state") != v1.ApprovalPending {
		all = append(all, past...)
	}
	limit, err := strconv.Atoi(q.Get("limit"))
	if err != nil || limit < 1 || limit > v1.MaxPendingCalls {
		limit = maxApprovals
	}
	offset, _ := strconv.Atoi(q.Get("offset"))
	offset = min(max(0, offset), len(all))
	out := items(all[offset:min(len(all), offset+limit)])
	out.Total = len(all)
	return out, nil
}

func (c *Console) apiApproval(r *request) (any, error) {
	p, err := c.pending(r)
	if err != nil {
		return nil, err
	}
	return c.viewOf(p, r.person), nil
}

func (c *Console) apiDecide(r *request) (any, error) {
	var in struct {
		Approve *bool           `json:"approve"`
		Reason  string          `json:"reason"`
		Args    json.RawMessage `json:"args"`
	}
	if err := r.body(&in); err != nil {
		return nil, err
	}
	p, err := c.pending(r)
	if err != nil {
		return nil, err
	}
	if in.Approve == nil {
		return nil, pageError{http.StatusBadRequest, "approve must be true or false"}
	}
	d := v1.Decision{Approved: *in.Approve, Reason: in.Reason}
	if d.Approved {
		d.Args = in.Args
	}
	if p, err = c.decideAs(r, p, d); err != nil {
		return nil, err
	}
	return c.viewOf(p, r.person), nil
}

func (c *Console) apiCalls(r *request) (any, error) {
	f, sees := readCallFilter(r.Request), c.seeing(r)
	most, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil || most < 1 || most > maxEvents {
		most = maxRows
	}
	found, all := c.feed.last(most, func(e *event) bool { return f.fits(e) && sees(e) })
	out := items(c.viewCalls(r, found))
	out.Total = all
	return out, nil
}

func (c *Console) apiOneCall(r *request) (any, error) {
	id, sees := r.PathValue("call"), c.seeing(r)
	found, _ := c.feed.last(1, func(e *event) bool { return e.CallID == id && sees(e) })
	if len(found) == 0 {
		return nil, pageError{http.StatusNotFound, "this call is not among the most recent calls"}
	}
	return c.viewCall(r, &found[0]), nil
}
