package mcp

import (
	"fmt"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/redact"
)

// resolver reads what a manifest takes from the environment. It gathers every
// violation, and the values that must show nowhere.
type resolver struct {
	env        func(string) (string, bool)
	server     *v1.MCPServer
	violations []v1.Violation
	secrets    []string
}

func (r *resolver) violation(path, expected, got, message string) {
	r.violations = append(r.violations, v1.Violation{Path: path, Expected: expected, Got: got, Message: message, Source: r.server.Field(path)})
}

// Unset returns a violation for each variable that a server reads and that is not set.
func Unset(s *v1.MCPServer, env func(string) (string, bool)) []v1.Violation {
	r := &resolver{env: env, server: s}
	if s.Spec.Command != "" {
		_, _ = r.command()
	} else {
		r.endpoint()
		if s.Spec.Auth != nil {
			r.client(s.Spec.Auth)
		}
	}
	return slices.DeleteFunc(r.violations, func(f v1.Violation) bool { return !strings.HasPrefix(f.Expected, unsetPrefix) })
}

const unsetPrefix = "environment variable "

// err returns the violations as one error; nil when there are none.
func (r *resolver) err() error {
	if len(r.violations) == 0 {
		return nil
	}
	return fmt.Errorf("mcpserver/%s: %w", r.server.Metadata.Name, v1.NewValidationError(v1.ManifestInvalid, "", r.violations))
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
	r.violation(path, unsetPrefix+name, "nothing", fmt.Sprintf("environment variable %q is not set", name))
}

// secret remembers a value that is masked. A very short one would mask half of
// every message and is no secret.
func (r *resolver) secret(v string) {
	if len(v) >= 4 {
		r.secrets = append(r.secrets, v)
	}
}

// expand replaces the references to variables; what is read is a secret.
func (r *resolver) expand(path, s string) string {
	pieces, err := envref.Parse(s)
	if err != nil {
		r.violation(path, "${VAR} or ${VAR:-default}", "text that cannot be read", err.Error())
		return ""
	}
	var b strings.Builder
	for _, p := range pieces {
		if p.Ref == nil {
			b.WriteString(p.Text)
			continue
		}
		v, read, ok := p.Ref.Value(r.env)
		if !ok {
			r.unset(path, p.Ref.Name)
		}
		if read {
			r.secret(v)
		}
		b.WriteString(v)
	}
	return b.String()
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
