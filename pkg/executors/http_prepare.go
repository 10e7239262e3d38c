package executors

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/template"
)

// httpTool is a prepared tool: everything that does not depend on a call. It must not
// point to the tool, or the cache would keep the tool alive.
type httpTool struct {
	spec       *v1.HTTPSpec
	violations []v1.Violation

	method string
	vars   []envVar

	base    envText        // the URL before its path
	shown   string         // the URL for effects: as in the manifest, without user and query
	rest    envText        // path and query without a template
	restTpl *template.Text // path and query with a template; may be nil
	used    map[string]bool
	inPath  []string // arguments that the path requires, with omit_empty

	headers     []httpField // later headers replace earlier ones
	staticQuery []httpField
	staticBody  []httpField // the texts are JSON
	bodyMapping *mapping
	hasBody     bool // the remaining arguments are the body
	passes      bool // the arguments are the body, unchanged
	bodiless    bool // there is no body unless arguments remain

	resultMapping *mapping
	maxBytes      int64
	redact        []string
	accepts       []string // media types that become parts
	pages         *pages   // nil for a tool without spec.http.paginate
	rate          *rate    // nil for a tool without spec.http.rate_limit
	auth          httpAuth

	timeout   time.Duration // timeout of an attempt; 0 means no timeout
	attempts  int
	delay     time.Duration
	maxDelay  time.Duration
	retryOn   []int
	repeats   bool // a request may be repeated even if it may have had an effect
	client    atomic.Pointer[http.Client]
	redirects []string
	uses      []use // fields that use arguments
}

// httpField is a header, a parameter of the query or a member of the body.
type httpField struct {
	name, path string
	text       envText
	tpl        *template.Text // for a header: the template of the text
}

// Defaults of spec.http.
const (
	defaultMaxBytes = 10 << 20
	defaultAttempts = 3
	defaultDelay    = 200 * time.Millisecond
	defaultMaxDelay = 5 * time.Second
)

var defaultRetryOn = []int{429, 500, 502, 503, 504}

// prepared returns the prepared tool, which is cached as long as the tool lives.
func (h *HTTP) prepared(t *v1.Tool) *httpTool {
	prepare := func() *httpTool {
		p := prepareHTTP(t, h.env)
		p.rate = h.rateOf(t)
		return p
	}
	if p := h.tools.of(t, prepare); p.spec == t.Spec.HTTP {
		return p
	}
	return prepare() // the tool has changed
}

func (p *httpTool) violation(path, expected, got, msg string) {
	p.violations = append(p.violations, v1.Violation{Path: path, Expected: expected, Got: got, Message: msg})
}

