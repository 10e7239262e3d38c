package executors

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const maxRedirects = 10

// redirectError says that a redirect is refused.
type redirectError struct{ message string }

func (e *redirectError) Error() string { return e.message }

// harmless are the headers that are sent to another host. It is a list of allowed headers, since a
// manifest can put credentials into any header.
var harmless = []string{"Accept", "Accept-Language", "Content-Type", "User-Agent"}

// checkRedirect is the CheckRedirect of the tool's [http.Client]: next is about to be sent.
func (p *httpTool) checkRedirect(next *http.Request, via []*http.Request) error {
	first, last := via[0].URL, via[len(via)-1].URL
	// net/http would send the whole URL to the next host, including secrets in its query.
	next.Header.Del("Referer")
	next.URL.User = nil
	switch {
	case len(via) > maxRedirects:
		return &redirectError{fmt.Sprintf("stopped after %d redirects", maxRedirects)}
	case next.URL.Scheme != "http" && next.URL.Scheme != "https":
		return &redirectError{fmt.Sprintf("a redirect to the scheme %s is refused", quoted(next.URL.Scheme))}
	case last.Scheme == "https" && next.URL.Scheme == "http":
		return &redirectError{fmt.Sprintf("a redirect from https to http://%s is refused", next.URL.Host)}
	case !sameHost(first, next.URL) && !p.mayRedirect(next.URL):
		return &redirectError{fmt.Sprintf("a redirect to another host, %s, is refused: list it in spec.http.allow_redirect_hosts", next.URL.Host)}
	}
	foreign := !sameHost(first, next.URL) ||
		slices.ContainsFunc(via, func(r *http.Request) bool { return !sameHost(first, r.URL) })
	if !foreign {
		return nil
	}
	if next.Body != nil && next.Body != http.NoBody && slices.ContainsFunc(p.staticBody, func(f httpField) bool { return f.text.variables() }) {
		return &redirectError{fmt.Sprintf("a redirect of the body to another host, %s, is refused: spec.http.request.static_body contains a variable", next.URL.Host)}
	}
	for name := range next.Header {
		if !slices.Contains(harmless, name) {
			delete(next.Header, name)
		}
	}
	next.Host = ""
	return nil
}

// sameHost reports whether two URLs have the same host and port. The default ports of http and
// https count as the same, so that a redirect to https does not change the host.
func sameHost(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	return port(a) == port(b) || isDefaultPort(a) && isDefaultPort(b)
}

func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

func isDefaultPort(u *url.URL) bool {
	return u.Scheme == "https" && port(u) == "443" || u.Scheme == "http" && port(u) == "80"
}

// mayRedirect reports whether the manifest lists the host: "host" with every port, or "host:port".
func (p *httpTool) mayRedirect(u *url.URL) bool {
	return slices.ContainsFunc(p.redirects, func(host string) bool {
		return strings.EqualFold(host, u.Hostname()) || strings.EqualFold(host, u.Host) || strings.EqualFold(host, u.Hostname()+":"+port(u))
	})
}
