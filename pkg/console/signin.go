package console

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"strings"
	"time"

	"toolctl.dev/toolctl/pkg/mcp/server"
)

// Link returns the one-time address at which the person at this machine signs in. For a loopback address
// without TLS, the host is a random name: cookies are not bound to ports, so other users' programs that
// listen on the same address would receive the cookie. With Options.URL the host stays as it is. A new link
// invalidates earlier ones.
func (c *Console) Link(at string) string {
	if u, err := url.Parse(at); err == nil && c.opts.URL == "" && u.Scheme == "http" && loopback(u.Hostname()) {
		u.Host = net.JoinHostPort(c.name, cmp.Or(u.Port(), "80"))
		at = u.String()
	}
	return strings.TrimSuffix(at, "/") + "/sign-in?once=" + c.sessions.link()
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// staticFile serves an embedded file.
func (c *Console) staticFile(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("file")
	raw, ok := c.files["static/"+name]
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	kind := map[string]string{".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}[path.Ext(name)]
	w.Header().Set("Content-Type", cmp.Or(kind, "text/plain")+"; charset=utf-8")
	tag := fmt.Sprintf(`"%x"`, sha256.Sum256(raw))
	w.Header().Set("ETag", tag)
	w.Header().Set("Cache-Control", "no-cache")
	if r.Header.Get("If-None-Match") == tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(raw) // the browser is gone
}

// cookieName returns the name of the session cookie. Cookies are not bound to ports, so the name contains the
// port: otherwise two consoles on one machine would sign each other's users out.
func (c *Console) cookieName(r *http.Request) string {
	if c.secure(r) {
		return "__Host-toolctl"
	}
	if at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr); ok {
		return fmt.Sprintf("toolctl-%d", at.Port)
	}
	return "toolctl"
}

// secure reports whether browsers connect over TLS, here or at a proxy.
func (c *Console) secure(r *http.Request) bool {
	return r.TLS != nil || strings.HasPrefix(c.opts.URL, "https://")
}

func (c *Console) setCookie(w http.ResponseWriter, r *http.Request, secret string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: c.cookieName(r), Value: secret, Path: "/", MaxAge: int(age.Seconds()), HttpOnly: true, Secure: c.secure(r), SameSite: http.SameSiteStrictMode,
	})
}

// who returns the person who sends a request, by cookie or bearer token.
func (c *Console) who(r *http.Request) (person, error) {
	if header := r.Header.Get("Authorization"); header != "" {
		scheme, token, _ := strings.Cut(header, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return person{}, &server.AccessError{Status: http.StatusUnauthorized, Message: "expected an Authorization header of the form 'Bearer TOKEN'"}
		}
		caller, err := c.access.Verify(r.Context(), strings.TrimSpace(token))
		if err != nil {
			return person{}, err
		}
		return person{principal: caller.Principal, name: caller.Principal, groups: caller.Groups, id: "console", expires: caller.Expires, onEnd: caller.OnDrop}, nil
	}
	if cookie, err := r.Cookie(c.cookieName(r)); err == nil {
		if p, ok := c.sessions.of(cookie.Value); ok {
			return p, nil
		}
	}
	return person{}, &server.AccessError{Status: http.StatusUnauthorized, Message: "sign in first"}
}

// signInPage redeems a one-time link, or else asks for a token.
func (c *Console) signInPage(w http.ResponseWriter, r *http.Request) {
	once := r.URL.Query().Get("once")
	if once == "" {
		if _, err := c.who(r); err == nil {
			c.redirect(w, "./")
			return
		}
		c.askSignIn(w, r, http.StatusOK, "")
		return
	}
	if !c.sessions.redeem(once) {
		if _, err := c.who(r); err == nil { // the person opened the link again
			c.redirect(w, "./")
			return
		}
		c.askSignIn(w, r, http.StatusForbidden, "This link was used already, or a newer one replaced it. Run 'toolctl ui' on the machine that serves the console to get a new link.")
		return
	}
	c.signedIn(w, r, person{name: c.opts.Login}, server.Caller{})
}

// signIn exchanges a bearer token for a session cookie.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimSpace(posted(r, "token"))
	if token == "" {
		c.askSignIn(w, r, http.StatusBadRequest, "Enter a token.")
		return
	}
	caller, err := c.access.Verify(r.Context(), token)
	if refused, ok := errors.AsType[*server.AccessError](err); ok {
		c.askSignIn(w, r, refused.Status, "The token was not accepted: "+refused.Message+".")
		return
	}
	c.signedIn(w, r, person{principal: caller.Principal, name: caller.Principal, groups: caller.Groups}, caller)
}

func (c *Console) signedIn(w http.ResponseWriter, r *http.Request, p person, token server.Caller) {
	if cookie, err := r.Cookie(c.cookieName(r)); err == nil {
		c.sessions.end(cookie.Value)
	}
	c.setCookie(w, r, c.sessions.begin(p, token), sessionIdle)
	to := "./"
	if next := posted(r, "next"); safeNext(next) {
		to = "./" + next
	}
	c.redirect(w, to)
}

// posted returns a field of a submitted form.
func posted(r *http.Request, name string) string {
	if err := r.ParseForm(); err != nil {
		return ""
	}
	return r.PostForm.Get(name)
}

// safeNext reports whether the page to open next is a relative path below the console.
func safeNext(next string) bool {
	return next != "" && !strings.ContainsAny(next, ":\\\r\n") && !strings.HasPrefix(next, "/") && !strings.Contains(next, "..")
}

func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(c.cookieName(r)); err == nil {
		c.sessions.end(cookie.Value)
	}
	c.setCookie(w, r, "", -time.Second)
	c.redirect(w, "./sign-in")
}

// redirect redirects to an address relative to the page, so that it works below any path of a
// proxy.
func (c *Console) redirect(w http.ResponseWriter, to string) {
	w.Header().Set("Location", to)
	w.WriteHeader(http.StatusSeeOther)
}

// askSignIn shows the sign-in page.
func (c *Console) askSignIn(w http.ResponseWriter, r *http.Request, status int, problem string) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="toolctl"`)
	}
	p := page{Root: rootOf(r.URL.EscapedPath()), Title: "Sign in", Problem: problem}
	if next := strings.TrimPrefix(r.URL.Path, "/"); r.Method == http.MethodGet && safeNext(next) && next != "sign-in" {
		p.Next = next
	}
	// Browsers send the SameSite cookie not with a link from another site, but with a reload of the same
	// page.
	p.Again = r.Method == http.MethodGet && r.Header.Get("Sec-Fetch-Site") == "cross-site"
	p.Body = struct{ Tokens bool }{c.access.Required()}
	c.write(w, status, "signin", p)
}
