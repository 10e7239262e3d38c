package openapi

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/getkin/kin-openapi/openapi3"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Labels of an imported manifest.
const (
	// LabelAPI is the title of the API.
	LabelAPI = "toolctl.dev/api"
	// LabelTag is the operation's first tag.
	LabelTag = "toolctl.dev/tag"
)

func (b *builder) labels(op *openapi3.Operation) map[string]string {
	l := map[string]string{}
	if v := labelValue(b.doc.Title); v != "" {
		l[LabelAPI] = v
	}
	if len(op.Tags) > 0 {
		if v := labelValue(op.Tags[0]); v != "" {
			l[LabelTag] = v
		}
	}
	return orNil(l)
}

// Maximum lengths of texts that models read.
const (
	maxDescription = 1024
	maxTitle       = 120
)

// description joins the summary and the description of the operation.
func (b *builder) description(op *openapi3.Operation) string {
	summary, long := clean(op.Summary), clean(op.Description)
	text := summary
	switch {
	case long == "" || strings.EqualFold(strings.TrimSuffix(long, "."), strings.TrimSuffix(summary, ".")):
	case summary == "" || strings.HasPrefix(long, summary):
		text = long
	default:
		text = summary + "\n\n" + long
	}
	if text == "" {
		text = b.op.key()
	}
	if op.Deprecated {
		text = "Deprecated. " + text
	}
	return cut(text, maxDescription)
}

// clean removes control characters, and spaces at line ends, which YAML cannot write in a block.
func clean(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t':
			return ' '
		case unicode.IsControl(r) || r == unicode.ReplacementChar || r == '\ufeff':
			return -1
		}
		return r
	}, s)
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// cut shortens text to at most limit characters, at a nearby space if possible.
func cut(s string, limit int) string {
	r := []rune(s)
	if len(r) <= limit {
		return s
	}
	s = string(r[:limit-1])
	if i := strings.LastIndexAny(s, " \n"); i > len(s)*3/4 {
		s = s[:i]
	}
	return strings.TrimRight(s, " \n") + "…"
}

// hints returns the hints that follow from the method (RFC 9110, sections 9.2.1 and 9.2.2).
func hints(method, summary string) *v1.Hints {
	yes := true
	h := &v1.Hints{Title: strings.ReplaceAll(cut(clean(summary), maxTitle), "\n", " ")}
	switch method {
	case "GET", "HEAD", "OPTIONS":
		h.ReadOnly = &yes
	case "PUT", "DELETE":
		h.Idempotent, h.Destructive = &yes, &yes
	}
	if *h == (v1.Hints{}) {
		return nil
	}
	return h
}

// http returns the HTTP request that a call sends.
func (b *builder) http(op *openapi3.Operation, server string) *v1.HTTPSpec {
	var path strings.Builder
	for _, s := range pathSegments(b.op.path) {
		if s.param {
			path.WriteString(b.args.by("path", s.text).template())
		} else {
			path.WriteString(literal(s.text))
		}
	}
	h := &v1.HTTPSpec{URL: server + path.String(), Method: b.method, OmitEmpty: b.omitEmpty, AllowPrivateNetwork: b.opts.AllowPrivateNetwork}
	if u, err := url.Parse(server); err == nil {
		b.host = u.Host
	}
	req := &v1.HTTPRequest{BodyMapping: b.mapping}
	for _, a := range b.args.from("query") {
		req.QueryParams = append(req.QueryParams, a.name)
		if a.style != "" {
			if req.QueryStyles == nil {
				req.QueryStyles = map[string]string{}
			}
			req.QueryStyles[a.name] = a.style
		}
	}
	for _, a := range b.args.from("header") {
		if req.HeaderParams == nil {
			req.HeaderParams = map[string]string{}
		}
		req.HeaderParams[a.source] = a.template()
	}
	c := b.credentials(op, server)
	maps.Copy(b.headers, c.headers)
	h.Auth = c.auth
	req.StaticQuery = orNil(c.query)
	if req.BodyMapping != "" || req.QueryParams != nil || req.HeaderParams != nil || req.StaticQuery != nil {
		h.Request = req
	}
	return h
}

func (b *builder) credentials(op *openapi3.Operation, server string) *credentials {
	reqs := b.doc.head.Security
	if op.Security != nil {
		reqs = *op.Security
	}
	schemes := map[string]*openapi3.SecurityScheme{}
	for name, ref := range b.doc.head.Components.SecuritySchemes {
		schemes[name] = ref.Value
	}
	s := &security{schemes: schemes, prefix: b.opts.EnvPrefix, base: server}
	c, err := s.choose(reqs)
	if err != nil {
		b.note(err.Error())
	}
	b.env = slices.Clone(c.env)
	return c
}
