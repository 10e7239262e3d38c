package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/redact"
)

// HTTPPlan is the request that a call would send. Variables stand in it as ${NAME},
// whether they are set or not, so it can be made and shown where the secrets are not.
// The address of the URL is shown with its variables put in, when they are set.
type HTTPPlan struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the JSON body, with what spec.redact and spec.http.redact name masked.
	Body json.RawMessage `json:"body,omitempty"`
	// Unset lists the variables that are not set and have no default: the call itself
	// would fail and name them.
	Unset []string `json:"unset,omitempty"`

	// The same with marks, for Curl.
	url     string
	headers []httpField
	body    string
	names   []string // of the variables, by the number of their mark
	basic   string   // user:password
	oauth   bool
}

// Plan returns what Execute would send, as an *[HTTPPlan]. It reaches nothing: an OAuth 2
// token is shown as ${OAUTH2_TOKEN}. Its errors are those of Execute, but that a
// variable which is not set is no error.
func (h *HTTP) Plan(ctx context.Context, t *v1.Tool, args json.RawMessage) (any, error) {
	p := h.prepared(t)
	if len(p.violations) > 0 {
		return nil, v1.NewValidationError(v1.ManifestInvalid, t.Metadata.Name, p.violations)
	}
	d, err := p.draft(ctx, t.Metadata.Name, args)
	if err != nil {
		return nil, contextError(ctx, t, err)
	}
	d = p.masked(ctx, t.Metadata.Name, d, args)
	plan := &HTTPPlan{Method: p.method, Headers: map[string]string{}}
	base := p.names(h, plan)
	plan.url = substitute(d.base, base, asIs)
	if plan.url != d.base && d.rest != "" {
		plan.url = strings.TrimSuffix(plan.url, "/")
	}
	plan.url = hideUser(plan.url) + d.rest
	plan.header("Accept", acceptHeader(p.accepts))
	plan.header("User-Agent", "toolctl")
	if d.hasBody {
		plan.header("Content-Type", "application/json")
		plan.body = string(redact.JSON(d.body, p.redact))
		if !p.keepsSecret {
			plan.body = strings.ReplaceAll(plan.body, markOpen, `\ufdd0`)
		}
		plan.Body = json.RawMessage(plan.readable(plan.body))
	}
	for _, f := range d.headers {
		plan.header(f.name, f.text)
	}
	switch {
	case p.auth.user != "":
		plan.basic = p.auth.user + ":" + p.auth.password
		plan.Headers["Authorization"] = "Basic base64(" + plan.readable(plan.basic) + ")"
	case p.auth.oauth != nil:
		plan.oauth = true
		plan.Headers["Authorization"] = "Bearer ${" + oauthVariable + "}"
	}
	plan.URL = plan.readable(plan.url)
	return plan, nil
}

// masked is a draft as it may be shown: made of arguments in which what the rules name is
// masked. Where such arguments cannot be drafted, as a mapping may compute with
// them, their values are looked for in the draft instead.
func (p *httpTool) masked(ctx context.Context, name string, d *draft, args json.RawMessage) *draft {
	safe := redact.JSON(args, p.redact)
	if len(p.redact) == 0 || bytes.Equal(safe, args) {
		return d
	}
	if m, err := p.draft(context.WithoutCancel(ctx), name, safe); err == nil {
		return m
	}
	var s secrets
	s.arguments(args, p.redact)
	m := *d
	m.rest, m.body = s.text(d.rest), s.json(d.body)
	m.headers = slices.Clone(d.headers)
	for i := range m.headers {
		m.headers[i].text = s.text(m.headers[i].text)
	}
	return &m
}

// oauthVariable is what the plan calls a token that only the call itself fetches.
const oauthVariable = "OAUTH2_TOKEN"

// names looks the variables up, fills plan.names and plan.Unset, and returns what is
// put into the address: values where they are known, marks elsewhere.
func (p *httpTool) names(h *HTTP, plan *HTTPPlan) []string {
	address := make([]string, len(p.vars))
	for i, v := range p.vars {
		value, _, ok := v.Value(h.env)
		address[i] = markOpen + strconv.Itoa(i) + markClose
		switch {
		case ok && (value != "" || !v.named):
			address[i] = value
		case !slices.Contains(plan.Unset, v.Name):
			plan.Unset = append(plan.Unset, v.Name)
		}
		plan.names = append(plan.names, v.Name)
	}
	return address
}

func (p *HTTPPlan) header(name, text string) {
	p.headers = slices.DeleteFunc(p.headers, func(f httpField) bool { return f.name == name })
	p.headers = append(p.headers, httpField{name: name, text: text})
	p.Headers[name] = p.readable(text)
}

// hideUser takes the user and password out of an address.
func hideUser(base string) string {
	scheme, rest, ok := strings.Cut(base, "://")
	if !ok {
		return base
	}
	host, path, slash := strings.Cut(rest, "/")
	if i := strings.LastIndexByte(host, '@'); i >= 0 {
		host = "***@" + host[i+1:]
	}
	if slash {
		path = "/" + path
	}
	return scheme + "://" + host + path
}

// readable puts ${NAME} in place of marks.
func (p *HTTPPlan) readable(text string) string {
	refs := make([]string, len(p.names))
	for i, n := range p.names {
		refs[i] = "${" + n + "}"
	}
	return substitute(text, refs, asIs)
}

// shell quotes a text for a POSIX shell, with the variables outside the single quotes
// so that the shell puts their values in.
func (p *HTTPPlan) shell(text string) string {
	refs := make([]string, len(p.names))
	for i, n := range p.names {
		refs[i] = `'"$` + n + `"'`
	}
	return "'" + substitute(strings.ReplaceAll(text, "'", `'\''`), refs, asIs) + "'"
}

// Curl returns the request as a curl command for a POSIX shell, on several lines.
// Variables stand in it as "$NAME", for the shell to fill in.
func (p *HTTPPlan) Curl() string {
	var b bytes.Buffer
	b.WriteString("curl --globoff")
	switch {
	case p.Method == http.MethodHead:
		b.WriteString(" --head")
	case p.Method != http.MethodGet:
		b.WriteString(" --request " + p.Method)
	}
	line := func(option, value string) { fmt.Fprintf(&b, " \\\n  %s %s", option, value) }
	line("--url", p.shell(p.url))
	byName := make(map[string]string, len(p.headers))
	for _, h := range p.headers {
		byName[h.name] = h.text
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		text := name + ": " + byName[name]
		if byName[name] == "" {
			text = name + ";" // how curl sends a header without a value
		}
		line("--header", p.shell(text))
	}
	switch {
	case p.basic != "":
		line("--user", p.shell(p.basic))
	case p.oauth:
		line("--header", `'Authorization: Bearer '"$`+oauthVariable+`"`)
	}
	if p.body != "" {
		line("--data-raw", p.shell(p.body))
	}
	return b.String() + "\n"
}
