package console

import (
	"errors"
	"net/http"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/mcp/server"
)

// maxSignIn limits the sign-in form, which holds a token, in bytes.
const maxSignIn = 16 << 10

// entrances returns the routes of the console, each behind the limits of the server.
func (c *Console) entrances() []admission.Route {
	all := []admission.Route{
		open("GET /static/{file}", c.staticFile),
		open("GET /sign-in", c.signInPage),
		open("POST /sign-in", c.signIn),
		open("POST /sign-out", c.signOut),
		open("GET /api/openapi.json", c.openAPI),
		c.page("GET /events", c.events),
	}
	all[len(all)-1].Kind = admission.Of(admission.KindStream)
	for _, p := range c.pageRoutes() {
		all = append(all, c.page(p.pattern, p.show))
	}
	for _, a := range c.apiTable() {
		all = append(all, c.api(a.pattern, a.answer))
	}
	counted := c.measured()
	for i := range all {
		enter := all[i].Enter
		all[i].Enter = func(r *http.Request) admission.Entry {
			in := enter(r)
			in.Answer = counted(in.Answer)
			return in
		}
	}
	return all
}

// route returns a route below /ui.
func route(pattern string, enter func(*http.Request) admission.Entry) admission.Route {
	method, path, ok := strings.Cut(pattern, " ")
	if ok {
		pattern = method + " /ui" + path
	} else {
		pattern = "/ui" + pattern
	}
	return admission.Route{Pattern: pattern, Enter: func(r *http.Request) admission.Entry {
		in := enter(r)
		in.Header = securityHeaders()
		in.Answer = http.StripPrefix("/ui", in.Answer).ServeHTTP
		return in
	}}
}

// open returns a route that needs no sign-in.
func open(pattern string, h http.HandlerFunc) admission.Route {
	one := route(pattern, admission.Open(h))
	if strings.HasPrefix(pattern, http.MethodPost) {
		one.MaxBody = maxSignIn
	}
	return one
}

// forPeople returns a route for people who are signed in.
func (c *Console) forPeople(pattern string, refuse func(http.ResponseWriter, *http.Request, error), answer func(*request)) admission.Route {
	return route(pattern, func(r *http.Request) admission.Entry {
		p, err := c.who(r)
		if err != nil {
			return admission.Entry{Caller: admission.Stranger(r), Early: true, Answer: func(w http.ResponseWriter, r *http.Request) { refuse(w, r, err) }}
		}
		return admission.Entry{Caller: callerOf(r, p), Answer: func(w http.ResponseWriter, r *http.Request) {
			answer(&request{out: w, Request: r, person: p, view: c.gateway.View(p.principal)})
		}}
	})
}

// page returns the route of a page.
func (c *Console) page(pattern string, show func(*request) error) admission.Route {
	return c.forPeople(pattern, c.notSignedIn, func(r *request) { c.showPage(r, show) })
}

// api returns the route of an API endpoint, which also accepts bearer tokens and responds with JSON.
func (c *Console) api(pattern string, answer func(*request) (any, error)) admission.Route {
	one := c.forPeople(pattern, refuseAPI, func(r *request) { c.answerAPI(r, answer) })
	one.Refuse = func(w http.ResponseWriter, _ *http.Request, status int, text string) {
		writeAPI(w, status, apiProblem{&v1.ResultError{Type: refusedTypes[status], Message: text}})
	}
	return one
}

// refusedTypes are the error types of requests that were not admitted.
var refusedTypes = map[int]string{
	http.StatusBadRequest: "invalid_request", http.StatusRequestTimeout: "request_timeout", http.StatusRequestEntityTooLarge: "request_too_large",
	http.StatusTooManyRequests: "rate_limited", http.StatusServiceUnavailable: "unavailable",
}

// callerOf returns whose limits apply to the requests of a person.
func callerOf(r *http.Request, p person) admission.Caller {
	if p.principal == "" { // the person at this machine
		return admission.Anonymous(r)
	}
	return admission.Principal(p.principal)
}

// notSignedIn asks a browser to sign in.
func (c *Console) notSignedIn(w http.ResponseWriter, r *http.Request, err error) {
	status, text := http.StatusUnauthorized, ""
	var refused *server.AccessError
	if r.Header.Get("Authorization") != "" && errors.As(err, &refused) {
		status, text = refused.Status, refused.Message
	}
	c.askSignIn(w, r, status, text)
}

// refuseAPI responds to an unauthenticated API request.
func refuseAPI(w http.ResponseWriter, _ *http.Request, err error) {
	status := http.StatusUnauthorized
	if refused, ok := errors.AsType[*server.AccessError](err); ok {
		status = refused.Status
	}
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="toolctl"`)
	}
	writeAPI(w, status, apiProblem{Error: &v1.ResultError{Type: "unauthorized", Message: err.Error()}})
}

// policyOfScripts is the Content-Security-Policy of every response.
const policyOfScripts = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// securityHeaders returns the headers of every response.
func securityHeaders() http.Header {
	h := http.Header{}
	h.Set("Content-Security-Policy", policyOfScripts)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	return h
}
