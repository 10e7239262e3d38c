package openapi

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"path"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	"toolctl.dev/toolctl/internal/netaddr"
)

// errNoServer is wrapped in the error of [Document.Import] if no server is known.
var errNoServer = errors.New("the document names no server with an absolute URL: name one with --server https://host/base")

// serverURL returns the base URL of the first server, with variables replaced by their defaults (OpenAPI 3.1.1,
// sections 4.8.5 and 4.8.6). A relative URL is resolved against base, the address of the document, which is "" for a
// file.
func serverURL(servers openapi3.Servers, base string) (string, error) {
	raw := "/" // the default server (OpenAPI 3.1.1, section 4.8.1)
	if len(servers) > 0 && servers[0] != nil {
		raw = servers[0].URL
		for name, v := range servers[0].Variables {
			if v == nil || v.Default == "" && strings.Contains(raw, "{"+name+"}") {
				return "", fmt.Errorf("server %q: the variable %q has no default: name the server with --server", raw, name)
			}
			raw = strings.ReplaceAll(raw, "{"+name+"}", v.Default)
		}
	}
	u, err := url.Parse(strings.TrimSpace(raw))
	if err != nil {
		return "", fmt.Errorf("server %q: not a URL: name the server with --server", raw)
	}
	if !u.IsAbs() && base != "" {
		b, err := url.Parse(base)
		if err != nil {
			return "", err
		}
		u = b.ResolveReference(u)
	}
	if !u.IsAbs() {
		return "", errNoServer
	}
	return checkServer(u)
}

// checkServer returns the URL as text, without a trailing slash.
func checkServer(u *url.URL) (string, error) {
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("server %q: expected an http or https URL", u.Redacted())
	case u.User != nil:
		return "", fmt.Errorf("server %q: a URL must not contain a user name or password: use an environment variable", u.Redacted())
	case strings.ContainsAny(u.Host, "${}<> \"'\\^`|"):
		return "", fmt.Errorf("server %q: %q is not a host name", u.Redacted(), u.Host)
	}
	u.Fragment, u.RawQuery = "", ""
	u.Path, u.RawPath = path.Clean("/"+u.Path), "" // a manifest must not contain . and .. segments
	if u.Path == "/" {
		u.Path = ""
	}
	return strings.TrimSuffix(u.Scheme+"://"+u.Host+literal(u.EscapedPath()), "/"), nil
}

// isPrivate reports whether the host of a URL is an address to which calls are refused, as far as this is known
// without DNS.
func isPrivate(host string) bool {
	name := (&url.URL{Host: host}).Hostname()
	addr, err := netip.ParseAddr(name)
	return netaddr.IsLoopbackHost(name) || err == nil && netaddr.Check(addr) != nil
}

// literal escapes text from the document that becomes part of a URL template, so that it can contain neither an
// action {{…}} nor a variable ${…}: a document must not choose what is read from the environment.
func literal(s string) string {
	const hex = "0123456789ABCDEF"
	const plain = "-._~!&'()*+,;=:@/%?$"
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		// Braces are always escaped; a parameter may follow a "$" at the end.
		brace := c == '$' && i+1 == len(s)
		stray := c == '%' && !isEscape(s[i:])
		if !brace && !stray && (letter || strings.IndexByte(plain, c) >= 0) {
			b.WriteByte(c)
			continue
		}
		b.WriteByte('%')
		b.WriteByte(hex[c>>4])
		b.WriteByte(hex[c&15])
	}
	return b.String()
}

func isEscape(s string) bool {
	_, err := url.PathUnescape(s[:min(len(s), 3)])
	return err == nil
}

// A segment is a piece of a path template: literal text or a parameter.
type segment struct {
	text  string
	param bool
}

// pathSegments splits /pets/{petId}/photo into literal text and parameters.
func pathSegments(path string) []segment {
	var out []segment
	for path != "" {
		open := strings.IndexByte(path, '{')
		if open < 0 {
			return append(out, segment{text: path})
		}
		length := strings.IndexByte(path[open:], '}')
		inner := ""
		if length > 0 {
			inner = path[open+1 : open+length]
		}
		if inner == "" || strings.ContainsAny(inner, "{/") {
			out = append(out, segment{text: path[:open+1]})
			path = path[open+1:]
			continue
		}
		if open > 0 {
			out = append(out, segment{text: path[:open]})
		}
		out = append(out, segment{text: inner, param: true})
		path = path[open+length+1:]
	}
	return out
}