func prepareHTTP(t *v1.Tool, env envref.Env) *httpTool {
	s := t.Spec.HTTP
	if s == nil {
		return &httpTool{violations: []v1.Violation{{Path: "/spec/http", Expected: "an object", Got: "nothing", Message: "mode live needs spec.http"}}}
	}
	p := &httpTool{
		spec: s, method: cmp.Or(s.Method, http.MethodPost), used: map[string]bool{},
		redact:    t.RedactRules(),
		timeout:   milliseconds(s.TimeoutMS),
		redirects: s.AllowRedirectHosts,
	}
	p.repeats = slices.Contains([]string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS"}, p.method) || t.Spec.Hints.Retryable()
	p.prepareURL(s.URL)
	req := s.Request
	if req == nil {
		req = &v1.HTTPRequest{}
	}
	for _, name := range slices.Sorted(maps.Keys(req.HeaderParams)) {
		p.headerTemplate(v1.Pointer("/spec/http/request/header_params", name), name, req.HeaderParams[name])
	}
	p.markedHeaders("/spec/http/headers", s.Headers)
	p.prepareBody(req)
	p.bodiless = p.hasBody && len(p.staticBody) == 0 && req.BodyMapping == "" && allUsed(t.Spec.InputSchema, p.used)
	p.checkReadable(s.HeadersFromEnv)
	p.markedHeaders("/spec/http/request/static_headers", req.StaticHeaders)
	p.prepareAuth(s)
	p.prepareRetry(s.Retry)
	p.prepareResponse(s)
	p.preparePages(s.Paginate)
	for _, v := range p.vars {
		if bad, is := env.Violation(v.path, v.Name); is {
			p.violations = append(p.violations, bad)
		}
	}
	for i := range p.violations {
		p.violations[i].Source = t.Field(p.violations[i].Path)
	}
	return p
}

// prepareURL splits the URL where its path or query starts. Arguments may appear only after that place, so that no
// argument can change the target host of a request.
func (p *httpTool) prepareURL(raw string) {
	const path = "/spec/http/url"
	s := p.text(path, raw, true)
	if s == "" {
		return
	}
	p.base, p.rest = s.cut("/?#")
	if after, ok := strings.CutPrefix(string(p.rest), "//"); ok { // the slashes after the scheme
		host, rest := envText(after).cut("/?#")
		p.base, p.rest = p.base+"//"+host, rest
	}
	shown, _, _ := strings.Cut(raw, "?")
	p.shown = hideUser(shown)
	if strings.Contains(string(p.base), "{{") {
		p.violation(path, "arguments in the path and query only", quoted(raw),
			"arguments may appear only in the path and query of the URL, not in its scheme, user, host or port")
		return
	}
	// The address itself is not secret; a password in it is masked separately. Its variables
	// are the first ones, since the URL is read first.
	for i := range strings.Count(string(p.base), mark) / 2 {
		p.vars[i].secret = false
	}
	if !p.base.variables() {
		if u, err := url.Parse(p.base.plain()); err != nil || u.Host == "" {
			p.violation(path, "an http or https URL", quoted(raw), fmt.Sprintf("%s is not an http or https URL with a host", quoted(raw)))
		}
	}
	inPath, _ := p.rest.cut("?")
	before := inPath.fill(make([]string, len(p.vars)), func(_, _ string) string { return "x" })
	for segment := range strings.SplitSeq(before, "/") {
		if segment == "." || segment == ".." {
			p.violation(path, "a path without . and ..", quoted(raw), `the path of the URL must not contain the segments "." and ".."`)
		}
	}
	if strings.Contains(string(p.rest), "{{") {
		p.restTpl = p.template(path, "spec.http.url", p.rest, escapeURL)
		if p.spec.OmitEmpty && p.restTpl != nil {
			if before, err := template.ParseText("spec.http.url", string(inPath), template.Options{}); err == nil {
				p.inPath = before.Needed()
			} else {
				p.inPath = p.restTpl.Needed() // an action spans the path and the query
			}
			p.uses[len(p.uses)-1].needed = p.inPath
		}
	} else {
		p.rest, _ = p.rest.cut("#") // a fragment is never sent
	}
}

func (p *httpTool) template(path, name string, src envText, escape func([]byte, string) (string, error)) *template.Text {
	if p.spec.OmitEmpty {
		escape = marking(escape)
	}
	tpl, err := template.ParseText(name, string(src), template.Options{Escape: escape})
	if err != nil {
		p.violation(path, "a Go template", "a template that cannot be read", strings.TrimPrefix(err.Error(), name+": "))
		return nil
	}
	for _, f := range tpl.Fields() {
		p.used[f] = true
	}
	p.uses = append(p.uses, useOf(path, tpl))
	return tpl
}

func (p *httpTool) headerTemplate(path, name, src string) {
	text := p.text(path, src, true)
	if !strings.Contains(string(text), "{{") {
		p.header(path, name, text, nil)
		return
	}
	if tpl := p.template(path, v1.FieldPath(path), text, headerValue); tpl != nil {
		if p.spec.OmitEmpty {
			p.uses[len(p.uses)-1].needed = nil
		}
		p.header(path, name, "", tpl)
	}
}

func (p *httpTool) markedHeaders(path string, headers map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		at := v1.Pointer(path, name)
		p.header(at, name, p.text(at, headers[name], true), nil)
	}
}

func (p *httpTool) header(path, name string, text envText, tpl *template.Text) {
	canonical := http.CanonicalHeaderKey(name)
	switch {
	case !isToken(name):
		p.violation(path, "a header name", quoted(name), fmt.Sprintf("%s is not a header name (RFC 9110, section 5.1)", quoted(name)))
	case v1.IsTransportHeader(name):
		p.violation(path, "another header", quoted(name), fmt.Sprintf("the header %q is set by toolctl itself", canonical))
	case !isHeaderValue(text.plain()):
		p.violation(path, "one line of text", "control characters", "a header value cannot contain a line break or another control character")
	}
	p.headers = append(p.headers, httpField{name: canonical, path: path, text: text, tpl: tpl})
}

