package executors

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/jsontext"
	"toolctl.dev/toolctl/internal/template"
)

// draft is a request whose variables have no values yet. Building one accesses nothing.
type draft struct {
	base, rest envText // parts of the URL
	headers    []httpField
	hasBody    bool
	body       json.RawMessage            // the body from the arguments
	members    map[string]json.RawMessage // the members of the body if the manifest adds some
}

// draft builds the request of a call. Its errors are about the arguments.
func (p *httpTool) draft(ctx context.Context, name string, raw json.RawMessage) (*draft, error) {
	d := &draft{base: p.base, rest: p.rest, hasBody: p.hasBody || len(p.staticBody) > 0}
	var args map[string]json.RawMessage
	if !p.passes {
		if len(raw) > 0 && json.Unmarshal(raw, &args) != nil {
			return nil, notAnObject(name, raw)
		}
	} else if d.body = raw; len(bytes.TrimSpace(raw)) == 0 {
		d.body = []byte("{}")
	} else if v1.JSONKind(raw) != "object" {
		return nil, notAnObject(name, raw)
	}
	if err := p.draftTemplates(ctx, name, d, args); err != nil {
		return nil, err
	}
	left := make([]string, 0, len(args))
	for arg := range args {
		if !p.used[arg] {
			left = append(left, arg)
		}
	}
	slices.Sort(left)
	query := left
	if p.hasBody {
		query = nil
	}
	if req := p.spec.Request; req != nil && len(req.QueryParams) > 0 {
		query = slices.Concat(req.QueryParams, query)
		slices.Sort(query)
		query = slices.Compact(query)
	}
	p.draftQuery(d, args, query)
	if p.bodiless && (p.passes && isEmptyObject(raw) || !p.passes && len(left) == 0) {
		d.hasBody, d.body = false, nil
	}
	if !d.hasBody || p.passes {
		return d, nil
	}
	if !p.hasBody {
		left = nil
	}
	return d, p.draftBody(name, d, args, left)
}

func notAnObject(name string, raw json.RawMessage) error {
	return v1.NewValidationError(v1.ArgsInvalid, name, []v1.Violation{{Expected: "a JSON object", Got: v1.JSONKind(raw),
		Message: "the arguments must be a JSON object, got " + v1.JSONKind(raw)}})
}

// draftTemplates renders the URL and the headers with all arguments.
func (p *httpTool) draftTemplates(ctx context.Context, name string, d *draft, args map[string]json.RawMessage) error {
	var values map[string]any
	render := func(tpl *template.Text) (envText, error) {
		if values == nil {
			values = make(map[string]any, len(args))
			for k, v := range args {
				values[k] = v
			}
			p.fillEmpty(values, args)
		}
		s, err := tpl.Render(ctx, values)
		switch {
		case ctx.Err() != nil:
			return "", err
		case err == nil && p.spec.OmitEmpty && tpl == p.restTpl:
			return envText(withoutEmpty(s)), nil
		case err == nil && strings.Contains(s, emptied):
			return "", nil
		case err == nil:
			return envText(s), nil
		}
		f := v1.Violation{Expected: "arguments that fit the template", Got: "others", Message: err.Error()}
		fields := tpl.Fields()
		if p.spec.OmitEmpty && tpl == p.restTpl {
			fields = p.inPath
		}
		for _, arg := range fields {
			if raw, ok := args[arg]; !ok || string(raw) == "null" {
				f.Path, f.Expected, f.Got = v1.Pointer("", arg), "a value", "nothing"
				break
			}
		}
		return "", v1.NewValidationError(v1.ArgsInvalid, name, []v1.Violation{f})
	}
	var err error
	if p.restTpl != nil {
		if d.rest, err = render(p.restTpl); err != nil {
			return err
		}
		d.rest, _ = d.rest.cut("#")
		if violation := climbs(d.rest.plain()); violation != nil {
			return v1.NewValidationError(v1.ArgsInvalid, name, []v1.Violation{*violation})
		}
	}
	for _, h := range p.headers {
		if h.tpl != nil {
			if h.text, err = render(h.tpl); err != nil {
				return err
			}
			if p.spec.OmitEmpty && h.text == "" {
				continue
			}
		}
		d.headers = append(d.headers, h)
	}
	return nil
}

