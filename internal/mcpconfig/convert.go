package mcpconfig

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/manifest"
)

// converter makes manifests from the servers in one file.
type converter struct {
	inputs map[string]string // VS Code inputs: id to description
	notes  []string
	values map[string]string // variable to the secret that it replaces
	names  map[string]string // manifest name to the name in the file
}

func (c *converter) note(server, format string, args ...any) {
	n := fmt.Sprintf("%s: ", server) + fmt.Sprintf(format, args...)
	if !slices.Contains(c.notes, n) {
		c.notes = append(c.notes, n)
	}
}

// scalar is the text of a string, number or boolean.
type scalar string

func (s *scalar) UnmarshalJSON(raw []byte) error {
	switch v1.JSONKind(raw) {
	case "string":
		return json.Unmarshal(raw, (*string)(s))
	case "number", "boolean":
		*s = scalar(raw)
		return nil
	}
	return errors.New("not a text")
}

// convert makes one manifest. It returns nil without an error for a disabled server.
func (c *converter) convert(e entry) (*v1.MCPServer, error) {
	r := &record{}
	if json.Unmarshal(e.raw, &r.fields) != nil || r.fields == nil {
		return nil, fmt.Errorf("expected an object, got %s", v1.JSONKind(e.raw))
	}
	m := v1.NewObject(v1.KindMCPServer).(*v1.MCPServer)
	m.Metadata.Name = manifest.Name(e.name)
	if m.Metadata.Name == "" {
		return nil, errors.New("this name cannot be turned into a manifest name")
	}
	if m.Metadata.Name != e.name {
		c.note(e.name, "its name in the manifest is %q", m.Metadata.Name)
	}
	if other, twice := c.names[m.Metadata.Name]; twice {
		return nil, fmt.Errorf("its name in the manifest would be %q, as for %q: rename one", m.Metadata.Name, other)
	}
	c.names[m.Metadata.Name] = e.name

	off := read[bool](r, "disabled")
	if on := read[*bool](r, "enabled"); off || on != nil && !*on {
		c.note(e.name, "it is disabled in the file and was left out")
		return nil, nil
	}
	transport := read[string](r, "type", "transport")
	s := &m.Spec
	s.Description = read[string](r, "description")
	command, args := "", texts(read[[]scalar](r, "args"))
	if line := read[words](r, "command"); len(line) > 0 {
		command, args = line[0], slices.Concat(line[1:], args)
	}
	env := read[map[string]scalar](r, "env", "environment")
	dir := read[string](r, "cwd", "working_dir", "workingDir", "workingDirectory", "workdir")
	address := read[string](r, "url", "serverUrl", "httpUrl")
	headers := read[map[string]scalar](r, "headers")
	s.TimeoutMS = read[int](r, "timeout_ms", "timeoutMs")
	s.ToolFilter = read[*v1.ToolFilter](r, "tool_filter")
	read[string](r, "name")
	if file := read[string](r, "envFile"); file != "" {
		c.note(e.name, "envFile is ignored: set its variables in the environment, and name them in spec.env or spec.env_passthrough")
	}
	if err := errors.Join(r.errs...); err != nil {
		return nil, err
	}
	for _, left := range slices.Sorted(maps.Keys(r.fields)) {
		c.note(e.name, "%s has no equivalent in an MCPServer and was ignored", left)
	}
	t := texter{c: c, server: e.name, prefix: variable(m.Metadata.Name)}
	switch {
	case command != "" && address != "":
		return nil, errors.New("it has a command and a url: expected one of them")
	case command != "":
		s.Command = t.plain(command)
		s.Args = t.args(args)
		s.Env = t.env(env)
		s.WorkingDir = t.plain(dir)
	case address != "":
		s.URL = t.url(address)
		s.Headers = t.headers(headers)
	default:
		if source := r.fields["source"]; source != nil {
			return nil, fmt.Errorf("it is started from source %s, which toolctl does not support: expected a command or a url", source)
		}
		return nil, errors.New("it has no command and no url")
	}
	if s.URL != "" && len(args)+len(env)+len(dir) > 0 {
		c.note(e.name, "args, env and cwd apply to a command, not to a url, and were ignored")
	}
	if s.Command != "" && len(headers) > 0 {
		c.note(e.name, "headers apply to a url, not to a command, and were ignored")
	}
	switch strings.ToLower(strings.NewReplacer("-", "", "_", "").Replace(transport)) {
	case "", "stdio", "local", "http", "streamablehttp", "remote":
	case "sse":
		if s.URL != "" {
			s.Transport = v1.TransportSSE
		}
	default:
		return nil, fmt.Errorf("unknown type %q: expected stdio, http or sse", transport)
	}
	return m, valid(m)
}

// valid returns the errors of a manifest.
func valid(m *v1.MCPServer) error {
	var errs []error
	for _, f := range v1.Errors(m.Validate()) {
		errs = append(errs, errors.New(f.Message))
	}
	return errors.Join(errs...)
}

// record is the entry of one server. Each field is removed when it is read, so that the remaining fields are
// those without a place in a manifest.
type record struct {
	fields map[string]json.RawMessage
	errs   []error
}

// read reads a field that may have several names. It uses the first name that is present.
func read[T any](r *record, names ...string) (v T) {
	found := false
	for _, n := range names {
		raw, ok := r.fields[n]
		delete(r.fields, n)
		if !ok || found || v1.JSONKind(raw) == "null" {
			continue
		}
		found = true
		if json.Unmarshal(raw, &v) != nil {
			r.errs = append(r.errs, fmt.Errorf("%s: unexpected %s", n, v1.JSONKind(raw)))
		}
	}
	return v
}

// words is a command: a string, or a list of the command and its arguments.
type words []string

func (w *words) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*w = words{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(w))
}

func texts(list []scalar) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

// variable returns an environment variable name: MY_SERVER for my-server.
func variable(s string) string {
	var b strings.Builder
	for _, r := range strings.ToUpper(s) {
		if r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if n := b.String(); n != "" && !strings.HasSuffix(n, "_") {
			b.WriteByte('_')
		}
	}
	name := strings.Trim(b.String(), "_")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		name = "V_" + name
	}
	return cmp.Or(name, "V")
}