func (p *httpTool) prepareBody(req *v1.HTTPRequest) {
	const at = "/spec/http/request"
	for _, name := range slices.Sorted(maps.Keys(req.StaticQuery)) {
		path := v1.Pointer(at+"/static_query", name)
		p.staticQuery = append(p.staticQuery, httpField{name: name, path: path, text: p.text(path, req.StaticQuery[name], true)})
	}
	for _, name := range slices.Sorted(maps.Keys(req.StaticBody)) {
		path := v1.Pointer(at+"/static_body", name)
		text := jsonEnvText(req.StaticBody[name], func(s string) envText { return p.text(path, s, true) })
		p.staticBody = append(p.staticBody, httpField{name: name, path: path, text: text})
	}
	for _, name := range req.QueryParams {
		if slices.Contains(req.Exclude, name) {
			p.violation(at+"/exclude", "another argument", quoted(name), fmt.Sprintf("the argument %q cannot be both in query_params and in exclude", name))
		}
		p.used[name] = true
		p.uses = append(p.uses, use{path: at + "/query_params", fields: []string{name}})
	}
	for _, name := range slices.Sorted(maps.Keys(req.QueryStyles)) {
		p.uses = append(p.uses, use{path: v1.Pointer(at+"/query_styles", name), fields: []string{name}})
	}
	for _, name := range req.Exclude {
		p.used[name] = true
		p.uses = append(p.uses, use{path: at + "/exclude", fields: []string{name}})
	}
	if req.BodyMapping != "" {
		var err error
		if p.bodyMapping, err = compileMapping("spec.http.request.body_mapping", req.BodyMapping); err != nil {
			p.violation(at+"/body_mapping", "a JMESPath expression", quoted(req.BodyMapping), err.Error())
		} else {
			reads, bare := p.bodyMapping.path.Members()
			if p.spec.OmitEmpty {
				bare = nil
			}
			p.uses = append(p.uses, use{path: at + "/body_mapping", fields: reads, needed: bare, null: true})
		}
	}
	own := req.BodyMapping != "" || len(req.StaticBody) > 0
	switch p.method {
	case http.MethodGet, http.MethodHead:
		if own {
			p.violation(at, "no body", "body_mapping or static_body", fmt.Sprintf("a %s request has no body: body_mapping and static_body need another method (spec.http.method)", p.method))
		}
	case http.MethodDelete:
		p.hasBody = req.BodyMapping != ""
	default:
		p.hasBody = true
		p.passes = !own && len(p.used) == 0
	}
}

func (p *httpTool) prepareRetry(r *v1.HTTPRetry) {
	if r == nil {
		r = &v1.HTTPRetry{}
	}
	p.attempts = cmp.Or(r.MaxAttempts, defaultAttempts)
	p.delay = cmp.Or(milliseconds(r.InitialDelayMS), defaultDelay)
	p.maxDelay = cmp.Or(milliseconds(r.MaxDelayMS), defaultMaxDelay)
	p.retryOn = r.RetryOn
	if len(p.retryOn) == 0 {
		p.retryOn = defaultRetryOn
	}
}

func (p *httpTool) prepareResponse(s *v1.HTTPSpec) {
	p.maxBytes = defaultMaxBytes
	if r := s.Response; r != nil {
		p.maxBytes = cmp.Or(r.MaxBytes, defaultMaxBytes)
		if r.BodyMapping != "" {
			var err error
			if p.resultMapping, err = compileMapping("spec.http.response.body_mapping", r.BodyMapping); err != nil {
				p.violation("/spec/http/response/body_mapping", "a JMESPath expression", quoted(r.BodyMapping), err.Error())
			}
		}
	}
	p.accepts = acceptTypes(s.Multimodal)
}

func milliseconds(ms int) time.Duration {
	const most = 100 * 365 * 24 * time.Hour
	return time.Duration(min(int64(ms), int64(most/time.Millisecond))) * time.Millisecond
}

// isToken reports whether s is a token, as header names are (RFC 9110, section 5.6.2).
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// isHeaderValue reports whether s contains no control character except tab (RFC 9110, section 5.5).
func isHeaderValue(s string) bool {
	for _, c := range []byte(s) {
		if c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}

// quoted quotes a text for a message, truncated to a readable length.
func quoted(s string) string {
	return strconv.Quote(clip.Bytes(s, 80))
}