// fillEmpty adds an empty value for each missing argument, with omit_empty.
func (p *httpTool) fillEmpty(values map[string]any, args map[string]json.RawMessage) {
	if !p.spec.OmitEmpty {
		return
	}
	for arg := range p.used {
		if kind := v1.JSONKind(args[arg]); kind == "nothing" || kind == "null" {
			values[arg] = ""
		}
	}
}

// escapeURL makes a value safe anywhere in a path or a query: it percent-encodes all but
// the unreserved characters (RFC 3986, section 2.3). In a path, an empty value would
// name another resource (DELETE /users/ for /users/{{.id}}).
func escapeURL(out []byte, value string) (string, error) {
	if value == "" && bytes.IndexByte(out, '?') < 0 {
		return "", errEmptyInPath
	}
	return percentEncode(value), nil
}

func percentEncode(s string) string {
	const hex = "0123456789ABCDEF"
	plain := func(c byte) bool {
		return c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
	}
	for i := 0; i < len(s); i++ {
		if plain(s[i]) {
			continue
		}
		b := make([]byte, 0, len(s)+8)
		for j := range len(s) {
			if c := s[j]; plain(c) {
				b = append(b, c)
			} else {
				b = append(b, '%', hex[c>>4], hex[c&15])
			}
		}
		return string(b)
	}
	return s
}

// climbs refuses path segments "." and "..": servers and proxies resolve them, and also
// encoded slashes and backslashes, so that they would lead to another path.
func climbs(rest string) *v1.Violation {
	path, _, _ := strings.Cut(rest, "?")
	for segment := range strings.SplitSeq(path, "/") {
		plain, err := url.PathUnescape(segment)
		if err != nil {
			plain = segment
		}
		for _, part := range strings.FieldsFunc(plain, func(r rune) bool { return r == '/' || r == '\\' }) {
			if part == "." || part == ".." {
				return &v1.Violation{Path: "", Expected: `a path segment other than "." and ".."`, Got: quoted(plain),
					Message: fmt.Sprintf(`spec.http.url: an argument makes the path segment %s, which leads to another path`, quoted(plain))}
			}
		}
	}
	return nil
}

// headerValue is the escape function for headers, which have no escaping: it refuses control characters.
func headerValue(_ []byte, value string) (string, error) {
	if !isHeaderValue(value) {
		return "", errors.New("a header value cannot contain a line break or another control character")
	}
	return value, nil
}

// draftQuery appends arguments and static values to the query. Names in the URL or in
// static_query belong to the manifest, so arguments of these names are left out.
func (p *httpTool) draftQuery(d *draft, args map[string]json.RawMessage, names []string) {
	if len(names) == 0 && len(p.staticQuery) == 0 && p.pages == nil {
		return
	}
	path, query := d.rest.cut("?")
	has := query != ""
	taken := map[string]bool{}
	for pair := range strings.SplitSeq(strings.TrimPrefix(query.plain(), "?"), "&") {
		key, _, _ := strings.Cut(pair, "=")
		if k, err := url.QueryUnescape(key); err == nil {
			taken[k] = true
		}
	}
	delete(taken, "")
	for _, f := range p.staticQuery {
		taken[f.name] = true
	}
	if !has {
		query = "?"
	}
	addEncoded := func(name string, value envText) {
		if query != "?" {
			query += "&"
		}
		query += envText(name) + "=" + value
	}
	add := func(name string, value envText) { addEncoded(percentEncode(name), value) }
	for _, name := range names {
		if taken[name] {
			continue
		}
		style := p.queryStyle(name)
		pairs := styled(name, args[name], style)
		if p.spec.OmitEmpty && len(pairs) == 1 && pairs[0].value == "" {
			pairs = nil
		}
		pairs = slices.DeleteFunc(pairs, func(f pair) bool {
			key, err := url.PathUnescape(f.name)
			return err != nil || taken[key] || key != name && slices.Contains(names, key)
		})
		for _, f := range pairs {
			addEncoded(f.name, envText(f.value))
		}
		for _, f := range pairs {
			key, _ := url.PathUnescape(f.name) // the name was decoded before
			taken[key] = true
		}
	}
	if p.pages != nil {
		for _, f := range p.pages.query {
			if !taken[f.name] { // an argument of the same name selects the first page
				add(f.name, f.text)
			}
		}
	}
	for _, f := range p.staticQuery {
		add(f.name, f.text.edit(percentEncode))
	}
	if d.rest = path; has || query != "?" {
		d.rest += query
	}
}

