package openapi

import (
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"

	v1 "toolctl.dev/toolctl/api/v1"
)

// security converts security requirements to the credentials that an HTTP tool sends. Secrets are
// read from environment variables and never written.
type security struct {
	schemes map[string]*openapi3.SecurityScheme
	prefix  string // prefix of variable names
	base    string // URL of the server, for relative token URLs
}

// credentials are the credentials that one operation sends.
type credentials struct {
	auth    *v1.Auth
	headers map[string]string
	query   map[string]string
	env     []string
}

// choose returns the credentials of the first alternative that an HTTP tool can send. One of the
// requirements must hold, with all of its schemes (OpenAPI 3.1.1, section 4.8.30). An empty
// alternative allows calls without credentials.
func (s *security) choose(reqs openapi3.SecurityRequirements) (*credentials, error) {
	if len(reqs) == 0 || slices.ContainsFunc(reqs, func(r openapi3.SecurityRequirement) bool { return len(r) == 0 }) {
		return &credentials{}, nil
	}
	var reasons []string
	for _, req := range reqs {
		c, err := s.all(req)
		if err == nil {
			return c, nil
		}
		reasons = append(reasons, err.Error())
	}
	return &credentials{}, fmt.Errorf("no credentials are sent: %s", strings.Join(reasons, "; "))
}

func (s *security) all(req openapi3.SecurityRequirement) (*credentials, error) {
	c := &credentials{headers: map[string]string{}, query: map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(req)) {
		scheme := s.schemes[name]
		if scheme == nil {
			return nil, fmt.Errorf("the security scheme %q is not declared", name)
		}
		if err := s.add(c, name, scheme, req[name]); err != nil {
			return nil, fmt.Errorf("security scheme %q: %w", name, err)
		}
	}
	slices.Sort(c.env)
	return c, nil
}

func (s *security) add(c *credentials, name string, scheme *openapi3.SecurityScheme, scopes []string) error {
	auth := func(a *v1.Auth, env ...string) error {
		if c.auth != nil {
			return fmt.Errorf("a second credential: an HTTP tool sends only one")
		}
		c.auth = a
		c.env = append(c.env, env...)
		return nil
	}
	switch scheme.Type {
	case "http":
		switch strings.ToLower(scheme.Scheme) {
		case "bearer":
			v := s.variable(name, "TOKEN")
			return auth(&v1.Auth{BearerEnv: v}, v)
		case "basic":
			user, pass := s.variable(name, "USERNAME"), s.variable(name, "PASSWORD")
			return auth(&v1.Auth{Basic: &v1.BasicAuth{UsernameEnv: user, PasswordEnv: pass}}, user, pass)
		}
		return fmt.Errorf("HTTP authentication %q is not supported", scheme.Scheme)
	case "apiKey":
		return s.apiKey(c, name, scheme)
	case "oauth2":
		if f := scheme.Flows; f != nil && f.ClientCredentials != nil {
			token, err := s.tokenURL(f.ClientCredentials.TokenURL)
			if err != nil {
				return err
			}
			id, secret := s.variable(name, "CLIENT_ID"), s.variable(name, "CLIENT_SECRET")
			return auth(&v1.Auth{OAuth2ClientCredentials: &v1.OAuth2ClientCredentials{TokenURL: token, ClientIDEnv: id, ClientSecretEnv: secret, Scopes: scopes}}, id, secret)
		}
		v := s.variable(name, "TOKEN")
		return auth(&v1.Auth{BearerEnv: v}, v)
	case "openIdConnect":
		v := s.variable(name, "TOKEN")
		return auth(&v1.Auth{BearerEnv: v}, v)
	}
	return fmt.Errorf("the type %q is not supported", scheme.Type)
}

func (s *security) apiKey(c *credentials, name string, scheme *openapi3.SecurityScheme) error {
	v := s.variable(name, "API_KEY")
	switch {
	case scheme.In == "header" && isToken(scheme.Name):
		c.headers[scheme.Name] = "${" + v + "}"
	case scheme.In == "cookie" && isToken(scheme.Name):
		if c.headers["Cookie"] != "" {
			c.headers["Cookie"] += "; "
		}
		c.headers["Cookie"] += scheme.Name + "=${" + v + "}"
	case scheme.In == "query" && scheme.Name != "":
		c.query[scheme.Name] = "${" + v + "}"
	default:
		return fmt.Errorf("an API key in %q with the name %q cannot be sent", scheme.In, scheme.Name)
	}
	c.env = append(c.env, v)
	return nil
}

func (s *security) tokenURL(raw string) (string, error) {
	u, err := url.Parse(raw)
	if err != nil || raw == "" {
		return "", fmt.Errorf("the token URL %q is not a URL", raw)
	}
	if !u.IsAbs() {
		b, err := url.Parse(s.base)
		if err != nil {
			return "", err
		}
		u = b.ResolveReference(u)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.Contains(raw, "${") || strings.Contains(raw, "{{") {
		return "", fmt.Errorf("the token URL %q is not a plain http or https URL", u.Redacted())
	}
	return u.String(), nil
}

// variable returns the name of a scheme's environment variable: PETSTORE_API_KEY. If two schemes of
// the document would share a variable, the scheme's name is added: DATADOG_APP_KEY_AUTH.
func (s *security) variable(name, what string) string {
	for other, scheme := range s.schemes {
		if other != name && slices.Contains(wants(scheme), what) {
			own := strings.ToUpper(strings.ReplaceAll(kebab(name), "-", "_"))
			if own == what || what == "API_KEY" || what == "TOKEN" {
				return s.prefix + "_" + own
			}
			return s.prefix + "_" + own + "_" + what
		}
	}
	return s.prefix + "_" + what
}

// wants returns the kinds of variables that a scheme reads.
func wants(s *openapi3.SecurityScheme) []string {
	switch {
	case s == nil:
		return nil
	case s.Type == "apiKey":
		return []string{"API_KEY"}
	case s.Type == "http" && strings.EqualFold(s.Scheme, "basic"):
		return []string{"USERNAME", "PASSWORD"}
	case s.Type == "oauth2" && s.Flows != nil && s.Flows.ClientCredentials != nil:
		return []string{"CLIENT_ID", "CLIENT_SECRET"}
	}
	return []string{"TOKEN"}
}

var token = regexp.MustCompile("^[a-zA-Z0-9!#$%&'*+.^_`|~-]+$")

// isToken reports whether s is a field name (RFC 9110, section 5.6.2) that a manifest may set.
// Fields that frame the message are reserved for the transport.
func isToken(s string) bool {
	return !v1.IsTransportHeader(s) && !strings.EqualFold(s, "host") && token.MatchString(s) && !strings.Contains(s, "${")
}
