package mcp

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/netaddr"
)

// mayDialPrivate reports whether the server's URL may lead to a private address.
func mayDialPrivate(spec *v1.MCPServerSpec, to *url.URL, all bool) bool {
	if spec.AllowPrivateNetwork != nil {
		return *spec.AllowPrivateNetwork || all
	}
	return all || netaddr.IsLoopbackHost(to.Hostname())
}

// endpoint returns the URL, and the headers for every request.
func (r *resolver) endpoint() (*url.URL, http.Header) {
	s := &r.server.Spec
	to, err := url.Parse(r.expand("/spec/url", s.URL))
	if len(r.violations) == 0 && (err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https") {
		r.violation("/spec/url", "an http or https URL", "another", "after its variables are expanded, the url is not an http or https URL")
	}
	if to != nil {
		r.hideWithin(to)
	}
	head := http.Header{}
	for k, v := range s.Headers {
		path := v1.Pointer("/spec/headers", k)
		v = r.expand(path, v)
		if !validHeader(k, v) {
			r.violation(path, "a header", "another", fmt.Sprintf("%q and its value are not a legal HTTP header", k))
			continue
		}
		head.Set(k, v)
	}
	if a := s.Auth; a != nil {
		switch {
		case a.BearerEnv != "":
			head.Set("Authorization", "Bearer "+r.variable("/spec/auth/bearer_env", a.BearerEnv))
		case a.Basic != nil:
			req := http.Request{Header: head}
			req.SetBasicAuth(r.variable("/spec/auth/basic/username_env", a.Basic.UsernameEnv), r.variable("/spec/auth/basic/password_env", a.Basic.PasswordEnv))
			r.secret(strings.TrimPrefix(head.Get("Authorization"), "Basic "))
		}
	}
	return to, head
}

// hideWithin hides the values in the query of a URL and its user information, because people write keys
// there without ${VAR}. Errors of net/http quote the URL.
func (r *resolver) hideWithin(to *url.URL) {
	for pair := range strings.SplitSeq(to.RawQuery, "&") {
		_, value, _ := strings.Cut(pair, "=")
		r.secret(value)
	}
	for _, values := range to.Query() {
		for _, v := range values {
			r.secret(v)
		}
	}
	if password, ok := to.User.Password(); ok {
		r.secret(password)
	}
}

func validHeader(name, value string) bool {
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return name != "" && !strings.ContainsAny(value, "\r\n\x00")
}