// queryStyle returns the style of an argument in the query; "" is the default.
func (p *httpTool) queryStyle(name string) string {
	if p.spec.Request == nil {
		return ""
	}
	return p.spec.Request.QueryStyles[name]
}

// queryValues returns the texts of an argument in a query: a scalar as text with
// all its digits, a list as one value per item (form style with explode, the default
// of OpenAPI), an object as JSON, and nothing for null or a missing argument.
func queryValues(raw json.RawMessage) (all []string) {
	switch v1.JSONKind(raw) {
	case "nothing", "null":
		return nil
	case "string":
		return []string{jsontext.Unquote(raw)}
	case "array":
		jsontext.Elements(raw, func(item []byte) bool {
			if v1.JSONKind(item) == "array" {
				all = append(all, string(item))
			} else {
				all = append(all, queryValues(item)...)
			}
			return true
		})
		return all
	}
	return []string{string(raw)}
}

// draftBody makes the JSON body from the remaining arguments, through the mapping if
// there is one. Static members override members of the same name.
func (p *httpTool) draftBody(name string, d *draft, args map[string]json.RawMessage, left []string) error {
	members := make(map[string]json.RawMessage, len(left)+len(p.staticBody))
	for _, arg := range left {
		members[arg] = args[arg]
	}
	if p.bodyMapping != nil {
		mapped, err := p.bodyMapping.apply(object(members))
		if err == nil && p.spec.OmitEmpty {
			mapped = foundSomething(mapped, members)
		}
		if err == nil && v1.JSONKind(mapped) == "null" {
			err = errors.New("spec.http.request.body_mapping found nothing in the arguments")
		}
		if err != nil {
			return &v1.ExecutionError{Tool: name, Phase: v1.PhaseValidate, Message: err.Error() + "; nothing was sent", Cause: err}
		}
		if len(p.staticBody) == 0 {
			d.body = mapped
			return nil
		}
		members = nil
		if json.Unmarshal(mapped, &members) != nil {
			return &v1.ExecutionError{Tool: name, Phase: v1.PhaseValidate,
				Message: fmt.Sprintf("spec.http.request.body_mapping made a JSON %s: static_body needs an object; nothing was sent", v1.JSONKind(mapped))}
		}
	}
	for _, f := range p.staticBody {
		delete(members, f.name)
	}
	d.members = members
	return nil
}

// bodyOf returns the body of a draft with the static members.
func (p *httpTool) bodyOf(d *draft, values []string) json.RawMessage {
	if len(p.staticBody) == 0 {
		if d.members != nil {
			return object(d.members)
		}
		return d.body
	}
	members := make(map[string]json.RawMessage, len(d.members)+len(p.staticBody))
	maps.Copy(members, d.members)
	for _, f := range p.staticBody {
		members[f.name] = json.RawMessage(f.text.fill(values, jsonValue))
	}
	return object(members)
}

// object returns a JSON object with its members sorted by name.
func object(members map[string]json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, jsontext.Quote(name)...), ':')
		b = append(b, members[name]...)
	}
	return append(b, '}')
}
