package redact

import (
	"encoding/json"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	v1 "toolctl.dev/toolctl/api/v1"
)

// Manifests should refer to secrets as ${VAR}, but some contain literal secrets. Output for people masks literal
// secrets and keeps references.

const mask = "***"

// secretName matches the names of headers, flags and query parameters with secrets.
var secretName = regexp.MustCompile(`(?i)authorization|(^|[-_])auth([-_]|$)|cookie|token([-_]|$)|secret|passw|credential|api[-_]?key|signature|(^|[-_])key$`)

// Manifest returns the object with its secrets masked; the object itself is not changed.
func Manifest(o v1.Object) (v1.Object, error) {
	switch o.(type) {
	case *v1.MCPServer, *v1.Tool:
	default:
		return o, nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	c := v1.NewObject(o.Head().Kind)
	if err := json.Unmarshal(raw, c); err != nil {
		return nil, err
	}
	switch c := c.(type) {
	case *v1.MCPServer:
		for name, value := range c.Spec.Env {
			c.Spec.Env[name] = maskValue(value)
		}
		c.Spec.Args = Args(c.Spec.Args)
		c.Spec.URL = URL(c.Spec.URL)
		maskNamed(c.Spec.Headers)
	case *v1.Tool:
		if h := c.Spec.HTTP; h != nil {
			h.URL = URL(h.URL)
			maskNamed(h.Headers)
			if h.Request != nil {
				maskNamed(h.Request.StaticHeaders)
				maskNamed(h.Request.StaticQuery)
			}
		}
	}
	return c, nil
}

// maskNamed masks the values with names of secrets.
func maskNamed(values map[string]string) {
	for _, name := range slices.Collect(maps.Keys(values)) {
		if secretName.MatchString(name) {
			values[name] = maskValue(values[name])
		}
	}
}

// maskValue masks a value, unless it refers to the environment.
func maskValue(value string) string {
	if value == "" || strings.Contains(value, "${") && strings.Contains(value, "}") {
		return value
	}
	return mask
}

// Args masks --token=VALUE, and VALUE after --token.
func Args(args []string) []string {
	out := slices.Clone(args)
	for i, arg := range out {
		name, value, assigned := strings.Cut(arg, "=")
		switch {
		case !secretName.MatchString(name):
		case assigned:
			out[i] = name + "=" + maskValue(value)
		case strings.HasPrefix(name, "-") && i+1 < len(out) && !strings.HasPrefix(out[i+1], "-"):
			out[i+1] = maskValue(out[i+1])
		}
	}
	return out
}

var (
	userInfo   = regexp.MustCompile(`^([a-zA-Z][a-zA-Z0-9+.-]*://)([^/?#@]*):([^/?#@]*)@`)
	queryParam = regexp.MustCompile(`([?&])([^=&#]+)=([^&#]*)`)
)

// URL masks the password and the secret query parameters of a URL. The URL may contain templates and references, so it
// may not be valid yet.
func URL(address string) string {
	address = userInfo.ReplaceAllStringFunc(address, func(s string) string {
		m := userInfo.FindStringSubmatch(s)
		return m[1] + m[2] + ":" + maskValue(m[3]) + "@"
	})
	return queryParam.ReplaceAllStringFunc(address, func(s string) string {
		m := queryParam.FindStringSubmatch(s)
		name, err := url.QueryUnescape(m[2])
		if err != nil || !secretName.MatchString(name) || strings.Contains(m[3], "{{") {
			return s
		}
		return m[1] + m[2] + "=" + maskValue(m[3])
	})
}
