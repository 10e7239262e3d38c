package mcpconfig

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// texter replaces the variables and secrets in the texts of one server.
type texter struct {
	c              *converter
	server, prefix string
}

var reference = regexp.MustCompile(`\$\{([^}]*)\}`)

// plain replaces the variables in a text.
func (t texter) plain(s string) string {
	return reference.ReplaceAllStringFunc(s, func(m string) string {
		body := m[2 : len(m)-1]
		kind, name, ok := strings.Cut(body, ":")
		switch {
		case ok && kind == "env" && isVariable(name):
			return "${" + name + "}"
		case ok && kind == "input" && name != "":
			v := variable(name)
			hint := ""
			if d := t.c.inputs[name]; d != "" {
				hint = " (" + d + ")"
			}
			t.c.note(t.server, "the input %q was replaced with the environment variable %s%s", name, v, hint)
			return "${" + v + "}"
		case body == "userHome":
			return "${HOME}"
		case isVariable(body), ok && strings.HasPrefix(name, "-") && isVariable(kind):
			if body == "workspaceFolder" || body == "cwd" || body == "workspaceRoot" {
				t.c.note(t.server, "%s has no meaning outside an editor and was replaced with the environment variable %s", m, body)
			}
			return m
		}
		t.c.note(t.server, "%s is not an environment variable and is passed unchanged", m)
		return "$" + m
	})
}

func isVariable(s string) bool {
	for i, c := range []byte(s) {
		if c != '_' && (c|0x20 < 'a' || c|0x20 > 'z') && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}

// secret replaces a secret by a variable and adds a note. where describes the place in the file. The variable is
// called name, unless that name already refers to another secret.
func (t texter) secret(where, name, value string) string {
	if have, taken := t.c.values[name]; taken && have != value {
		name = t.prefix + "_" + name
	}
	for have, taken := t.c.values[name]; taken && have != value; have, taken = t.c.values[name] {
		name += "_2"
	}
	t.c.values[name] = value
	t.c.note(t.server, "%s looks like a secret and was left out: set the environment variable %s", where, name)
	return "${" + name + "}"
}

func (t texter) env(env map[string]scalar) map[string]string {
	if len(env) == 0 {
		return nil
	}
	out := make(map[string]string, len(env))
	for _, name := range slices.Sorted(maps.Keys(env)) {
		value := string(env[name])
		if looksSecret(name, value) {
			out[name] = t.secret("env "+name, variable(name), value)
		} else {
			out[name] = t.plain(value)
		}
	}
	return out
}

func (t texter) headers(headers map[string]scalar) map[string]string {
	if len(headers) == 0 {
		return nil
	}
	out := make(map[string]string, len(headers))
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value := string(headers[name])
		scheme, credential, ok := strings.Cut(value, " ")
		switch {
		case ok && isScheme(scheme) && looksSecret("token", credential):
			out[name] = scheme + " " + t.secret("header "+name, t.prefix+"_TOKEN", credential)
		case looksSecret(name, value):
			out[name] = t.secret("header "+name, t.prefix+"_"+variable(name), value)
		default:
			out[name] = t.plain(value)
		}
	}
	return out
}

func isScheme(s string) bool {
	return slices.Contains([]string{"bearer", "basic", "token", "apikey"}, strings.ToLower(s))
}

// args replaces the secrets in arguments: a secret may be a whole argument, follow =, or follow a flag that names it.
func (t texter) args(args []string) []string {
	var out []string
	flag := ""
	for _, a := range args {
		name, value, assigned := strings.Cut(a, "=")
		switch {
		case assigned && looksSecret(name, value):
			a = name + "=" + t.secret("argument "+name, t.prefix+"_"+variable(name), value)
		case !assigned && flag != "" && looksSecret(flag, a):
			a = t.secret("argument "+flag, t.prefix+"_"+variable(flag), a)
		case !strings.HasPrefix(a, "-") && looksSecret("", a):
			a = t.secret("an argument", t.prefix+"_SECRET", a)
		default:
			a = t.url(a)
		}
		out = append(out, a)
		flag = ""
		if strings.HasPrefix(a, "-") && !assigned {
			flag = a
		}
	}
	return out
}

// url replaces the secrets in an address: its password and parameters. In other texts it replaces only variables.
func (t texter) url(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return t.plain(s)
	}
	if pass, ok := u.User.Password(); ok && looksSecret("password", pass) {
		v := t.secret("the password in the address", t.prefix+"_PASSWORD", pass)
		before, after, _ := strings.Cut(s, "@")
		s = before[:strings.LastIndex(before, ":")+1] + v + "@" + after
	}
	for pair := range strings.SplitSeq(u.RawQuery, "&") {
		name, value, _ := strings.Cut(pair, "=")
		if looksSecret(name, value) {
			v := t.secret("the parameter "+name+" of the address", t.prefix+"_"+variable(name), value)
			s = strings.Replace(s, pair, name+"="+v, 1)
		}
	}
	return t.plain(s)
}
