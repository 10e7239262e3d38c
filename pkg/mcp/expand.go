package mcp

import (
	"fmt"
	"regexp"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
	"toolctl.dev/toolctl/internal/envref"
	"toolctl.dev/toolctl/internal/redact"
)

// resolver reads the values that a manifest takes from the environment. It collects all violations, and the
// values to mask.
type resolver struct {
	env        envref.Env
	server     *v1.MCPServer
	violations []v1.Violation
	secrets    []string // all values read: masked in our own messages
	keys       []string // values that are certainly secret: masked in results too
}

func (r *resolver) violation(path, expected, got, message string) {
	r.violations = append(r.violations, v1.Violation{Path: path, Expected: expected, Got: got, Message: message, Source: r.server.Field(path)})
}

// Unset returns a violation for each variable that a server reads but that is not set or not allowed.
// allowed has the form of [Options.AllowEnv].
func Unset(s *v1.MCPServer, env func(string) (string, bool), allowed []string) []v1.Violation {
	r := &resolver{env: envref.Env{Lookup: env, Allow: allowed}, server: s}
	if s.Spec.Command != "" {
		r.process()
	} else {
		r.endpoint()
		if s.Spec.Auth != nil {
			r.client(s.Spec.Auth)
		}
	}
	return envref.Unreadable(r.violations)
}

// Unset returns a violation for each variable that a server of the set reads but that is not set or not
// allowed.
func (u *Upstreams) Unset(server v1.Key) []v1.Violation {
	u.mu.RLock()
	up := u.set[server]
	u.mu.RUnlock()
	if up == nil {
		return nil
	}
	return Unset(up.spec, u.opts.Env, u.opts.AllowEnv)
}

// err returns the violations as one error; nil without violations.
func (r *resolver) err() error {
	if len(r.violations) == 0 {
		return nil
	}
	return fmt.Errorf("mcpserver/%s: %w", r.server.Metadata.Name, v1.NewValidationError(v1.ManifestInvalid, "", r.violations))
}

// variable returns the value of a variable that a field names, such as bearer_env.
func (r *resolver) variable(path, name string) string {
	v, ok := r.env.Value(name)
	if !ok || v == "" {
		r.unset(path, name)
	}
	r.secrets = append(r.secrets, v)
	if !strings.HasSuffix(path, "/username_env") {
		r.keys = append(r.keys, v)
	}
	return v
}

// unset adds the violation for a variable without a value.
func (r *resolver) unset(path, name string) {
	v, forbidden := r.env.Violation(path, name)
	if !forbidden {
		v = envref.Unset(path, name)
	}
	v.Source = r.server.Field(path)
	r.violations = append(r.violations, v)
}

// secretName matches the names of variables that hold a secret. The values of others, such as HOME, may
// appear in results, where a mask would break every path.
var secretName = regexp.MustCompile(`(?i)(KEY|TOKEN|SECRET|PASS|PWD|PAT$|CRED|AUTH|PRIVATE|DSN|COOKIE|SESSION)`)

// secret adds a possible secret to the values to mask. A very short value cannot be a secret.
func (r *resolver) secret(v string) {
	if len(v) >= 4 {
		r.secrets = append(r.secrets, v)
	}
}

// expand replaces the references to variables. The values read count as secrets.
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
		if !ok || r.env.Refuses(p.Ref.Name) != "" { // even if the reference has a fallback
			r.unset(path, p.Ref.Name)
		}
		if read {
			r.secrets = append(r.secrets, v)
			if strings.HasPrefix(path, "/spec/headers") || secretName.MatchString(p.Ref.Name) {
				r.keys = append(r.keys, v)
			}
		}
		b.WriteString(v)
	}
	return b.String()
}

// mask sets the masks of a session. For messages of the server outside of calls, the rules of all its tools
// apply.
func (r *resolver) mask(s *session) {
	var rules []string
	for _, o := range r.server.Spec.Overrides {
		rules = append(rules, o.Redact...)
	}
	s.masks = redact.New(rules, r.secrets...)
	s.upstream.secrets.Store(redact.New(nil, r.keys...))
}
