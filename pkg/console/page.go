package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/clip"
	"toolctl.dev/toolctl/internal/inspect"
	"toolctl.dev/toolctl/pkg/admission"
	"toolctl.dev/toolctl/pkg/gateway"
	"toolctl.dev/toolctl/pkg/policy"
	"toolctl.dev/toolctl/pkg/rollout"
	"toolctl.dev/toolctl/pkg/store"
)

// page is the data of the layout that all pages share.
type page struct {
	// Root is the relative path from the page to the first page of the console: "./", "../" and so on.
	Root    string
	Title   string
	Nav     string // the section of the console
	Who     string
	Waiting int  // pending calls that the person may decide on
	Changes bool // the page of changes has something to show
	Problem string
	Next    string // the page to open after signing in
	Again   bool   // the browser should request the page again
	Body    any
}

// request is a request of a person who is signed in.
type request struct {
	out http.ResponseWriter
	*http.Request
	person
	view gateway.View
}

// pageError is an error with its own HTTP status and text.
type pageError struct {
	status int
	text   string
}

func (e pageError) Error() string { return e.text }

var errNoPage = pageError{http.StatusNotFound, "There is no such page."}

// showPage runs the handler of a page, and shows an error page if it fails.
func (c *Console) showPage(r *request, show func(*request) error) {
	err := show(r)
	if err == nil {
		return
	}
	status, text := explained(err)
	if status == http.StatusInternalServerError && r.Context().Err() == nil {
		c.opts.Logger.ErrorContext(r.Context(), "the console cannot respond", slog.String("page", r.URL.Path), slog.Any("error", err))
	}
	title := "Request failed"
	if status == http.StatusNotFound {
		title = "Not found"
	}
	c.show(r, status, "problem", title, "", text)
}

// explained returns the HTTP status and the text for an error.
func explained(err error) (int, string) {
	is := func(targets ...any) bool {
		return slices.ContainsFunc(targets, func(target any) bool { return errors.As(err, target) })
	}
	status := http.StatusInternalServerError
	switch own, ok := errors.AsType[pageError](err); {
	case ok:
		return own.status, own.text
	case is(new(*admission.RefusedError)):
		status = http.StatusServiceUnavailable
	case is(new(*admission.ResultError)):
		status = http.StatusBadGateway
	case is(new(*v1.NotFoundError)):
		status = http.StatusNotFound
	case is(new(*v1.PolicyError)):
		status = http.StatusForbidden
	case is(new(*v1.ApprovalError), new(*rollout.ConflictError), new(*rollout.NoEarlierError), new(*store.ConflictError), new(*store.SetError)):
		status = http.StatusConflict
	case is(new(*v1.ValidationError)):
		status = http.StatusUnprocessableEntity
	}
	return status, err.Error()
}

// form reads the form that was sent.
func (r *request) form() error {
	if err := r.ParseForm(); err != nil {
		return pageError{http.StatusBadRequest, "The form cannot be read: " + err.Error()}
	}
	return nil
}

// show writes a page in the shared layout.
func (c *Console) show(r *request, status int, name, title, nav string, body any) {
	c.write(r.out, status, name, page{
		Root: rootOf(r.URL.EscapedPath()), Title: title, Nav: nav, Who: r.name, Waiting: c.waitingFor(c.waiting(r.Context()), r.person).Decide, Changes: c.changing(), Body: body,
	})
}

func (c *Console) write(w http.ResponseWriter, status int, name string, p page) {
	var b bytes.Buffer
	if err := c.pages.ExecuteTemplate(&b, name+".html", p); err != nil {
		c.opts.Logger.Error("cannot render a page of the console", slog.String("page", name), slog.Any("error", err))
		http.Error(w, "the page cannot be rendered: the server log says why", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(b.Bytes()) // the browser is gone
}

// rootOf returns the relative path from a page to the first page of the console.
func rootOf(path string) string {
	if n := strings.Count(strings.TrimPrefix(path, "/"), "/"); n > 0 {
		return strings.Repeat("../", n)
	}
	return "./"
}

// functions are the functions of the templates. Text from tools and models goes through "text", which
// makes characters visible that hide or reorder others.
var functions = template.FuncMap{
	"text": inspect.Show,
	"clip": func(n int, s string) string {
		if r := []rune(s); len(r) > n {
			return string(r[:n]) + "…"
		}
		return s
	},
	"begin": func(n int, b json.RawMessage) string {
		if len(b) > n {
			return strings.ToValidUTF8(string(b[:n]), "") + "…"
		}
		return string(b)
	},
	"raw":     func(b json.RawMessage) string { return inspect.Show(string(b)) },
	"when":    func(t time.Time) template.HTML { return timeElement(t, "moment", "2006-01-02 15:04:05 UTC") },
	"clock":   func(t time.Time) template.HTML { return timeElement(t, "clock", "15:04 UTC") },
	"details": auditDetails,
	"spaced":  strings.NewReplacer("-", " ", "_", " ").Replace,
	"word":    func(s string) bool { return len(s) <= 40 && !strings.Contains(s, " ") },
	"ms":      clip.Milliseconds,
	"left": func(t time.Time) string {
		d := time.Until(t).Round(time.Second)
		if d <= 0 {
			return "over"
		}
		return clip.Duration(d)
	},
	"budget": func(v policy.Verdict) *remaining {
		if v.Limit == nil || v.UsedBefore == nil {
			return nil
		}
		return &remaining{max(0, *v.Limit-*v.UsedBefore), *v.Limit}
	},
	"dict": dict,
}

// timeElement returns a time in UTC, which the script of the pages turns into local time, with UTC on hover.
func timeElement(t time.Time, class, layout string) template.HTML {
	t = t.UTC()
	return template.HTML(fmt.Sprintf(`<time class="%s" datetime="%s" title="%s">%s</time>`, class, t.Format(time.RFC3339), t.Format("2006-01-02 15:04:05 UTC"), t.Format(layout)))
}

// seconds returns a time as a number to sort by.
func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

// remaining is the unused part of a limit.
type remaining struct{ left, limit int64 }

func (r remaining) String() string { return fmt.Sprintf("%d of %d", r.left, r.limit) }

// Spent reports whether nothing is left.
func (r remaining) Spent() bool { return r.left == 0 }

// dict returns a map of names and values, for templates that take several values.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	return m
}
