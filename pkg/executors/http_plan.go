package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/redact"
)

// HTTPPlan is the request that a call would send. It shows variables as ${NAME}, set or not,
// so it can be made and shown without access to secrets. Only the variables in the address
// of the URL are replaced by their values if they are set.
type HTTPPlan struct {
	Method  string            `json:"method"`
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	// Body is the JSON body, masked by spec.redact and spec.http.redact.
	Body json.RawMessage `json:"body,omitempty"`
	// Unset lists the variables that are neither set nor have a default. The call itself
	// would fail and name them.
	Unset []string `json:"unset,omitempty"`
	// Paginate says how further pages are read.
	Paginate *v1.HTTPPaginate `json:"paginate,omitempty"`
	// RateLimit is the rate limit of the request.
	RateLimit *v1.HTTPRateLimit `json:"rate_limit,omitempty"`

	// These fields have placeholders for variables, for Curl.
	url     envText
	headers []httpField
	body    envText
	names   []string // names of the variables, by number
	basic   envText  // "user:password" of basic authentication
	oauth   bool
}

// Plan returns what Execute would send, as an *[HTTPPlan]. It accesses no network: an OAuth 2
// token is shown as ${OAUTH2_TOKEN}. Its errors are those of Execute, except that unset
// variables are no error.
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
	plan := &HTTPPlan{Method: p.method, Headers: map[string]string{}, Paginate: p.spec.Paginate, RateLimit: p.spec.RateLimit}
	plan.url = p.address(h, plan, d) + d.rest
	plan.header("Accept", envText(acceptHeader(p.accepts)))
	plan.header("User-Agent", "toolctl")
	if d.hasBody {
		plan.header("Content-Type", "application/json")
		plan.Body = redact.JSON(p.bodyOf(d, plan.references()), p.redact)
		plan.body = p.shownBody(d, plan)
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

// masked returns the draft for display, made from redacted arguments. If these cannot be
// drafted, for example because a mapping computes with them, their values are masked in the
// draft instead.
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
	m.rest, m.body, m.members = d.rest.edit(s.text), s.json(d.body), maps.Clone(d.members)
	for name, v := range m.members {
		m.members[name] = s.json(v)
	}
	m.headers = slices.Clone(d.headers)
	for i := range m.headers {
		m.headers[i].text = m.headers[i].text.edit(s.text)
	}
	return &m
}

// oauthVariable is the name in the plan for a token that only the call itself fetches.
const oauthVariable = "OAUTH2_TOKEN"

// address looks up the variables, sets plan.names and plan.Unset, and returns the address
// with the known values.
func (p *httpTool) address(h *HTTP, plan *HTTPPlan, d *draft) envText {
	values := make([]string, len(p.vars))
	for i, v := range p.vars {
		value, _, ok := v.Value(h.env)
		if values[i] = value; !ok || value == "" && v.named {
			values[i] = string(place(i + 1))
			if !slices.Contains(plan.Unset, v.Name) {
				plan.Unset = append(plan.Unset, v.Name)
			}
		}
		plan.names = append(plan.names, v.Name)
	}
	text := d.base.fill(values, asIs)
	if d.base.variables() && d.rest != "" {
		text = strings.TrimSuffix(text, "/")
	}
	return envText(hideUser(text))
}

// shownBody returns the redacted body for Curl. In a member of static_body with something
// redacted, variables are shown only by name.
func (p *httpTool) shownBody(d *draft, plan *HTTPPlan) envText {
	var shown, whole map[string]json.RawMessage
	if len(p.staticBody) == 0 || json.Unmarshal(plan.Body, &shown) != nil || json.Unmarshal(p.bodyOf(d, plan.references()), &whole) != nil {
		return envText(plan.Body)
	}
	own := make(map[string]envText, len(p.staticBody))
	for _, f := range p.staticBody {
		if bytes.Equal(shown[f.name], whole[f.name]) {
			own[f.name] = f.text
		}
	}
	var members []string
	for _, name := range slices.Sorted(maps.Keys(shown)) {
		text, ok := own[name]
		if !ok {
			text = envText(shown[name])
		}
		members = append(members, string(jsontext.Quote(name))+":"+string(text))
	}
	return envText("{" + strings.Join(members, ",") + "}")
}

func (p *HTTPPlan) header(name string, text envText) {
	p.headers = slices.DeleteFunc(p.headers, func(f httpField) bool { return f.name == name })
	p.headers = append(p.headers, httpField{name: name, text: text})
	p.Headers[name] = p.readable(text)
}

// hideUser masks the user and password in an address.
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

// readable replaces placeholders by ${NAME}.
func (p *HTTPPlan) readable(text envText) string { return text.fill(p.references(), asIs) }

// references returns the variables as ${NAME}.
func (p *HTTPPlan) references() []string {
	refs := make([]string, len(p.names))
	for i, n := range p.names {
		refs[i] = "${" + n + "}"
	}
	return refs
}

// shell quotes a text for a POSIX shell, with the variables outside of the single quotes
// so that the shell expands them.
func (p *HTTPPlan) shell(text envText) string {
	refs := make([]string, len(p.names))
	for i, n := range p.names {
		refs[i] = `'"$` + n + `"'`
	}
	quoted := text.edit(func(s string) string { return strings.ReplaceAll(s, "'", `'\''`) })
	return "'" + quoted.fill(refs, asIs) + "'"
}

// Curl returns the request as a curl command of several lines for a POSIX shell, which
// expands the variables.
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
	byName := make(map[string]envText, len(p.headers))
	for _, h := range p.headers {
		byName[h.name] = h.text
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		text := envText(name) + ": " + byName[name]
		if byName[name] == "" {
			text = envText(name + ";") // curl sends a header without a value if the name ends in ";"
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
