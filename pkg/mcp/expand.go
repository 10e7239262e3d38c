package mcp

import (
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/pkg/redact"
)

// resolver reads what a manifest takes from the environment. It gathers every
// fault, and the values that must show nowhere.
type resolver struct {
	env     func(string) (string, bool)
	server  *v1.MCPServer
	faults  []v1.Fault
	secrets []string
}

func (r *resolver) fault(path, expected, got, message string) {
	r.faults = append(r.faults, v1.Fault{Path: path, Expected: expected, Got: got, Message: message, Source: r.server.Field(path)})
}

// err returns the faults as one error; nil when there are none.
func (r *resolver) err() error {
	if len(r.faults) == 0 {
		return nil
	}
	return v1.NewValidationError(v1.ManifestInvalid, r.server.Kind+"/"+r.server.Metadata.Name, r.faults)
}

// variable returns the value of a variable that a field names, such as bearer_env.
func (r *resolver) variable(path, name string) string {
	v, ok := r.env(name)
	if !ok || v == "" {
		r.unset(path, name)
	}
	r.secret(v)
	return v
}

func (r *resolver) unset(path, name string) {
	r.fault(path, "environment variable "+name, "nothing", fmt.Sprintf("environment variable %q is not set", name))
}

// secret remembers a value that is masked. A very short one would mask half of
// every message and is no secret.
func (r *resolver) secret(v string) {
	if len(v) >= 4 {
		r.secrets = append(r.secrets, v)
	}
}

// expand replaces ${VAR} and ${VAR:-default}; $${ is ${ as it is. For
// ${VAR:-default} an empty variable counts as not set, as in a shell.
func (r *resolver) expand(path, s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "${")
		if !ok {
			b.WriteString(s)
			return b.String()
		}
		if literal, ok := strings.CutSuffix(before, "$"); ok {
			b.WriteString(literal + "${")
			s = rest
			continue
		}
		b.WriteString(before)
		body, after, ok := strings.Cut(rest, "}")
		name, fallback, optional := strings.Cut(body, ":-")
		if !ok || !isVariable(name) {
			r.fault(path, "${VAR} or ${VAR:-default}", "${"+body, fmt.Sprintf("%q is not the name of a variable; write $${ for the text itself", name))
			return ""
		}
		v, set := r.env(name)
		switch {
		case set && (v != "" || !optional):
			r.secret(v)
			b.WriteString(v)
		case optional:
			b.WriteString(fallback)
		default:
			r.unset(path, name)
		}
		s = after
	}
}

func isVariable(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// masker returns a function that takes the secrets out of a text.
func (r *resolver) masker() *strings.Replacer {
	// The longest first: of two that begin alike, the shorter would leave the rest of the longer.
	slices.SortFunc(r.secrets, func(a, b string) int { return len(b) - len(a) })
	pairs := make([]string, 0, 2*len(r.secrets))
	for _, s := range r.secrets {
		pairs = append(pairs, s, redact.Mask)
	}
	return strings.NewReplacer(pairs...)
}
